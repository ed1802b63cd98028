"""What is not traced, told: threads and processes that the workload starts, DataLoader workers by name."""

import os
import sys

__all__ = ["Watch"]

_KINDS = {
    "_thread.start_new_thread": "a thread",
    "_thread.start_joinable_thread": "a thread",
    "os.fork": "a forked process",
    "os.forkpty": "a forked process",
    "os.posix_spawn": "a process",
    "subprocess.Popen": "a process",
}


class Watch:
    """Notes each line of the workload that starts a thread or process."""

    def __init__(self, own, sink):
        """Audit hooks can't be removed, so the hook falls silent at `stop`."""
        self._own = own
        self._sink = sink
        self._on = False
        self._told = set()
        self._pid = os.getpid()

    def start(self):
        """Begin to watch."""
        self._on = True
        sys.addaudithook(self._hook)

    def stop(self):
        """Watch no more."""
        self._on = False

    def _hook(self, event, _):
        if not self._on or event not in _KINDS or os.getpid() != self._pid:
            return
        what = _KINDS[event]
        frame = sys._getframe(1)
        code, line, _other, _line = self._own.site(frame)
        if code is None:
            return
        while frame is not None:
            if frame.f_code.co_filename.endswith("/torch/utils/data/dataloader.py"):
                what = "a DataLoader worker"
                break
            frame = frame.f_back
        if (what, code, line) not in self._told:
            self._told.add((what, code, line))
            place = "%s:%d" % (os.path.basename(code.co_filename), line)
            self._sink.note("what %s started at %s does is not traced" % (what, place))

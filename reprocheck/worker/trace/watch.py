"""What is not traced, told: threads and processes that the workload starts, DataLoader workers by name."""

import os
import sys
import threading

__all__ = ["Watch"]

_PROCESSES = {
    "os.fork": "a forked process",
    "os.forkpty": "a forked process",
    "os.posix_spawn": "a process",
    "subprocess.Popen": "a process",
}
# Audit hooks can't be removed, and every audited event pays for each: there is one, whoever watches.
_watching: "list[Watch]" = []
_state = {"hooked": False}


def _hook(event, _):
    if event in _PROCESSES:
        for watch in _watching:
            watch.tell(_PROCESSES[event], sys._getframe(1))


class Watch:
    """Notes each line of the workload that starts a thread or process."""

    def __init__(self, own, sink):
        """`own` tells the workload's lines, `sink` takes the notes."""
        self._own = own
        self._sink = sink
        self._told = set()
        self._pid = os.getpid()
        self._start = threading.Thread.start

    def start(self):
        """Begin to watch."""
        _watching.append(self)
        if not _state["hooked"]:
            _state["hooked"] = True
            sys.addaudithook(_hook)
        begin = self._start

        def start(thread):
            # Python 3.13 is the first to raise an audit event for a thread.
            self.tell("a thread", sys._getframe(1))
            return begin(thread)

        threading.Thread.start = start

    def stop(self):
        """Watch no more."""
        _watching.remove(self)
        threading.Thread.start = self._start

    def tell(self, what, frame):
        """Note that the workload's line which `frame` was called from started `what`, once for each line."""
        code, line, _other, _line = self._own.site(frame)
        if code is None or os.getpid() != self._pid:
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

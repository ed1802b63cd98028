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


class Watch:
    """Notes each line of the workload that starts a thread or process."""

    def __init__(self, own, sink):
        """`own` tells the workload's lines, `sink` takes the notes."""
        self._own = own
        self._sink = sink
        self._on = False
        self._told = set()
        self._pid = os.getpid()
        self._start = threading.Thread.start

    def start(self):
        """Begin to watch. Audit hooks can't be removed: this one falls silent at `stop`."""
        self._on = True
        sys.addaudithook(self._hook)
        begin = self._start

        def start(thread):
            # Python 3.13 is the first to raise an audit event for a thread.
            self._tell("a thread", sys._getframe(1))
            return begin(thread)

        threading.Thread.start = start

    def stop(self):
        """Watch no more."""
        self._on = False
        threading.Thread.start = self._start

    def _hook(self, event, _):
        if self._on and event in _PROCESSES:
            self._tell(_PROCESSES[event], sys._getframe(1))

    def _tell(self, what, frame):
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

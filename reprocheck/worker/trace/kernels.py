"""Which kernels ran inside each operator: what MKL and oneDNN print when they are told to, and what CUPTI saw.

The libraries print to standard output, past Python (`MKL_VERBOSE=1`, `ONEDNN_VERBOSE=1`, set before the process began).
During the workload descriptor 1 is a file; what is new in it behind an operator was printed by that operator, and all
other text is passed on. Records are `{"k": "kernel", "n": operator, "lines": […]}`, -1 for text outside any operator.
"""

import ctypes
import os
import sys

from . import cuda

__all__ = ["Kernels"]

_MARKS = (b"MKL_VERBOSE", b"onednn_verbose", b"dnnl_verbose")


class Kernels:
    """Listens from `start` to `stop`; `begin` and `end` stand around each operator, one inside the other or not."""

    def __init__(self, sink, folder):
        """`folder` takes the text while it is collected."""
        self._sink = sink
        self._file = folder + "/verbose.txt"
        self._at = 0
        self._libc = ctypes.CDLL(None)
        self._profile = cuda.profile_for(sys.modules.get("torch"))

    def start(self):
        """Take over standard output, and begin to profile where there is a device."""
        self._flush()
        self._out = os.dup(1)
        self._fd = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
        os.dup2(self._fd, 1)
        if self._profile is not None:
            self._profile.start()

    def stop(self):
        """Give standard output back, with what the workload had printed."""
        self._take(-1)
        os.dup2(self._out, 1)
        os.close(self._out)
        os.close(self._fd)
        if self._profile is not None:
            for number, names in self._profile.stop():
                self._sink.write({"k": "kernel", "n": number, "lines": names})

    def begin(self):
        """An operator is about to run; returns what `end` wants to have."""
        self._take(-1)
        return None if self._profile is None else self._profile.begin()

    def end(self, begun, number):
        """It has run, as operator `number`; None for one that is not recorded after all."""
        if begun is not None:
            self._profile.end(begun, number)
        self._take(-1 if number is None else number)

    def _flush(self):
        sys.stdout.flush()
        self._libc.fflush(None)

    def _take(self, number):
        self._flush()
        text = b""
        while True:
            part = os.pread(self._fd, 1 << 16, self._at)
            if not part:
                break
            self._at += len(part)
            text += part
        if not text:
            return
        told = []
        for line in text.splitlines(keepends=True):
            if line.startswith(_MARKS):
                told.append(line.decode("utf-8", "replace").rstrip("\n"))
            else:
                os.write(self._out, line)
        if told:
            self._sink.write({"k": "kernel", "n": number, "lines": told})

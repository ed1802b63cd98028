"""No trial outlives the Dask worker that started it, whatever ended that worker.

A small process of its own holds the reading end of a pipe. When the Dask worker ends, by SIGKILL too, the kernel closes
the other end, and the process kills the trials that were under way and removes their folders. Nothing is set in the
trial itself (as `PR_SET_PDEATHSIG` would be): it must not be changed by what runs it.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

__all__ = ["dismiss", "guarded"]

# A trial is found by its job file, the last word of its command line: process numbers may be used again.
_REAPER = """
import os, shutil, signal, sys, time
folders = set()
for line in sys.stdin.buffer:
    sign, folder = line[:1], line[1:].rstrip(b"\\n")
    (folders.add if sign == b"+" else folders.discard)(folder)
jobs = {folder + b"/job" for folder in folders}
for _ in range(20 if jobs else 0):
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open("/proc/%s/cmdline" % entry, "rb") as file:
                words = file.read().split(b"\\0")
            if jobs.intersection(words):
                os.killpg(os.getpgid(int(entry)), signal.SIGKILL)
        except OSError:
            pass
    # Once more: a trial may have been between fork and exec.
    time.sleep(0.05)
for folder in folders:
    shutil.rmtree(folder, ignore_errors=True)
"""

_lock = threading.Lock()
_reaper: subprocess.Popen[bytes] | None = None


@contextlib.contextmanager
def guarded(folder: Path) -> Iterator[None]:
    """While this is entered, the trial that works in `folder` dies with this process."""
    _tell(b"+" + bytes(folder) + b"\n")
    try:
        yield
    finally:
        _tell(b"-" + bytes(folder) + b"\n")


def dismiss() -> None:
    """End the reaper; the next trial starts another."""
    global _reaper
    with _lock:
        reaper, _reaper = _reaper, None
    if reaper is not None:
        with contextlib.suppress(BrokenPipeError):
            reaper.communicate()


def _tell(line: bytes) -> None:
    global _reaper  # noqa: PLW0603 - one for this process
    with _lock:
        if _reaper is None or _reaper.poll() is not None:
            _reaper = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _REAPER],
                stdin=subprocess.PIPE,
                cwd="/",
                start_new_session=True,  # out of reach of what the terminal or a scheduler sends to the group
            )
        assert _reaper.stdin is not None  # noqa: S101 - asked for above
        _reaper.stdin.write(line)
        _reaper.stdin.flush()

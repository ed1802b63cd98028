"""One process: its own session, stdin closed, streams bounded, a time-out, and its whole group killed at the end."""

from __future__ import annotations

import contextlib
import os
import resource
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from reprocheck.errors import HarnessError
from reprocheck.model import Stream, Struct

__all__ = ["Exit", "Stop", "run_process"]

HEAD_BYTES = 16 * 1024
TAIL_BYTES = 48 * 1024
# After SIGABRT, for faulthandler to write where it hangs.
ABORT_GRACE_S = 1.0
# A killed group closes its pipes at once; a process that left the group may hold them.
DRAIN_S = 0.5


class Stop(Protocol):
    """Tells that running is to end: a `threading.Event`, or something that answers like one."""

    def is_set(self) -> bool:
        """Whether to end now; asked several times a second."""

    def wait(self, timeout: float | None = None) -> bool:
        """Sleep for `timeout` seconds or until it is set; tells whether it is."""


class Exit(Struct, frozen=True, kw_only=True):
    """How a process ended. `status` is negative for a signal, as from `wait`."""

    status: int
    seconds: float
    timed_out: bool
    interrupted: bool
    stdout: Stream
    stderr: Stream


class _Tail:
    """Keeps the first and the last part of a stream of any length."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self._nbytes = 0

    def feed(self, data: bytes) -> None:
        self._nbytes += len(data)
        room = HEAD_BYTES - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        if len(self._tail) > 2 * TAIL_BYTES:
            del self._tail[:-TAIL_BYTES]

    def stream(self) -> Stream:
        tail = bytes(self._tail[-TAIL_BYTES:])
        lost = self._nbytes - len(self._head) - len(tail)
        middle = f"\n[… {lost} bytes left out …]\n".encode() if lost else b""
        text = (bytes(self._head) + middle + tail).decode("utf-8", "replace")
        return Stream(text=text, nbytes=self._nbytes, truncated=lost > 0)


def run_process(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path,
    timeout: float,
    stop: Stop,
) -> Exit:
    """Run `argv` to its end, its time-out, or until `stop` is set; nothing of its process group survives.

    Raises `HarnessError` when it can't be started.
    """
    begin = time.monotonic()
    try:
        process = subprocess.Popen(
            argv,
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise HarnessError(f"cannot start `{argv[0]}`: {error.strerror or error}; check --python") from error
    tails = {"stdout": _Tail(), "stderr": _Tail()}
    timed_out = interrupted = False
    with selectors.DefaultSelector() as selector, _pidfd(process.pid) as exited:
        for name, pipe in (("stdout", process.stdout), ("stderr", process.stderr)):
            assert pipe is not None  # noqa: S101 - asked for above
            os.set_blocking(pipe.fileno(), False)
            selector.register(pipe, selectors.EVENT_READ, name)
        selector.register(exited, selectors.EVENT_READ, "exit")
        deadline = begin + timeout
        while True:
            # Short enough to see `stop` soon; the exit itself wakes us at once.
            ready = selector.select(min(0.2, max(0.0, deadline - time.monotonic())))
            ended = False
            for key, _ in ready:
                if key.data == "exit":
                    ended = True
                else:
                    _pump(selector, key, tails)
            if ended:
                break
            interrupted = stop.is_set()
            timed_out = time.monotonic() >= deadline
            if interrupted or timed_out:
                _abort(process, timed_out=timed_out)
                break
        # The leader may be a zombie by now, which keeps the group's number from being used again.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        status = process.wait()
        seconds = time.monotonic() - begin
        _drain(selector, tails)
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
    return Exit(
        status=status,
        seconds=seconds,
        timed_out=timed_out,
        interrupted=interrupted,
        stdout=tails["stdout"].stream(),
        stderr=tails["stderr"].stream(),
    )


@contextlib.contextmanager
def _pidfd(pid: int):  # type: ignore[no-untyped-def]  # noqa: ANN202 - a context manager of an int
    fd = os.pidfd_open(pid)
    try:
        yield fd
    finally:
        os.close(fd)


def _pump(selector: selectors.BaseSelector, key: selectors.SelectorKey, tails: Mapping[str, _Tail]) -> bool:
    """Read what is there; False at the end of the stream."""
    try:
        data = os.read(key.fd, 1 << 18)
    except BlockingIOError:
        return True
    if not data:
        selector.unregister(key.fileobj)
        return False
    tails[key.data].feed(data)
    return True


def _drain(selector: selectors.BaseSelector, tails: Mapping[str, _Tail]) -> None:
    deadline = time.monotonic() + DRAIN_S
    while time.monotonic() < deadline:
        keys = [key for key in selector.get_map().values() if key.data != "exit"]
        if not keys:
            return
        for key, _ in selector.select(deadline - time.monotonic()):
            if key.data == "exit":
                selector.unregister(key.fileobj)
            else:
                _pump(selector, key, tails)


def _abort(process: subprocess.Popen[bytes], *, timed_out: bool) -> None:
    """Ask for a stack first (faulthandler answers SIGABRT), without leaving a core file behind."""
    if not timed_out:
        return
    with contextlib.suppress(OSError, ValueError):
        hard = resource.prlimit(process.pid, resource.RLIMIT_CORE)[1]
        resource.prlimit(process.pid, resource.RLIMIT_CORE, (0, hard))
    with contextlib.suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGABRT)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(ABORT_GRACE_S)

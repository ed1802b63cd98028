"""One process: its own session, stdin closed, streams bounded, a time-out, and at the end its whole group killed.

A child that left the group for a session of its own is known by the streams it inherited, and killed as well.
"""

from __future__ import annotations

import contextlib
import os
import resource
import selectors
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, Protocol, Self

from reprocheck.errors import HarnessError
from reprocheck.model import Stream, Struct

__all__ = ["Ending", "Exit", "Stop", "Streams", "kill_group", "kill_left", "pidfd", "run_process"]

HEAD_BYTES = 16 * 1024
TAIL_BYTES = 48 * 1024
# After SIGABRT, for faulthandler to write where it hangs.
ABORT_GRACE_S = 1.0
# A killed group closes its pipes at once; a process that left the group may hold them.
SETTLE_S = 0.05
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

    def __init__(self, before: _Tail | None = None) -> None:
        self.head: bytearray = bytearray(before.head if before else b"")
        self.tail: bytearray = bytearray(before.tail if before else b"")
        self.nbytes: int = before.nbytes if before else 0

    def feed(self, data: bytes) -> None:
        self.nbytes += len(data)
        room = HEAD_BYTES - len(self.head)
        if room > 0:
            self.head += data[:room]
            data = data[room:]
        self.tail += data
        if len(self.tail) > 2 * TAIL_BYTES:
            del self.tail[:-TAIL_BYTES]

    def stream(self) -> Stream:
        tail = bytes(self.tail[-TAIL_BYTES:])
        lost = self.nbytes - len(self.head) - len(tail)
        middle = f"\n[… {lost} bytes left out …]\n".encode() if lost else b""
        text = (bytes(self.head) + middle + tail).decode("utf-8", "replace")
        return Stream(text=text, nbytes=self.nbytes, truncated=lost > 0)


def run_process(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path,
    timeout: float,
    stop: Stop,
) -> Exit:
    """Run `argv` to its end, its time-out, or until `stop` is set.

    Nothing of its process group survives, and nothing outside it that still has one of its streams.

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
    assert process.stdout is not None and process.stderr is not None  # noqa: S101, PT018 - asked for above
    with Streams(process.stdout.fileno(), process.stderr.fileno()) as streams, pidfd(process.pid) as exited:
        end = streams.follow(process.pid, exited, deadline=begin + timeout, stop=stop)
        kill_group(process.pid)
        status = process.wait()
        # The grace for its stack is none of the time it was given.
        seconds = timeout if end == "timed out" else time.monotonic() - begin
        if not streams.drain(SETTLE_S):
            _kill_holders(process.stdout.fileno(), process.stderr.fileno())
            streams.drain()
    process.stdout.close()
    process.stderr.close()
    return streams.exit(status, seconds, end)


Ending = Literal["ended", "ready", "timed out", "interrupted"]


class Streams:
    """The two streams of a process under watch; a context manager that owns the watching, not the pipes."""

    def __init__(self, stdout: int, stderr: int, *, before: Streams | None = None, kept_open: bool = False) -> None:
        """`before`: what was written by the process this one was forked from is its own past.

        `kept_open`: we hold a writing end ourselves, so that the streams have no end to wait for.
        """
        self._kept_open = kept_open
        self.tails: dict[str, _Tail] = {
            name: _Tail(before.tails[name] if before else None) for name in ("stdout", "stderr")
        }
        self._selector = selectors.DefaultSelector()
        for name, fd in (("stdout", stdout), ("stderr", stderr)):
            os.set_blocking(fd, False)
            self._selector.register(fd, selectors.EVENT_READ, name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._selector.close()

    def follow(self, pid: int, exited: int, *, deadline: float, stop: Stop, ready: int | None = None) -> Ending:
        """Read on until the process ended, `ready` (a file descriptor) can be read, time is up, or `stop` is set.

        When time is up it has been asked for its stack by then. It is the caller who kills it.
        """
        also: dict[int, Ending] = {exited: "ended"} if ready is None else {exited: "ended", ready: "ready"}
        for fd, what in also.items():
            self._selector.register(fd, selectors.EVENT_READ, what)
        try:
            while True:
                # Short enough to see `stop` soon; the exit itself wakes us at once.
                seen: set[str] = set()
                for key, _ in self._selector.select(min(0.2, max(0.0, deadline - time.monotonic()))):
                    if key.fd in also:
                        seen.add(key.data)
                    else:
                        self._pump(key)
                if seen:
                    return "ready" if "ready" in seen else "ended"
                if stop.is_set():
                    return "interrupted"
                if time.monotonic() >= deadline:
                    _abort(pid, exited)
                    return "timed out"
        finally:
            for fd in also:
                self._selector.unregister(fd)

    def drain(self, seconds: float = DRAIN_S) -> bool:
        """Read what is left, for `seconds` at most; tells whether the streams' end was reached."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and self._selector.get_map():
            keys = [key for key, _ in self._selector.select(0 if self._kept_open else deadline - time.monotonic())]
            if not keys and self._kept_open:
                return False
            for key in keys:
                self._pump(key)
        return not self._selector.get_map()

    def exit(self, status: int, seconds: float, end: Ending) -> Exit:
        """How the process ended, with all it wrote."""
        return Exit(
            status=status,
            seconds=seconds,
            timed_out=end == "timed out",
            interrupted=end == "interrupted",
            stdout=self.tails["stdout"].stream(),
            stderr=self.tails["stderr"].stream(),
        )

    def _pump(self, key: selectors.SelectorKey) -> None:
        """Take what is there; at the end of the stream, look no more."""
        try:
            data = os.read(key.fd, 1 << 18)
        except BlockingIOError:
            return
        if not data:
            self._selector.unregister(key.fileobj)
            return
        self.tails[key.data].feed(data)


@contextlib.contextmanager
def pidfd(pid: int) -> Iterator[int]:
    """A file descriptor that can be read when the process ended."""
    fd = os.pidfd_open(pid)
    try:
        yield fd
    finally:
        os.close(fd)


def kill_group(pid: int) -> None:
    """Kill the process group `pid`. Its leader, not waited for yet, keeps the number from being used again."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def kill_left(folder: Path) -> None:
    """Kill what a trial said it leaves running (`worker/left.py`), wherever that went."""
    try:
        told = (folder / "left").read_text("ascii").splitlines()
    except OSError:
        return
    for number, began in map(str.split, told):
        with contextlib.suppress(OSError), pidfd(int(number)) as process:
            # Held first, and then seen to be the one that was meant: the number may be another process's by now.
            if Path(f"/proc/{number}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[19] == began:
                signal.pidfd_send_signal(process, signal.SIGKILL)


def _kill_holders(*pipes: int) -> None:
    """Kill every process whose stdout or stderr is one of these pipes, of which the reading ends are ours.

    Only these two are looked at: between fork and exec, a process that another thread starts has all our descriptors.
    """
    ours = {_target(Path("/proc/self"), fd) for fd in pipes}
    deadline, found = time.monotonic() + DRAIN_S, True
    # Again after each kill: one that was found late may have started another.
    while found and time.monotonic() < deadline:
        found = False
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError), pidfd(int(entry.name)) as process:
                # Held first: the number can't go to another process meanwhile.
                if ours & {_target(entry, 1), _target(entry, 2)}:
                    signal.pidfd_send_signal(process, signal.SIGKILL)
                    found = True


def _target(process: Path, fd: int) -> Path | None:
    """What a process's descriptor stands for; None where it is closed, or not to be seen."""
    try:
        return (process / "fd" / str(fd)).readlink()
    except OSError:
        return None


def _abort(pid: int, exited: int) -> None:
    """Ask for a stack first (faulthandler answers SIGABRT), without leaving a core file behind."""
    with contextlib.suppress(OSError, ValueError):
        hard = resource.prlimit(pid, resource.RLIMIT_CORE)[1]
        resource.prlimit(pid, resource.RLIMIT_CORE, (0, hard))
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGABRT)
    with selectors.DefaultSelector() as selector:
        selector.register(exited, selectors.EVENT_READ)
        selector.select(ABORT_GRACE_S)

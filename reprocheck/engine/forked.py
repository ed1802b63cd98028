"""One process of a fork tree as the engine sees it: its folder, its streams, and the pipes through which it is told."""

from __future__ import annotations

import contextlib
import marshal
import os
import select
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

from reprocheck.engine.process import Ending, Exit, Streams, kill_group, kill_left
from reprocheck.engine.tree import Prefix
from reprocheck.engine.trial import Job, environment_of, trial_spec, worker_command
from reprocheck.errors import HarnessError

__all__ = ["LostError", "Process"]

ANSWER_S = 60.0
"""To fork or to reap takes milliseconds, more on a machine that is out of memory."""


class LostError(Exception):
    """A process of the tree ended, or said nothing, while it was asked for something."""


class Process:
    """A trial's process, or one that waits to be forked. Only a parent learns how its child ended, so it is asked."""

    def __init__(self, plan: Prefix, folder: Path, parent: Process | None) -> None:
        """`folder` is empty and goes with `close`; the root has no parent."""
        self.plan = plan
        self.folder = folder
        self.parent = parent
        self.pending = list(plan.children)
        """What is still to be forked from it."""
        self.children = 0
        """Processes forked from it that are not waited for yet."""
        self.spent: float = parent.spent if parent else 0.0
        """Seconds its path took, waiting left out."""
        self.pid = 0
        self._pidfd = -1
        self._popen: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._closing = contextlib.ExitStack()
        self._fds: dict[str, int] = {}
        for name in ("stdout", "stderr", *(("ask", "answer") if plan.children else ())):
            os.mkfifo(folder / name)
            # Both ends are ours: nobody waits for the other to open one. It reads the end of `ask` when we are gone.
            self._fds[name] = os.open(folder / name, os.O_RDWR | os.O_CLOEXEC)
            self._closing.callback(os.close, self._fds[name])
        self.streams: Streams = self._closing.enter_context(
            Streams(
                self._fds["stdout"],
                self._fds["stderr"],
                before=parent.streams if parent else None,
                kept_open=True,
            )
        )

    def start(self, job: Job) -> None:
        """Fork it from its parent; the root: start an interpreter.

        Raises `LostError` when the parent is gone and `HarnessError` when the interpreter can't be started.
        """
        spec = trial_spec(job, self.plan.trials[0], self.folder)
        if self.plan.children:
            spec |= {"upto": len(self.plan.order), "height": self.plan.height}
            spec |= {name: str(self.folder / name) for name in ("ask", "answer")}
        if self.parent is not None:
            # Its past; it goes on in a file of its own.
            shutil.copyfile(self.parent.folder / "phases.jsonl", self.folder / "phases.jsonl")
            self.pid = int(self.parent.asked(["fork", spec])[1])
            self._watch()
            return
        argv = worker_command(job, self.folder, spec)
        with (self.folder / "stdout").open("wb") as stdout, (self.folder / "stderr").open("wb") as stderr:
            try:
                self._popen = subprocess.Popen(
                    argv,
                    env=environment_of(job, self.plan.trials[0]),
                    cwd=job.cwd,
                    stdin=subprocess.DEVNULL,
                    stdout=stdout,
                    stderr=stderr,
                    start_new_session=True,
                )
            except OSError as error:
                raise HarnessError(f"cannot start `{job.python}`: {error.strerror or error}; check --python") from error
        self.pid = self._popen.pid
        self._watch()

    def _watch(self) -> None:
        """Hold the process itself, and not just its number. Raises `LostError` when somebody else waited for it."""
        try:
            self._pidfd = os.pidfd_open(self.pid)
        except ProcessLookupError:
            raise LostError from None
        self._closing.callback(os.close, self._pidfd)

    def follow(self, timeout: float, stop: threading.Event) -> Ending:
        """Watch it until it ends, says that it is ready to be forked, its path took `timeout` seconds, or `stop`."""
        begin, before = time.monotonic(), self.spent
        ending = self.streams.follow(
            self.pid, self._pidfd, deadline=begin + timeout - before, stop=stop, ready=self._fds.get("answer")
        )
        # The grace for its stack is none of the time it was given.
        self.spent = timeout if ending == "timed out" else before + time.monotonic() - begin
        return ending

    def end(self, ending: Ending = "ended") -> Exit:
        """Kill what is left of its group, and say how it ended. Raises `LostError` when only its parent knew that."""
        self.kill()
        if self._popen is not None:
            status = self._popen.wait()
        else:
            assert self.parent is not None  # noqa: S101 - only the root has none
            status = os.waitstatus_to_exitcode(int(self.parent.asked(["reap", self.pid])[1]))
        kill_left(self.folder)
        self.streams.drain()
        return self.streams.exit(status, self.spent, ending)

    def kill(self) -> None:
        """Kill it and its group; a process that was forked a moment ago may have none of its own yet."""
        if self._pidfd >= 0:
            kill_group(self.pid)
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    def close(self) -> None:
        """Let go of pipes and folder; a process that waits takes that as its end."""
        self._closing.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def asked(self, message: list[Any]) -> list[Any]:
        """Its answer. Raises `LostError`."""
        data = marshal.dumps(message, 2)
        with self._lock:
            view = memoryview(len(data).to_bytes(4, "little") + data)
            while view:
                view = view[os.write(self._fds["ask"], view) :]
            return self.told()

    def told(self) -> list[Any]:
        """Its next message. Raises `LostError` when there will be none."""
        head = self._read(4)
        message: list[Any] = marshal.loads(self._read(int.from_bytes(head, "little")))  # noqa: S302 - from our worker
        return message

    def _read(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            ready, _, _ = select.select([self._fds["answer"], self._pidfd], [], [], ANSWER_S)
            if self._fds["answer"] not in ready:
                raise LostError
            data += os.read(self._fds["answer"], count - len(data))
        return data

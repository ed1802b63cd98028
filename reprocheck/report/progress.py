"""Progress on stderr: a live bar on a terminal, plain lines and a heartbeat everywhere else."""

from __future__ import annotations

import os
import sys
import threading
import time
from types import TracebackType
from typing import IO, Any, Self

from reprocheck.headline import order_text
from reprocheck.model import Record
from reprocheck.report.plain import visible

__all__ = ["LineProgress", "LiveProgress", "Quiet", "progress_for"]

HEARTBEAT_S = 15.0


def interactive(stream: IO[str]) -> bool:
    """Whether animation is welcome. Decided here: FORCE_COLOR makes rich animate in CI logs."""
    return stream.isatty() and not os.environ.get("CI") and os.environ.get("TERM") != "dumb"


def progress_for(*, quiet: bool) -> Quiet | LineProgress | LiveProgress:
    """The progress that suits stderr; use it as a context manager."""
    if quiet:
        return Quiet()
    return LiveProgress() if interactive(sys.stderr) else LineProgress(sys.stderr)


class Quiet:
    """Shows nothing."""

    def title(self, text: str) -> None:
        """Nothing."""

    def expect(self, trials: int) -> None:
        """Nothing."""

    def ended(self, record: Record) -> None:
        """Nothing."""

    def note(self, text: str) -> None:
        """Nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None


def _arm(record: Record) -> str:
    """Order and level: `a,b  OMP_PROC_BIND=close`."""
    level = (f"{name} unset" if value is None else f"{name}={value}" for name, value in record.trial.level.items())
    return "  ".join([order_text(record.trial.order), *level])


def _outcome(record: Record) -> str:
    return "ok" if record.failure is None else record.failure.message


class LineProgress:
    """One line a trial, and a heartbeat when none has ended for a while."""

    def __init__(self, stream: IO[str], heartbeat: float = HEARTBEAT_S) -> None:
        """Write to `stream`; `heartbeat` is in seconds."""
        self._stream = stream
        self._heartbeat = heartbeat
        self._expected = self._done = 0
        self._stop = threading.Event()
        self._last = time.monotonic()
        self._begin = time.monotonic()
        self._thread = threading.Thread(target=self._beat, daemon=True)

    def title(self, text: str) -> None:
        """Say what starts."""
        self._line(text)

    def expect(self, trials: int) -> None:
        """So many trials more."""
        self._expected += trials

    def ended(self, record: Record) -> None:
        """Write the trial's line."""
        self._done += 1
        arm = _arm(record) + ("" if record.trial.capture else " (no capture)")
        self._line(f"  {self._done}/{self._expected}  {record.seconds:6.1f} s  {arm}  {_outcome(record)}")

    def note(self, text: str) -> None:
        """Write a line."""
        self._line(f"  {text}")

    def _line(self, text: str) -> None:
        self._last = time.monotonic()
        print(visible(text), file=self._stream, flush=True)

    def _beat(self) -> None:
        while not self._stop.wait(0.5):
            if time.monotonic() - self._last >= self._heartbeat:
                elapsed = time.monotonic() - self._begin
                self._line(f"  {self._done}/{self._expected}  still running after {elapsed:.0f} s")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()


class LiveProgress:
    """A bar with the trials done, the time, and what came last; gone when the report comes."""

    def __init__(self) -> None:
        """Draw on stderr."""
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[last]}", markup=False),
            console=Console(stderr=True),
            transient=True,
        )
        self._task: Any = None
        self._expected = 0

    def title(self, text: str) -> None:
        """Begin a bar."""
        if self._task is not None:
            self._progress.remove_task(self._task)
        self._expected = 0
        self._task = self._progress.add_task(text, total=0, last="")

    def expect(self, trials: int) -> None:
        """So many trials more."""
        self._expected += trials
        self._progress.update(self._task, total=self._expected)

    def ended(self, record: Record) -> None:
        """Move the bar."""
        self._progress.update(self._task, advance=1, last=visible(f"{_arm(record)}: {_outcome(record)}"[:60]))

    def note(self, text: str) -> None:
        """Write above the bar."""
        self._progress.console.print(text, markup=False, highlight=False)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

"""What every engine does: run trials in fresh interpreters, wherever they run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Protocol, TypeVar

from reprocheck.engine.phases import RawRecord
from reprocheck.engine.trial import Job
from reprocheck.model import Trial

__all__ = ["Engine"]

T = TypeVar("T")


class Engine(Protocol):
    """Where trials run. A crash of the workload is a record; only what the instrument itself lost is an error."""

    @property
    def job(self) -> Job:
        """What all trials have in common."""

    def run(self, trials: Iterable[Trial], keep: Callable[[RawRecord, Path], T]) -> Iterator[T]:
        """Yield `keep(record, folder)` of each trial as it ends, in the order of ending.

        `folder` holds what the trial wrote and goes when `keep` returns; `keep` may be called from several threads at
        once. On any exception, `KeyboardInterrupt` included, running trials are killed before it goes on. Raises
        `HarnessError` when a trial could not be run; whatever was yielded before stands.
        """

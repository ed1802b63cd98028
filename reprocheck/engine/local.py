"""The default engine: trials as processes on this machine, several at a time."""

from __future__ import annotations

import itertools
import os
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

from reprocheck.engine.gate import Gate
from reprocheck.engine.phases import RawRecord
from reprocheck.engine.trial import Job, compile_worker, run_trial
from reprocheck.errors import HarnessError
from reprocheck.model import Trial

__all__ = ["LocalEngine", "default_jobs"]


def default_jobs() -> int:
    """Trials at a time: the cores this process may use, at most 8."""
    return max(1, min(8, len(os.sched_getaffinity(0))))


class LocalEngine:
    """Runs trials in fresh interpreters below `scratch`, at most `jobs` at a time."""

    def __init__(self, job: Job, scratch: Path, *, jobs: int, gate: Gate | None = None) -> None:
        """`scratch` must be on the store's file system, so that outputs are moved; `gate` is shared with others."""
        self.job = job
        self.scratch = scratch
        self.jobs = jobs
        self.gate = gate
        self.stop = threading.Event()
        self._numbers = itertools.count(1)
        compile_worker(job.python)

    def run(self, trials: Iterable[Trial], keep: Callable[[RawRecord, Path], Any]) -> Iterator[Any]:
        """Yield `keep(record, folder)` of each trial as it ends, in the order of ending.

        `keep` runs in the trial's own thread, before the folder is removed. On any exception, `KeyboardInterrupt`
        included, running trials are killed and waited for before it goes on.
        """
        self.stop.clear()
        with ThreadPoolExecutor(self.jobs, thread_name_prefix="trial") as pool:
            waiting: set[Future[Any]] = set()
            try:
                for trial in trials:
                    waiting.add(pool.submit(self.one, trial, keep))
                while waiting:
                    done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                    for future in done:
                        yield future.result()
            except BaseException:
                self.stop.set()
                for future in waiting:
                    future.cancel()
                raise

    def new_folder(self) -> Path:
        """An empty folder for one trial."""
        # With our own number in it: a worker of a parent that was killed may still be writing to its folder.
        folder = self.scratch / f"{os.getpid()}-{next(self._numbers):06d}"
        folder.mkdir(parents=True)
        return folder

    def one(self, trial: Trial, keep: Callable[[RawRecord, Path], Any]) -> Any:
        """Run one trial to its end, in this thread. Raises `HarnessError` when `stop` is set meanwhile."""
        if self.stop.is_set():
            raise HarnessError("interrupted")
        folder = self.new_folder()
        try:
            return keep(run_trial(self.job, trial, folder, stop=self.stop, gate=self.gate), folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

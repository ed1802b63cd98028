"""The default engine: trials as processes on this machine, several at a time."""

from __future__ import annotations

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

__all__ = ["Job", "LocalEngine", "default_jobs"]


def default_jobs() -> int:
    """Trials at a time: the cores this process may use, at most 8."""
    return max(1, min(8, len(os.sched_getaffinity(0))))


class LocalEngine:
    """Runs trials in fresh interpreters below `scratch`, at most `jobs` at a time."""

    def __init__(self, job: Job, scratch: Path, *, jobs: int, gate: Gate | None = None) -> None:
        """`scratch` must be on the store's file system, so that outputs are moved; `gate` is shared with others."""
        self.job = job
        self._scratch = scratch
        self._jobs = jobs
        self._gate = gate
        self._stop = threading.Event()
        self._number = 0
        compile_worker(job.python)

    def run(self, trials: Iterable[Trial], keep: Callable[[RawRecord, Path], Any]) -> Iterator[Any]:
        """Yield `keep(record, folder)` of each trial as it ends, in the order of ending.

        `keep` runs in the trial's own thread, before the folder is removed. On any exception, `KeyboardInterrupt`
        included, running trials are killed and waited for before it goes on.
        """
        self._stop.clear()
        with ThreadPoolExecutor(self._jobs, thread_name_prefix="trial") as pool:
            waiting: set[Future[Any]] = set()
            try:
                for trial in trials:
                    self._number += 1
                    waiting.add(pool.submit(self._one, trial, self._number, keep))
                while waiting:
                    done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                    for future in done:
                        yield future.result()
            except BaseException:
                self._stop.set()
                for future in waiting:
                    future.cancel()
                raise

    def _one(self, trial: Trial, number: int, keep: Callable[[RawRecord, Path], Any]) -> Any:
        if self._stop.is_set():
            raise HarnessError("interrupted")
        # With our own number in it: a worker of a parent that was killed may still be writing to its folder.
        folder = self._scratch / f"{os.getpid()}-{number:06d}"
        folder.mkdir(parents=True)
        try:
            return keep(run_trial(self.job, trial, folder, stop=self._stop, gate=self._gate), folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

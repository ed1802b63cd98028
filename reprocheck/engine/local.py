"""The default engine: trials as processes on this machine, several at a time."""

from __future__ import annotations

import contextlib
import marshal
import os
import py_compile
import shutil
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

import msgspec

from reprocheck.engine.environment import trial_environment
from reprocheck.engine.gate import Gate
from reprocheck.engine.phases import RawRecord, finish
from reprocheck.engine.process import run_process
from reprocheck.errors import HarnessError
from reprocheck.model import Struct, Target, Trial

__all__ = ["Job", "LocalEngine", "default_jobs"]

WORKER = Path(__file__).resolve().parent.parent / "worker"


class Job(Struct, frozen=True, kw_only=True):
    """What all trials of a study have in common."""

    target: Target
    python: str
    cwd: str
    environment: dict[str, str]
    """The user's environment, before a trial's own changes."""
    env: dict[str, str | None] = {}
    """Changes asked for the whole study."""
    seed: int | None = None
    timeout: float = 600.0
    argv: tuple[str, ...] = ()
    probes: tuple[str, ...] = ()
    """Files with snapshot readers of the user's own."""
    sys_path: tuple[str, ...] = ()
    """Folders to put before `sys.path`, as far as they aren't in it: where a test process found its modules."""


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
        if Path(job.python).resolve() == Path(sys.executable).resolve():
            _compile_worker()

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
            job_file = folder / "job"
            # Version 2 is the newest marshal format that every supported interpreter reads.
            job_file.write_bytes(marshal.dumps(self._spec(trial, folder), 2))
            changes: Mapping[str, str | None] = {**self.job.env, **trial.variables}
            environment = trial_environment(self.job.environment, changes)
            with self._gate.passing(self._stop) if self._gate else contextlib.nullcontext():
                end = run_process(
                    [self.job.python, str(WORKER / "main.py"), str(job_file)],
                    env=environment.variables,
                    cwd=Path(self.job.cwd),
                    timeout=self.job.timeout,
                    stop=self._stop,
                )
            if end.interrupted:
                raise HarnessError("interrupted")
            return keep(finish(trial, folder, end), folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _spec(self, trial: Trial, folder: Path) -> dict[str, Any]:
        target = self.job.target
        script = target.path if target.kind != "pytest" else None
        return {
            "folder": str(folder),
            "subjects": list(trial.order),
            "target": msgspec.to_builtins(target),
            "sys_path0": str(Path(script).parent) if script else self.job.cwd,
            "sys_path": list(self.job.sys_path),
            "argv": [script or target.module or ("pytest" if target.kind == "pytest" else ""), *self.job.argv],
            "capture": trial.capture,
            "seed": self.job.seed,
            "probes": list(self.job.probes),
            "actions": [dict(action) for action in trial.actions],
            "trace": dict(trial.trace) if trial.trace else None,
            "blame": dict(trial.blame) if trial.blame else None,
        }


def _compile_worker() -> None:
    """Write the worker's byte code if it is not there: with PYTHONDONTWRITEBYTECODE set, every trial would compile."""
    for source in (*WORKER.glob("*.py"), *WORKER.glob("*/*.py")):
        cached = Path(cache_from_source(str(source)))
        try:
            if cached.stat().st_mtime >= source.stat().st_mtime:
                continue
        except OSError:
            # Not compiled yet.
            cached.parent.mkdir(exist_ok=True) if os.access(source.parent, os.W_OK) else None
        if os.access(source.parent, os.W_OK):
            py_compile.compile(str(source), quiet=1)

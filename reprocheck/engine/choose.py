"""The engine a study asked for."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from reprocheck.config.options import Options
from reprocheck.engine.base import Engine
from reprocheck.engine.forks import ForkEngine
from reprocheck.engine.gate import Gate, gpu_gate
from reprocheck.engine.local import LocalEngine, default_jobs
from reprocheck.engine.trial import Job
from reprocheck.errors import UsageError
from reprocheck.model import Record

__all__ = ["engine_for"]


@contextlib.contextmanager
def engine_for(
    job: Job,
    scratch: Path,
    options: Options,
    *,
    gate: Gate | None = None,
    done: Iterable[Record] = (),
    note: Callable[[str], None],
) -> Iterator[Engine]:
    """The engine of `options.engine`, ready to run trials of `job` below `scratch`; left when its work is over.

    `gate` bounds local trials together with those of others; `done` are records the run has from earlier. Raises
    `UsageError` when the engine can't be had as it was asked for.
    """
    jobs = options.jobs or default_jobs()
    if options.engine == "local":
        local = LocalEngine(job, scratch, jobs=jobs, gate=gate or gpu_gate(job.environment, jobs))
        yield ForkEngine(local) if options.isolation == "shared-prefix" else local
        return
    if options.isolation != "fresh":
        raise UsageError(
            f"--isolation {options.isolation} forks processes on this machine, which --engine {options.engine} "
            "does not do; leave one of them out"
        )
    try:
        from reprocheck.engine.dask.engine import dask_engine
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("dask", "distributed"):
            raise
        raise UsageError(
            "the engine `dask` needs Dask, which isn't installed; run `python -m pip install 'reprocheck[dask]'`"
        ) from error
    # Where the run's trials were made, block by block: what is missing of a block belongs on the same machine.
    bound = {record.trial.repeat: record.machine for record in done if record.machine is not None}
    with dask_engine(job, scratch, options, bound=bound, note=note) as engine:
        yield engine

"""`reprocheck doctor`: are identical trials identical here, and what do the engine and the machine do to them?"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reprocheck.errors import HarnessError, UsageError

if TYPE_CHECKING:
    from reprocheck.engine.trial import Job

__all__ = ["command"]


@click.command(name="doctor")
@click.option(
    "--engine", type=click.Choice(["local", "dask"]), default="local", help="Where the trials run [default: local]"
)
@click.option("--scheduler", metavar="ADDRESS", help="With --engine dask: the scheduler [default: a cluster in here]")
@click.option("--python", metavar="PATH", help="Interpreter of the trials; it needs nothing of ours installed")
@click.option(
    "--imports", metavar="A,B,…", help="What the trials import [default: those of numpy, torch, cupy that are there]"
)
@click.option("--trials", type=click.IntRange(min=2), default=4, metavar="N", help="Identical trials [default: 4]")
@click.option("--jobs", "-j", type=click.IntRange(min=1), metavar="N", help="Trials at a time [default: the cores]")
@click.option("--timeout", type=float, default=600.0, metavar="S", help="Seconds a trial may take [default: 600]")
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text", help="What goes to stdout")
def command(
    engine: str,
    scheduler: str | None,
    python: str | None,
    imports: str | None,
    trials: int,
    jobs: int | None,
    timeout: float,
    format_: str,
) -> None:
    """Run identical trials through the engine and compare everything; say what it and the machine do to them.

    Exit status: 0 when identical trials are identical, 1 when they are not, 3 when the engine can't run them.
    """
    import msgspec

    from reprocheck.api import resolve_python
    from reprocheck.config import Options
    from reprocheck.doctor.examine import WORKLOAD, examine
    from reprocheck.doctor.tell import lines
    from reprocheck.engine.choose import engine_for
    from reprocheck.engine.environment import user_environment
    from reprocheck.engine.trial import Job

    if scheduler is not None and engine != "dask":
        raise UsageError("--scheduler is about a Dask cluster; add --engine dask, or leave it out")
    base = user_environment()
    job = Job(
        target=WORKLOAD,
        python=resolve_python(python, base),
        cwd=str(Path.cwd()),
        environment=base,
        sys_path=(str(Path.cwd()),),
        timeout=timeout,
    )
    subjects = [name.strip() for name in imports.split(",") if name.strip()] if imports else _installed(job)
    with tempfile.TemporaryDirectory(prefix="reprocheck-doctor-") as scratch:
        options = Options(engine=engine, scheduler=scheduler, jobs=jobs)
        with engine_for(job, Path(scratch), options, note=_note) as chosen:
            found = examine(chosen, job, name=engine, subjects=subjects, trials=trials)
    if format_ == "json":
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(found), indent=2).decode() + "\n")
    else:
        print("\n".join(lines(found)))
    sys.exit(0 if found.healthy else 1)


def _note(text: str) -> None:
    print(text, file=sys.stderr)


def _installed(job: Job) -> list[str]:
    """Those of the usual libraries that the trials' interpreter can import."""
    code = "import importlib.util as u; print(*[n for n in ('numpy', 'torch', 'cupy') if u.find_spec(n)])"
    try:
        answer = subprocess.run(
            [job.python, "-c", code], capture_output=True, text=True, check=False, env=job.environment, cwd=job.cwd
        )
    except OSError as error:
        raise HarnessError(f"`{job.python}` can't be started: {error.strerror}; check --python") from error
    return answer.stdout.split()

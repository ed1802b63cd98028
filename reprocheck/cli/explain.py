"""`reprocheck explain`: rule, cause, remedy and reproducer for a stored run."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import click

from reprocheck.cli.outputs import FORMATS, split_output, write_outputs
from reprocheck.errors import StoreError, UsageError
from reprocheck.model import Study

__all__ = ["command"]


@click.command(name="explain")
@click.argument("run", type=click.Path(path_type=Path), metavar="RUN")
@click.option(
    "--budget", type=click.IntRange(min=0), metavar="N", help="Trials it may cost; what was run before is free"
)
@click.option(
    "--reproducer",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.py",
    help="Also write a script without reprocheck that shows the difference",
)
@click.option("--jobs", "-j", type=int, metavar="N", help="Trials at a time [default: the cores]")
@click.option("--format", "format_", type=click.Choice(FORMATS), default="text", help="What goes to stdout")
@click.option("--output", multiple=True, metavar="FMT:PATH", help="Also write a report to a file (repeatable)")
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", help="Colour on stdout")
@click.option("--quiet", "-q", is_flag=True, help="No progress on stderr")
def command(
    run: Path,
    budget: int | None,
    reproducer: Path | None,
    jobs: int | None,
    format_: str,
    output: tuple[str, ...],
    color: str,
    quiet: bool,
) -> None:
    """Explain the divergence of RUN, a run folder: which order, which state, since which import, and what helps.

    Trials are added to the run, so an interrupted or budgeted search goes on where it ended.
    """
    from reprocheck.api import explain_run
    from reprocheck.report.progress import progress_for

    files = [split_output(text) for text in output]
    with progress_for(quiet=quiet) as progress:
        progress.title(f"explaining {run}")
        study = explain_run(run, budget=budget, jobs=jobs, progress=progress)
    if reproducer is not None:
        _hand_out(study, reproducer)
    write_outputs([study], format_, files, color=color)
    sys.exit(0)


def _hand_out(study: Study, path: Path) -> None:
    """Copy the run's reproducer. Raises `UsageError` where there is none, `StoreError` where it can't be written."""
    if study.reproducer is None:
        raise UsageError(
            f"`{study.run_dir}` has no reproducer: its verdict is {study.verdict}, or the budget ended before"
        )
    from reprocheck.explain.reproducer import DATA_SUFFIX

    made = Path(study.run_dir) / study.reproducer.path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(made, path)
        if made.with_suffix(DATA_SUFFIX).exists():
            # Inputs too large to stand in the script; it looks for them beside itself.
            shutil.copyfile(made.with_suffix(DATA_SUFFIX), path.with_suffix(DATA_SUFFIX))
    except OSError as error:
        raise StoreError(f"cannot write `{path}`: {error.strerror}; choose another path for --reproducer") from error

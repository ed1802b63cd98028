"""`reprocheck state`: what is captured after each import: "which BLAS does my torch use, and who loaded it?"."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import click

from reprocheck.errors import UsageError
from reprocheck.model import Record

__all__ = ["command"]


@click.command(name="state")
@click.argument("orders", nargs=-1, metavar="ORDER…")
@click.option("--diff", "diff", is_flag=True, help="Only what differs between the orders")
@click.option("--json", "as_json", is_flag=True, help="Everything, as JSON")
@click.option("--keys", "catalogue", is_flag=True, help="The table of everything that is captured, and why it matters")
@click.option("--all", "everything", is_flag=True, help="Every key after every import, not only what changed")
@click.option(
    "--key", "patterns", multiple=True, metavar="PATTERN", help="Only keys that match, e.g. 'environ.*' (repeatable)"
)
@click.option("--python", metavar="PATH", help="Interpreter to look at; it needs nothing of ours installed")
@click.option("--env", multiple=True, metavar="K=V", help="Set a variable (repeatable)")
@click.option(
    "--probe",
    "probes",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    help="A snapshot reader of your own",
)
@click.option("--timeout", type=float, default=600.0, metavar="S", help="Seconds an order may take [default: 600]")
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", help="Colour on stdout")
def command(
    orders: tuple[str, ...],
    diff: bool,
    as_json: bool,
    catalogue: bool,
    everything: bool,
    patterns: tuple[str, ...],
    python: str | None,
    env: tuple[str, ...],
    probes: tuple[Path, ...],
    timeout: float,
    color: str,
) -> None:
    """Import the modules of each ORDER (e.g. cupy,torch) in a fresh interpreter; show the state after each."""
    from reprocheck.report.state import print_state, print_state_difference, state_json
    from reprocheck.report.text import console_for

    if catalogue:
        from reprocheck.explain.keys import markdown

        click.echo(markdown().rstrip("\n"))
        return
    if not orders:
        raise UsageError("no order given; name the modules to import, e.g. `reprocheck state torch,mkl`")
    if diff and len(orders) < 2:
        raise UsageError("--diff compares orders: give two, e.g. `reprocheck state --diff torch,cupy cupy,torch`")
    records = _capture(orders, python, env, probes, timeout)
    for record in records:
        if record.failure is not None:
            raise UsageError(
                f"`{','.join(record.trial.order)}`: {record.failure.message}; correct the order or the environment"
            )
    if as_json:
        sys.stdout.write(state_json(records, patterns))
        return
    console = console_for(sys.stdout, color=color)
    if diff:
        print_state_difference(records, patterns, console)
        return
    for index, record in enumerate(records):
        if index:
            console.print()
        print_state(record, patterns, console, everything=everything)


def _capture(
    orders: tuple[str, ...], python: str | None, env: tuple[str, ...], probes: tuple[Path, ...], timeout: float
) -> list[Record]:
    from reprocheck.api import resolve_python
    from reprocheck.cli.run import variables
    from reprocheck.engine.environment import user_environment
    from reprocheck.engine.local import LocalEngine, default_jobs
    from reprocheck.engine.trial import Job
    from reprocheck.model import Target, Trial

    base = user_environment()
    job = Job(
        target=Target(text="(nothing)", kind="nothing"),
        python=resolve_python(python, base),
        cwd=str(Path.cwd()),
        environment=base,
        env=dict(variables(env)),
        timeout=timeout,
        probes=tuple(str(probe.absolute()) for probe in probes),
    )
    trials = [Trial(order=tuple(filter(None, text.split(","))), repeat=index) for index, text in enumerate(orders)]

    def keep(raw: Any, _folder: Path) -> Record:
        record: Record = raw.record
        return record

    with tempfile.TemporaryDirectory(prefix="reprocheck-") as scratch:
        engine = LocalEngine(job, Path(scratch), jobs=default_jobs())
        found = list(engine.run(trials, keep))
    return sorted(found, key=lambda record: record.trial.repeat)

"""`reprocheck run`: the main job."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import click

from reprocheck.cli.outputs import FORMATS, split_output, write_outputs
from reprocheck.config.options import ISOLATIONS, variable_fault
from reprocheck.errors import ReprocheckError, UsageError
from reprocheck.model import Study, Target

__all__ = ["command", "variables"]


@click.command(name="run", context_settings={"ignore_unknown_options": False})
@click.argument("targets", nargs=-1, required=True, metavar="TARGET…")
@click.option(
    "--imports", metavar="A,B,…", help="Subjects, in the order to start from [default: the workload's imports]"
)
@click.option("--orders", metavar="all|pairs|triples|balanced|sample:N|FILE", help="Which orders to run")
@click.option(
    "--max-orders",
    type=click.IntRange(min=1),
    metavar="N",
    help="Orders at most; those that add least coverage go first",
)
@click.option(
    "--fail-fast",
    is_flag=True,
    default=None,
    help="Begin with two orders; end as soon as a divergence is established, else widen to the rest",
)
@click.option(
    "--reduce",
    type=click.Choice(["none", "trace"]),
    help="Run the workload once for orders whose imports load alike, and audit that [default: none]",
)
@click.option("--order", multiple=True, metavar="A,B,…", help="Run this order instead (repeatable)")
@click.option("--repeat", type=int, metavar="N", help="Trials of each order to begin with [default: 3]")
@click.option(
    "--max-repeat", type=int, metavar="N", help="Trials of each order at most, when they disagree [default: 10]"
)
@click.option("--jobs", "-j", type=int, metavar="N", help="Trials at a time [default: the cores]")
@click.option(
    "--engine",
    metavar="local|dask",
    help="Where trials run: here, or on the workers of a Dask cluster (needs reprocheck[dask]) [default: local]",
)
@click.option("--scheduler", metavar="ADDRESS", help="Dask scheduler [default: a cluster inside this process]")
@click.option("--workers", multiple=True, metavar="ADDRESS", help="Use this Dask worker, or this host's (repeatable)")
@click.option(
    "--machines",
    metavar="alike|any",
    help="Refuse machines of different kinds, or take the machine as a factor of its own [default: alike]",
)
@click.option("--shared", metavar="DIR", help="Folder that all machines see, for large outputs")
@click.option("--gpus", type=int, metavar="N", help="GPUs a trial takes, as Dask resource [default: 1 where offered]")
@click.option("--timeout", type=float, metavar="S", help="Seconds a trial may take [default: 600]")
@click.option("--python", metavar="PATH", help="Interpreter of the trials; it needs nothing of ours installed")
@click.option(
    "--env", multiple=True, metavar="K=V", help="Set a variable in every trial; `K=` sets it empty (repeatable)"
)
@click.option(
    "--vary",
    multiple=True,
    metavar="NAME=V1,V2",
    help="Run every order under each value of a variable, or of `device`; an empty value: not set (repeatable)",
)
@click.option("--seed", type=int, metavar="N", help="Seed random, numpy, torch and cupy before the workload runs")
@click.option("--rtol", type=float, metavar="X", help="Relative tolerance [default: bits]")
@click.option("--atol", type=float, metavar="X", help="Absolute tolerance")
@click.option("--ulp", type=int, metavar="N", help="Tolerance in units in the last place")
@click.option("--outputs", multiple=True, metavar="PATTERN", help="Compare only outputs whose names match (repeatable)")
@click.option("--presence", is_flag=True, default=None, help="Also import each subject alone, and none")
@click.option("--no-observer", is_flag=True, help="Capture state in every trial; don't check that capture is harmless")
@click.option(
    "--isolation",
    type=click.Choice(ISOLATIONS),
    help="shared-prefix: try orders by processes forked where their imports part; fresh ones judge [default: fresh]",
)
@click.option("--arg", "argv", multiple=True, metavar="ARG", help="Argument for the workload's sys.argv (repeatable)")
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="DIR", help="Run folder [default: a new one in .reprocheck/runs]"
)
@click.option("--resume", is_flag=True, help="Continue a run that was killed: only what is missing is run")
@click.option("--no-explain", is_flag=True, help="Stop after the verdict")
@click.option(
    "--trace",
    type=click.Choice(["auto", "lines", "ops", "kernels", "none"]),
    help="What to trace in two orders, to say where a divergence starts [default: auto, lines and operators]",
)
@click.option(
    "--trace-export",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write the traces there, one operator a line",
)
@click.option("--budget", type=click.IntRange(min=0), metavar="N", help="Trials that explaining a divergence may cost")
@click.option("--format", "format_", type=click.Choice(FORMATS), default="text", help="What goes to stdout")
@click.option("--output", multiple=True, metavar="FMT:PATH", help="Also write a report to a file (repeatable)")
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", help="Colour on stdout")
@click.option("--quiet", "-q", is_flag=True, help="No progress on stderr")
@click.option("--exit-zero", is_flag=True, help="Exit 0 on a divergence too")
@click.option("--bisect-exit", is_flag=True, help="Exit 125 where no judgement is possible, for `git bisect run`")
def command(targets: tuple[str, ...], format_: str, output: tuple[str, ...], color: str, **options: Any) -> None:
    """Run TARGET (file.py::function, pkg.mod:function, or a script) under every import order.

    Each trial is a fresh interpreter; identical runs are repeated as the control. The verdict says whether
    outputs differ between orders beyond the noise between identical runs, bit for bit and by tolerance.
    """
    files = [split_output(text) for text in output]
    if len(targets) > 1 and options["out"] is not None:
        raise UsageError("--out names one folder, but several targets were given; leave it out or run them one by one")
    _refuse_bad_targets(targets)
    studies: list[Study] = []
    try:
        for target in targets:
            study = one_study(target, command=_command(target), options=dict(options))
            studies.append(study)
    except ReprocheckError:
        if studies:
            write_outputs(studies, format_, files, color=color)
        raise
    write_outputs(studies, format_, files, color=color)
    sys.exit(exit_status(studies, exit_zero=options["exit_zero"], bisect_exit=options["bisect_exit"]))


def _refuse_bad_targets(targets: tuple[str, ...]) -> None:
    """Before the first of them runs: a study may take an hour."""
    from reprocheck.plan.target import parse_target

    for target in targets:
        if target.startswith("-"):
            raise UsageError(f"`{target}` is no target; arguments for the workload go with --arg, e.g. --arg={target}")
        parse_target(target, Path.cwd())


def exit_status(studies: list[Study], *, exit_zero: bool, bisect_exit: bool) -> int:
    """The worst of the studies' codes; mapped for report-only jobs and for `git bisect run`."""
    from reprocheck.errors import EXIT_AGREE, EXIT_CANNOT_JUDGE, EXIT_DIVERGENCE

    if bisect_exit and any(study.verdict in ("fails-everywhere", "inconclusive") for study in studies):
        return EXIT_CANNOT_JUDGE
    status = max(study.exit_code for study in studies)
    if exit_zero and status == EXIT_DIVERGENCE:
        return EXIT_AGREE
    return status


def one_study(target: str | Target, *, command: list[str], options: dict[str, Any]) -> Study:
    """The study of one target with the command line's options; progress goes to stderr."""
    from reprocheck.api import check
    from reprocheck.plan.varied import read_vary
    from reprocheck.report.progress import progress_for

    env = variables(options.pop("env"))
    vary = read_vary(options.pop("vary"))
    imports = _names(options.pop("imports"))
    orders = [_names(text) or [] for text in options.pop("order")]
    observer = False if options.pop("no_observer") else None
    quiet = options.pop("quiet")
    explain = not options.pop("no_explain")
    for name in ("exit_zero", "bisect_exit"):
        options.pop(name)
    with progress_for(quiet=quiet) as progress:
        progress.title(target if isinstance(target, str) else target.text)
        return check(
            target,
            imports,
            order=orders,
            out=options.pop("out"),
            resume=options.pop("resume"),
            argv=options.pop("argv"),
            progress=progress,
            command=command,
            env=env or None,
            vary=vary or None,
            observer=observer,
            explain=explain,
            outputs=list(options.pop("outputs")) or None,
            workers=list(options.pop("workers", ())) or None,
            **options,
        )


def _names(text: str | None) -> list[str] | None:
    if text is None:
        return None
    return [name.strip() for name in text.split(",") if name.strip()]


def variables(items: tuple[str, ...]) -> dict[str, str]:
    """The variables of `--env`. Raises `UsageError`."""
    found = {}
    for item in items:
        name, equals, value = item.partition("=")
        if not equals or not name:
            raise UsageError(f"--env `{item}` is not NAME=VALUE; write e.g. --env OMP_NUM_THREADS=1")
        fault = variable_fault(name, value)
        if fault:
            raise UsageError(f"--env `{item}`: {fault}")
        found[name] = value
    return found


def _command(target: str) -> list[str]:
    """What the user typed, for one target, without what must not be repeated (`--out`, `--resume`)."""
    typed = sys.argv[2:] if sys.argv[1:2] == ["run"] else []
    return ["reprocheck", "run", target, *repeatable(typed)]


def repeatable(typed: list[str]) -> list[str]:
    """The options among the words typed, without those of which a second run wants others."""
    words = []
    skip = False
    for index, word in enumerate(typed):
        if skip:
            skip = False
            continue
        if word in ("--resume", "--quiet", "-q"):
            continue
        if word in ("--out", "--output", "--format", "--color"):
            skip = True
            continue
        if word.startswith(("--out=", "--output=", "--format=", "--color=")):
            continue
        takes_value = index > 0 and typed[index - 1].startswith("-") and "=" not in typed[index - 1]
        if word.startswith("-") or (takes_value and typed[index - 1] not in _FLAGS):
            words.append(word)
    return words


_FLAGS = {
    "--fail-fast",
    "--presence",
    "--no-observer",
    "--no-explain",
    "--exit-zero",
    "--bisect-exit",
    "--resume",
    "--quiet",
    "-q",
}


def command_text(words: list[str]) -> str:
    """The command as a shell line."""
    return shlex.join(words)

"""`reprocheck pytest`: a whole test suite, unchanged, under every import order."""

from __future__ import annotations

import shlex
import sys
from typing import Any

import click

from reprocheck.cli.outputs import split_output, write_outputs
from reprocheck.cli.run import command as run_command, exit_status, one_study, repeatable
from reprocheck.model import Target

__all__ = ["command"]

# What has no meaning for a suite: it has no `sys.argv` of its own.
_NOT_HERE = ("targets", "argv")


@click.command(name="pytest", params=[param for param in run_command.params if param.name not in _NOT_HERE])
@click.argument("args", nargs=-1, type=click.UNPROCESSED, metavar="[-- ARGS…]")
def command(args: tuple[str, ...], format_: str, output: tuple[str, ...], color: str, **options: Any) -> None:
    r"""Run `pytest ARGS` once per import order and repeat, each in a fresh interpreter, and compare test by test.

    Outcomes, failure texts and the values that tests give to `reprocheck.record` (or to the fixture `record`) are
    compared. The suite needs no change and its environment nothing but pytest. A test that fails alike in every order
    is told but is no divergence. Causes are looked for with --budget N only, since every trial is a run of the suite.

    \b
    Example: reprocheck pytest --imports cupy,torch -- tests/ -k "not slow"
    """
    files = [split_output(text) for text in output]
    # Explaining runs the suite some forty times more: only for those who say how often.
    options["no_explain"] = options["no_explain"] or options["budget"] is None
    target = Target(text=shlex.join(["pytest", *args]), kind="pytest", args=args)
    study = one_study(target, command=_command(args), options={**options, "argv": ()})
    write_outputs([study], format_, files, color=color)
    sys.exit(exit_status([study], exit_zero=options["exit_zero"], bisect_exit=options["bisect_exit"]))


def _command(args: tuple[str, ...]) -> list[str]:
    """What the user typed, without what must not be repeated."""
    typed = sys.argv[2:] if sys.argv[1:2] == ["pytest"] else []
    ours = typed[: typed.index("--")] if "--" in typed else typed[: len(typed) - len(args)]
    return ["reprocheck", "pytest", *repeatable(ours), *(["--", *args] if args else [])]

"""`reprocheck selftest`: does the instrument see what is planted, on this machine?"""

from __future__ import annotations

import sys

import click

from reprocheck.config.options import ISOLATIONS

__all__ = ["command"]


@click.command(name="selftest")
@click.option("--quick", is_flag=True, help="A part of the faults that ends within a minute on two cores")
@click.option(
    "--isolation",
    type=click.Choice(ISOLATIONS),
    default="fresh",
    help="shared-prefix: with orders tried by forked processes, too [default: fresh]",
)
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text", help="What goes to stdout")
@click.option("--quiet", "-q", is_flag=True, help="No progress on stderr")
def command(quick: bool, isolation: str, format_: str, quiet: bool) -> None:
    """Plant faults of every kind in a temporary folder, run the whole line on each, and compare planted with found.

    Exit status 0 only when everything planted was found and nothing else was named.
    """
    import msgspec

    from reprocheck.selftest.run import run_selftest
    from reprocheck.selftest.score import Case
    from reprocheck.selftest.table import lines, row

    def told(case: Case) -> None:
        if not quiet:
            print(row(case), file=sys.stderr, flush=True)

    result = run_selftest(quick=quick, isolation=isolation, told=told)
    if format_ == "json":
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(result), indent=2).decode() + "\n")
    else:
        print("\n".join(lines(result)))
    sys.exit(0 if result.passed else 1)

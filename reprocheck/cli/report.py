"""`reprocheck report`: tell a stored run again."""

from __future__ import annotations

from pathlib import Path

import click

from reprocheck.cli.outputs import FORMATS, split_output, write_outputs

__all__ = ["command"]


@click.command(name="report")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--format", "format_", type=click.Choice(FORMATS), default="text", help="What goes to stdout")
@click.option("--output", multiple=True, metavar="FMT:PATH", help="Also write a report to a file (repeatable)")
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", help="Colour on stdout")
def command(run: Path, format_: str, output: tuple[str, ...], color: str) -> None:
    """Print the report of the run folder RUN again, in any format. Exits 0."""
    from reprocheck.store.run import Run

    write_outputs([Run(run).study()], format_, [split_output(text) for text in output], color=color)

"""`reprocheck diff`: the comparison alone, on two runs, two records or two files."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from reprocheck.errors import EXIT_AGREE, EXIT_DIVERGENCE

__all__ = ["command"]


@click.command(name="diff")
@click.argument("a", type=click.Path(path_type=Path))
@click.argument("b", type=click.Path(path_type=Path))
@click.option(
    "--rtol", multiple=True, metavar="[PATTERN:]X", help="Relative tolerance, B is the reference (repeatable)"
)
@click.option("--atol", multiple=True, metavar="[PATTERN:]X", help="Absolute tolerance (repeatable)")
@click.option("--ulp", multiple=True, metavar="[PATTERN:]N", help="Tolerance in units in the last place (repeatable)")
@click.option("--outputs", multiple=True, metavar="PATTERN", help="Compare only outputs whose names match (repeatable)")
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text", help="What goes to stdout")
@click.option("--html", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write a page to look at")
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", help="Colour on stdout")
def command(
    a: Path,
    b: Path,
    rtol: tuple[str, ...],
    atol: tuple[str, ...],
    ulp: tuple[str, ...],
    outputs: tuple[str, ...],
    format_: str,
    html: Path | None,
    color: str,
) -> None:
    """Compare A with B: run folders, records (RUN/records/000000.json), .safetensors, .npz or .npy files.

    Exits 0 when they agree (bit for bit, or within the tolerance), 1 when they differ, 2 when they can't be compared.
    """
    import msgspec

    from reprocheck.compare.arrays import compare_maps
    from reprocheck.compare.inputs import open_outputs
    from reprocheck.compare.tolerance import parse_rules, tolerance_for, unmatched
    from reprocheck.report.text import console_for, print_differences

    rules = parse_rules(rtol=rtol, atol=atol, ulp=ulp)
    left, right = open_outputs(a, outputs), open_outputs(b, outputs)
    differences = compare_maps(left, right, tolerance_for(rules))
    notes = unmatched(rules, differences)
    agree = all(item.kind == "equal" or item.within for item in differences.values())
    if html is not None:
        from reprocheck.report.documents import write_page
        from reprocheck.report.html.comparison import diff_html

        write_page(html, diff_html(differences, (str(a), str(b)), (left, right)))
    if format_ == "json":
        document = {
            "schema": "reprocheck/diff",
            "schema_version": 1,
            "a": str(a),
            "b": str(b),
            "agree": agree,
            "notes": notes,
            "outputs": differences,
        }
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n")
    else:
        print_differences(differences, (str(a), str(b)), console_for(sys.stdout, color=color))
        for note in notes:
            click.echo(f"  note: {note}")
    sys.exit(EXIT_AGREE if agree else EXIT_DIVERGENCE)

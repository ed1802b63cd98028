"""`reprocheck report`: tell stored runs again."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from reprocheck.cli.outputs import FORMATS, split_output, write_reports
from reprocheck.report.evidence import Evidence

__all__ = ["command"]


@click.command(name="report")
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN…")
@click.option("--html", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write a page to look at")
@click.option("--open", "open_", is_flag=True, help="Open that page in the browser [default file: report.html in RUN]")
@click.option(
    "--history",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    metavar="DIR",
    help="Show how each workload fared in the run folders below DIR",
)
@click.option(
    "--redact", is_flag=True, help="Shorten paths, leave out values and source: a report that may leave the company"
)
@click.option(
    "--redact-names", is_flag=True, help="Also hash the names of files, variables and modules that aren't public"
)
@click.option("--format", "format_", type=click.Choice(FORMATS), default="text", help="What goes to stdout")
@click.option("--output", multiple=True, metavar="FMT:PATH", help="Also write a report to a file (repeatable)")
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", help="Colour on stdout")
def command(
    runs: tuple[Path, ...],
    html: Path | None,
    open_: bool,
    history: Path | None,
    redact: bool,
    redact_names: bool,
    format_: str,
    output: tuple[str, ...],
    color: str,
) -> None:
    """Print the report of each RUN again, in any format: run folders, folders of run folders, or JSON reports.

    Of several studies the HTML is an index, the worst first, with a page for each beside it. Exits 0.
    """
    from reprocheck.report.history import collect, run_folders
    from reprocheck.report.redact import Redactions
    from reprocheck.store.run import Run

    files = [split_output(text) for text in output]
    found = [item for run in runs for item in collect(run)]
    if open_ and html is None:
        html = _default_page(runs)
    if html is not None:
        files.append(("html", html))
    past = [(Run(folder).study(), folder) for folder in run_folders(history)] if history is not None else None
    redactions = Redactions(names=redact_names) if redact or redact_names else None
    pages = "html" in {format_, *(name for name, _ in files)}
    evidence = []
    for study, folder in found:
        redaction = redactions.of(study, folder) if redactions is not None else None
        evidence.append(
            Evidence.of(study, folder, redaction=redaction) if pages else Evidence(study, redaction=redaction)
        )
    before = None
    if past is not None:
        before = [study if redactions is None else redactions.of(study, folder).study(study) for study, folder in past]
    write_reports(evidence, format_, files, color=color, history=before)
    if html is not None:
        print(f"wrote {html}", file=sys.stderr)
    if open_ and html is not None:
        click.launch(html.absolute().as_uri())


def _default_page(runs: tuple[Path, ...]) -> Path:
    """In the run folder, if it is just one; else here."""
    return runs[0] / "report.html" if len(runs) == 1 and (runs[0] / "spec.json").is_file() else Path("report.html")

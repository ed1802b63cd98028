"""Writing reports: one format to stdout, any number to files."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from reprocheck.errors import ReprocheckError, StoreError, UsageError
from reprocheck.model import Study
from reprocheck.report.documents import FORMATS, document, write_html
from reprocheck.report.evidence import Evidence

__all__ = ["FORMATS", "render", "split_output", "write_outputs", "write_reports"]


def split_output(text: str) -> tuple[str, Path]:
    """`json:path` as its parts. Raises `UsageError` for an unknown format."""
    name, colon, path = text.partition(":")
    if not colon or name not in FORMATS or not path:
        raise UsageError(f"--output `{text}` is not FORMAT:PATH with a format out of {', '.join(FORMATS)}")
    return name, Path(path)


def render(studies: Sequence[Study], format_: str) -> str:
    """The studies in one format, as a string without colours; HTML draws from their run folders."""
    return document([Evidence.of(study) for study in studies], format_)


def write_outputs(studies: list[Study], format_: str, files: list[tuple[str, Path]], *, color: str = "auto") -> None:
    """Write files first (their reader may be waiting), then stdout; HTML draws from the studies' run folders."""
    formats = {format_, *(name for name, _ in files)}
    # Only pages need more than the study: a run folder of many trials takes a while to read.
    evidence = [Evidence.of(study) if "html" in formats else Evidence(study) for study in studies]
    write_reports(evidence, format_, files, color=color)


def write_reports(
    evidence: Sequence[Evidence],
    format_: str,
    files: Sequence[tuple[str, Path]],
    *,
    color: str = "auto",
    history: Sequence[Study] | None = None,
) -> None:
    """As `write_outputs`, from evidence; with `history`, HTML files are an index that shows how workloads fared before.

    In a GitHub job, asking for `github` anywhere also appends to the job's summary.
    """
    studies = [item.study for item in evidence]
    failed: list[ReprocheckError] = []
    for name, path in files:
        try:
            _write(evidence, name, path, history)
        except ReprocheckError as error:  # told at the end: what can be written is
            failed.append(error)
    if "github" in (format_, *(name for name, _ in files)):
        _summary(studies)
    if format_ == "text":
        from reprocheck.report.text import console_for, print_study

        console = console_for(sys.stdout, color=color)
        for index, study in enumerate(studies):
            if index:
                console.print()
            print_study(study, console)
    else:
        sys.stdout.write(document(evidence, format_))
    sys.stdout.flush()
    if failed:
        raise failed[0]


def _write(evidence: Sequence[Evidence], name: str, path: Path, history: Sequence[Study] | None) -> None:
    if name == "html":
        write_html(evidence, path, history)
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(document(evidence, name), encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise StoreError(f"cannot write `{path}`: {error.strerror}; choose another path for --output") from error


def _summary(studies: Sequence[Study]) -> None:
    from reprocheck.report.github import append_summary

    try:
        append_summary(studies)
    except OSError as error:
        raise StoreError(f"cannot write the job summary (GITHUB_STEP_SUMMARY): {error.strerror}") from error

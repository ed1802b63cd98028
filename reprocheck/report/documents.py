"""Studies as documents: one name a format, and files for those that are more than one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from reprocheck.errors import StoreError
from reprocheck.model import Study
from reprocheck.report.evidence import Evidence

__all__ = ["FORMATS", "document", "write_html", "write_page"]

FORMATS = ("text", "json", "markdown", "junit", "sarif", "github", "html")


def document(evidence: Sequence[Evidence], format_: str) -> str:
    """The studies in one format out of `FORMATS`, as a string without colours.

    Raises `UsageError` for HTML when Jinja2 is not installed.
    """
    studies = [item.study for item in evidence]
    match format_:
        case "json":
            from reprocheck.report.json import studies_json

            return studies_json(studies)
        case "markdown":
            from reprocheck.report.markdown import studies_markdown

            return studies_markdown(studies)
        case "junit":
            from reprocheck.report.junit import junit_xml

            return junit_xml(studies)
        case "sarif":
            from reprocheck.report.sarif import sarif_json

            return sarif_json(studies)
        case "github":
            from reprocheck.report.github import workflow_commands

            return workflow_commands(studies)
        case "html":
            return _html(evidence)
        case _:
            return _text(studies)


def _text(studies: Sequence[Study]) -> str:
    import io

    from reprocheck.report.text import console_for, print_study

    stream = io.StringIO()
    for index, study in enumerate(studies):
        if index:
            stream.write("\n")
        print_study(study, console_for(stream, color="never"))
    return stream.getvalue()


def _html(evidence: Sequence[Evidence]) -> str:
    """One study's page; of several, the index alone, since a stream has no other files to link to."""
    if len(evidence) == 1:
        from reprocheck.report.html import study_html

        return study_html(evidence[0])
    from reprocheck.report.html.index import index_html

    return index_html([item.study for item in evidence], {}, [], redacted=any(item.redacted for item in evidence))


def write_html(evidence: Sequence[Evidence], file: Path, history: Iterable[Study] | None = None) -> list[Path]:
    """Write `file`: the page of one study, or an index of several (or with `history`) and their pages in `FILE.pages/`.

    Returns what was written, `file` first. Raises `StoreError` if it can't be, `UsageError` when Jinja2 is missing.
    """
    from reprocheck.report.history import series_of
    from reprocheck.report.html import study_html
    from reprocheck.report.html.index import index_html

    if len(evidence) == 1 and history is None:
        write_page(file, study_html(evidence[0]))
        return [file]
    folder = file.with_name(file.stem + ".pages")
    studies = [item.study for item in evidence]
    pages = [folder / f"{number:03d}.html" for number in range(1, len(evidence) + 1)]
    for item, page in zip(evidence, pages, strict=True):
        write_page(page, study_html(item))
    links = {place: f"{_quoted(folder.name)}/{page.name}" for place, page in enumerate(pages)}
    series = series_of(history or (), studies)
    write_page(file, index_html(studies, links, series, redacted=any(item.redacted for item in evidence)))
    return [file, *pages]


def _quoted(name: str) -> str:
    from urllib.parse import quote

    # A name with a colon in it would be taken for an address with a scheme.
    return "./" + quote(name)


def write_page(path: Path, text: str) -> None:
    """Write a page, whole or not at all. Raises `StoreError` if it can't be."""
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(text, encoding="utf-8", errors="replace")
        temporary.replace(path)
    except OSError as error:
        raise StoreError(f"cannot write `{path}`: {error.strerror}; choose another path") from error

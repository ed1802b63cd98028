"""Writing reports: one format to stdout, any number to files."""

from __future__ import annotations

import io
import sys
from pathlib import Path

from reprocheck.errors import StoreError, UsageError
from reprocheck.model import Study

__all__ = ["FORMATS", "render", "split_output", "write_outputs"]

FORMATS = ("text", "json")


def split_output(text: str) -> tuple[str, Path]:
    """`json:path` as its parts. Raises `UsageError` for an unknown format."""
    name, colon, path = text.partition(":")
    if not colon or name not in FORMATS or not path:
        raise UsageError(f"--output `{text}` is not FORMAT:PATH with a format out of {', '.join(FORMATS)}")
    return name, Path(path)


def render(studies: list[Study], format_: str) -> str:
    """The studies in one format, as a string without colours."""
    if format_ == "json":
        from reprocheck.report.json import study_json

        if len(studies) == 1:
            return study_json(studies[0])
        return "[\n" + ",\n".join(study_json(study).rstrip() for study in studies) + "\n]\n"
    from reprocheck.report.text import console_for, print_study

    stream = io.StringIO()
    for index, study in enumerate(studies):
        if index:
            stream.write("\n")
        print_study(study, console_for(stream, color="never"))
    return stream.getvalue()


def write_outputs(studies: list[Study], format_: str, files: list[tuple[str, Path]], *, color: str = "auto") -> None:
    """Write files first (their reader may be waiting), then stdout."""
    for name, path in files:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(render(studies, name), encoding="utf-8")
        except OSError as error:
            raise StoreError(f"cannot write `{path}`: {error.strerror}; choose another path for --output") from error
    if format_ == "text":
        from reprocheck.report.text import console_for, print_study

        console = console_for(sys.stdout, color=color)
        for index, study in enumerate(studies):
            if index:
                console.print()
            print_study(study, console)
    else:
        sys.stdout.write(render(studies, format_))
    sys.stdout.flush()

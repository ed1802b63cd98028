"""What GitHub's jobs show: annotations at the test, and a summary in Markdown.

Commands: https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reprocheck.pytest_plugin.session import Check

__all__ = ["annotation", "markdown"]


def annotation(check: Check, study: Mapping[str, Any]) -> str:
    """An error at the test's line."""
    file, line, _ = check.location
    place = f"file={_property(file)},line={(line or 0) + 1},title={_property(f'reprocheck: {check.verdict}')}"
    return f"::error {place}::{_message(str(study.get('headline', check.verdict)))}"


def markdown(rows: Iterable[tuple[Check, str, Mapping[str, Any]]]) -> str:
    """A table with every check, divergences first."""
    ordered = sorted(rows, key=lambda row: (row[2].get("exit_code", 3) == 0, row[0].test))
    lines = ["### Import order checks", "", "| test | outcome | study |", "|---|---|---|"]
    for check, outcome, study in ordered:
        lines.append(f"| {_cell(check.test)} | {outcome} | {_cell(str(study.get('headline', check.verdict)))} |")
    return "\n".join(lines) + "\n\n"


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")


def _cell(text: str) -> str:
    """Text in a table's cell: nothing of it is markup, apart from the code spans that headlines have."""
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace("|", "\\|")
    return " ".join(escaped.split())

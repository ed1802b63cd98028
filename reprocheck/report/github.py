"""What GitHub's jobs show: annotations at the lines they are about, and a job summary.

Commands: https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from reprocheck.headline import outcomes_text
from reprocheck.model import Study
from reprocheck.report.markdown import studies_markdown
from reprocheck.report.places import Anchor, anchor_of, repository_root, study_anchor, test_anchor
from reprocheck.report.plain import one_line

__all__ = ["append_summary", "workflow_commands"]

MAX_ANNOTATIONS = 10
"""Of a level and step, GitHub shows no more."""
MAX_SUMMARY = 1_000_000
"""Bytes; GitHub takes 1 MiB a step and drops what is larger."""


def workflow_commands(studies: Sequence[Study], *, root: Path | None = None) -> str:
    """Workflow commands, one a line: errors for divergences, warnings for what is no verdict, causes as notices."""
    base = (root or repository_root()).resolve()
    lines: list[str] = []
    for study in sorted(studies, key=lambda study: study.exit_code == 0):
        place = study_anchor(study, base)
        level = {0: "notice", 1: "error"}.get(study.exit_code, "warning")
        lines.append(_command(level, place, f"reprocheck: {study.verdict}", study.headline))
        for test in study.suite.differing if study.suite is not None else ():
            at = test_anchor(test.test, base) or place
            lines.append(_command("error", at, f"reprocheck: {test.verdict}", f"{test.test}: {outcomes_text(test)}"))
        for cause in study.causes:
            at = anchor_of(cause.event.file, cause.event.line, base) if cause.event is not None else None
            if at is not None:
                lines.append(_command("notice", at, f"reprocheck: {cause.status} cause", cause.text))
        if study.first_line is not None:
            at = anchor_of(study.first_line.file, study.first_line.line, base)
            if at is not None:
                lines.append(_command("notice", at, "reprocheck: where it starts", study.first_line.text))
    shown: list[str] = []
    counts: dict[str, int] = {}
    for line in lines:
        level = line.partition(" ")[0]
        counts[level] = counts.get(level, 0) + 1
        if counts[level] <= MAX_ANNOTATIONS:
            shown.append(line)
    return "".join(line + "\n" for line in shown)


def append_summary(studies: Sequence[Study]) -> Path | None:
    """Append the studies to the job summary, where a job has one; returns the file."""
    name = os.environ.get("GITHUB_STEP_SUMMARY")
    if not name:
        return None
    path = Path(name)
    room = MAX_SUMMARY - (path.stat().st_size if path.exists() else 0)
    text = studies_markdown(studies)
    data = text.encode("utf-8", "replace")
    if len(data) > room:
        headlines = "".join(f"- {study.verdict}: {one_line(study.workload)}\n" for study in studies)
        data = headlines.encode("utf-8", "replace")[: max(0, room)]
    with path.open("ab") as file:
        file.write(data + b"\n")
    return path


def _command(level: str, place: Anchor | None, title: str, message: str) -> str:
    properties = f"title={_property(title)}"
    if place is not None:
        properties = f"file={_property(place.file)},line={place.line},{properties}"
    return f"::{level} {properties}::{_message(one_line(message, 2000))}"


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")

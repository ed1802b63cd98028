"""The explanation of a study in a few lines that a tired person can act on: rule, cause, remedy, reproducer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from reprocheck.model import Cause, Remedy, Study

__all__ = ["explanation"]

LEAST_BUDGET = 40
MOST_CONSEQUENCES = 6
MOST_FAILED = 3
KNOWN_VALUE = 80
_INSTALLED = re.compile(r"`[^`\s]*/(?:site|dist)-packages/([^`]+)`")
"""A path below the folder of installed packages: from there on it is known to its readers."""


def explanation(study: Study) -> list[tuple[str, str]]:
    """(what it is, its text) in reading order: `rule`, `cause`, `shown`, `follows`, `remedy`, then what to paste.

    Empty for a study that was not explained.
    """
    return list(_lines(study))


def _lines(study: Study) -> Iterator[tuple[str, str]]:
    if study.rule is not None:
        yield "rule", study.rule.sentence
    for cause in study.causes:
        yield "cause", _cause(cause)
    for text in dict.fromkeys(cause.text for cause in study.causes if cause.status != "unknown"):
        yield "shown", _INSTALLED.sub(r"`\1`", text)
    if study.consequences:
        keys = [f"`{item.key}`" for item in study.consequences]
        more = f" and {len(keys) - MOST_CONSEQUENCES} more" if len(keys) > MOST_CONSEQUENCES else ""
        yield "follows", f"effects of that, no causes of their own: {', '.join(keys[:MOST_CONSEQUENCES])}{more}"
    if study.remedy is not None:
        yield from _remedy(study.remedy)
    if study.reproducer is not None:
        yield "reproducer", study.reproducer.text
    if study.budget is not None and not study.budget.complete:
        more = f"reprocheck explain {_run(study)} --budget {max(2 * study.budget.limit, LEAST_BUDGET)}"
        yield "budget", f"the budget of {study.budget.limit} trials ended the search; go on with `{more}`"


def _cause(cause: Cause) -> str:
    if cause.status == "unknown":
        return f"unknown: {cause.text}" + _place(cause)
    if cause.orders[0] == cause.orders[1]:
        return f"{cause.status}: {cause.kind} (`{cause.key}`)"
    text = f"{cause.status}: {_what(cause)} {_value(cause.bad)} in group {cause.groups[1]}, "
    text += f"{_value(cause.good)} in group {cause.groups[0]}{_place(cause)}"
    if cause.needs:
        text += f"; together with {', '.join(f'`{key}`' for key in cause.needs)}"
    return text


def _what(cause: Cause) -> str:
    """Subject and verb: whoever has to act at night should not need to know how keys are spelt."""
    parts = cause.key.split(".")
    if cause.key.startswith("environ.") and len(parts) > 2:
        return f"{cause.kind} variable `{'.'.join(parts[2:])}` is"
    if cause.key.startswith("libraries.binding."):
        return f"{cause.kind}: `{_short('.'.join(parts[2:-1]))}` takes its {parts[-1]} functions from"
    if cause.key.startswith("libraries.soname."):
        return f"{cause.kind}: what is loaded as `{'.'.join(parts[2:])}` is"
    return f"{cause.kind} `{cause.key}` is"


def _place(cause: Cause) -> str:
    event = cause.event
    if event is None:
        return ""
    by = f"`import {event.by}`" if event.by else ""
    if event.file:
        line = f":{event.line}" if event.line else ""
        where = f"{_short(event.file)}{line}"
        return f"; changed by {by} ({where})" if by else f"; changed in {where}"
    return f"; changed by {by}" if by else ""


def _short(file: str) -> str:
    """A file below site-packages by its path there, one below the working folder relative to it."""
    for root in ("/site-packages/", "/dist-packages/"):
        if root in file:
            return file.rpartition(root)[2]
    return _relative(file)


def _relative(path: str) -> str:
    return path.removeprefix(f"{Path.cwd()}/")


def _value(value: object) -> str:
    if value == "absent":
        return "absent"
    text = ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
    text = _INSTALLED.sub(r"`\1`", f"`{text}`")[1:-1]
    return f"`{text if len(text) <= KNOWN_VALUE else text[: KNOWN_VALUE - 1] + '…'}`"


def _remedy(remedy: Remedy) -> Iterator[tuple[str, str]]:
    if not remedy.agrees:
        yield "remedy", f"none found; tried: {'; '.join(remedy.failed)}" if remedy.failed else remedy.text
        for text in remedy.untried:
            yield "or", text
        return
    group = f", in group {remedy.group}" if remedy.group else ", in a group of their own"
    text = f"{remedy.text}; tried: all {remedy.orders} orders agree{group} ({remedy.tried_trials} trials)"
    if remedy.failed:
        more = f" and {len(remedy.failed) - MOST_FAILED} more" if len(remedy.failed) > MOST_FAILED else ""
        text += f"; did not help: {'; '.join(remedy.failed[:MOST_FAILED])}{more}"
    yield "remedy", text
    for place, lines in list(remedy.snippets.items())[:2]:
        yield f"in {place}" if place == "shell" else place, lines
    for text in remedy.untried:
        yield "or", text


def _run(study: Study) -> str:
    return _relative(study.run_dir)

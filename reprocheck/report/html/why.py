"""Why: causes with what was tried, and the state that differs, side by side, each with the line that set it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reprocheck.headline import order_text
from reprocheck.model import Cause, Change, Event, StateDifference
from reprocheck.report.evidence import Evidence
from reprocheck.report.html.orders import Letters
from reprocheck.report.html.text import Limits
from reprocheck.report.source import Excerpt
from reprocheck.report.text import value_text

__all__ = ["states_view", "why_view"]

MOST_GROUPS = 6
MOST_ITEMS = 12
MOST_EXCERPTS = 3


def why_view(evidence: Evidence, letters: Letters, limits: Limits) -> dict[str, Any]:
    """The rule, the causes, what follows from them, and the differing state."""
    study = evidence.study
    return {
        "rule": study.rule,
        "causes": [_cause(cause, evidence, letters) for cause in study.causes[: limits.states]],
        "more_causes": max(0, len(study.causes) - limits.states),
        "consequences": [
            {
                "key": item.key,
                "cause": item.cause,
                "good": value_text(item.good, limits.name),
                "bad": value_text(item.bad, limits.name),
            }
            for item in study.consequences[: limits.states]
        ],
        "budget": study.budget,
        "states": states_view(study.state_differences, letters, limits, evidence),
        "hazards": states_view(study.hazards, letters, limits, evidence),
    }


def _cause(cause: Cause, evidence: Evidence, letters: Letters) -> dict[str, Any]:
    event = cause.event
    return {
        "cause": cause,
        "good": _lines(cause.good),
        "bad": _lines(cause.bad),
        "sides": [
            (group, letters.shade(group), order_text(order))
            for group, order in zip(cause.groups, cause.orders, strict=False)
        ],
        "event": event,
        "excerpt": evidence.excerpt(event.file, event.line) if event is not None else None,
    }


def states_view(
    differences: Sequence[StateDifference], letters: Letters, limits: Limits, evidence: Evidence
) -> dict[str, Any] | None:
    """Differing keys as a table with one column a group (or an order, for hazards); None without any."""
    if not differences:
        return None
    columns = list(dict.fromkeys(change.group for item in differences for change in item.changes))[:MOST_GROUPS]
    rows: list[dict[str, Any]] = [
        {
            "item": item,
            "cells": [_cell(item, name) for name in columns],
            "excerpt": _excerpt(item, evidence) if number < MOST_EXCERPTS else None,
        }
        for number, item in enumerate(differences[: limits.states])
    ]
    return {
        "columns": [(name, letters.shade(name)) for name in columns],
        "serious": [row for row in rows if row["item"].severity in ("numeric", "performance")],
        "others": [row for row in rows if row["item"].severity not in ("numeric", "performance")],
        "count": len(differences),
        "more": max(0, len(differences) - limits.states),
    }


def _excerpt(item: StateDifference, evidence: Evidence) -> Excerpt | None:
    """The line that set it, in the first group in which one was seen."""
    for change in item.changes:
        if change.event is not None:
            found = evidence.excerpt(change.event.file, change.event.line)
            if found is not None:
                return found
    return None


def _cell(item: StateDifference, column: str) -> dict[str, Any] | None:
    change = next((change for change in item.changes if change.group == column), None)
    if change is None:
        return None
    others = [other.value for other in item.changes if other is not change]
    event = change.event
    return {
        "lines": _lines(change.value, others),
        "since": _since(change),
        "where": _where(event) if event is not None and event.file else "",
        "module": event.module if event is not None else None,
    }


def _where(event: Event) -> str:
    return f"{value_text(event.file)}:{event.line}" if event.line else value_text(event.file)


def _since(change: Change) -> str:
    if change.value == "absent":
        return ""
    if change.phase.startswith("t1:"):
        return f"since `import {change.phase[3:]}`"
    return {"t0": "from the start", "t3": "during the workload"}.get(change.phase, "")


def _lines(value: Any, others: Sequence[Any] = ()) -> list[tuple[str, bool]]:
    """A value line by line, and for lists whether a line is missing on another side."""
    if not isinstance(value, (list, tuple)):
        return [(_shown(value), False)]
    elsewhere = [set(map(str, other)) for other in others if isinstance(other, (list, tuple))]
    lines = [(item, bool(elsewhere) and any(str(item) not in seen for seen in elsewhere)) for item in value]
    if len(lines) > MOST_ITEMS:
        # What differs is why the list is shown.
        lines = [line for line in lines if line[1]][:MOST_ITEMS] or lines[:MOST_ITEMS]
    told = [(_shown(item), only) for item, only in lines]
    if len(value) > len(told):
        told.append((f"… and {len(value) - len(told)} more", False))
    return told or [("none", False)]


def _shown(value: Any) -> str:
    # Cut before it is looked at: a value may be of any length.
    return value_text(value[:2000] if isinstance(value, str) else value, 400)

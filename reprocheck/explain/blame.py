"""The line that changed a piece of state, from trials that watch it: first by module, then by line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reprocheck.explain.asking import Asker
from reprocheck.model import Origin, Record, Trial

__all__ = ["find_line", "line_in"]


def find_line(key: str, trial: Trial, by: str | None, asker: Asker) -> Origin | None:
    """Who changed `key` last before the workload, while the subject `by` (any, for None) is imported.

    One trial, or two when no known setter was called. None when nobody was seen. Raises `BudgetSpentError`.
    """
    reports = _watch(key, trial, by, asker, ())
    found = line_in(reports, key)
    if found is None or found.line is not None:
        return found
    module = next(str(item["module"]) for item in reversed(reports) if item.get("name") == key)
    closer = line_in(_watch(key, trial, by, asker, (module,)), key)
    return closer if closer is not None and closer.line is not None else found


def line_in(reports: Sequence[Mapping[str, Any]], key: str) -> Origin | None:
    """The last change of `key`, with the line of the setter that was called in the same module just before."""
    setter: Mapping[str, Any] | None = None
    found: Origin | None = None
    for item in reports:
        if item.get("kind") == "setter":
            setter = item
        elif item.get("kind") == "change" and item.get("name") == key:
            line, file = item.get("line"), item.get("file")
            if line is None and setter is not None and setter.get("module") == item.get("module"):
                line, file = setter.get("line"), setter.get("file")
            found = Origin(by=item.get("module"), file=file, line=line)
            setter = None
    return found


def _watch(key: str, trial: Trial, by: str | None, asker: Asker, modules: Sequence[str]) -> list[dict[str, Any]]:
    subjects = trial.order
    begin = f"before:{by}" if by in subjects else "t0"
    end = f"after:{by}" if by in subjects else f"after:{subjects[-1]}" if subjects else "t2"
    watch = {"do": "blame", "id": "blame"}
    actions = (
        {**watch, "at": begin, "mode": "begin", "keys": [key], "modules": list(modules)},
        {**watch, "at": end, "mode": "end"},
    )
    record = asker.records([Trial(order=trial.order, repeat=0, presence=trial.presence, actions=actions)])[0]
    return _told(record)


def _told(record: Record) -> list[dict[str, Any]]:
    for report in record.actions:
        if report.get("do") == "blame" and report.get("ok") and isinstance(report.get("now"), list):
            return list(report["now"])
    return []

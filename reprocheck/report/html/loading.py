"""What was loaded when: a timeline for one order of each group, with the moments at which settings changed."""

from __future__ import annotations

from typing import Any

from reprocheck.headline import order_text
from reprocheck.model import Event, Record, StateDifference, Study
from reprocheck.report.evidence import Evidence
from reprocheck.report.html.orders import Letters
from reprocheck.report.html.plots import Pictures, Span, Track
from reprocheck.report.html.text import Limits
from reprocheck.report.plain import clip, visible
from reprocheck.report.text import value_text

__all__ = ["chosen_orders", "loading_view"]

MOST_ORDERS = 6
_TOLD = ("putenv", "unsetenv", "set", "dlopen", "error")


def chosen_orders(evidence: Evidence) -> list[tuple[tuple[str, ...], str | None]]:
    """One order of each group, two at least where there are two, with its group."""
    chosen: dict[tuple[str, ...], str | None] = {}
    for arm in evidence.arms:
        if arm.group is not None and arm.group not in chosen.values():
            chosen[arm.order] = arm.group
    for arm in evidence.arms:
        if len(chosen) >= 2:
            break
        chosen.setdefault(arm.order, arm.group)
    return list(chosen.items())[:MOST_ORDERS]


def loading_view(
    evidence: Evidence, letters: Letters, limits: Limits, pictures: Pictures | None
) -> dict[str, Any] | None:
    """Timelines of the chosen orders, as a picture and as tables; None without records."""
    found = [
        (order, group, record)
        for order, group in chosen_orders(evidence)
        if (record := evidence.record(order)) is not None
    ]
    if not found:
        return None
    study = evidence.study
    tracks = [_track(order, group, record, study) for order, group, record in found]
    picture = None
    if pictures is not None:
        told = "; ".join(_told(track) for track in tracks)
        picture = pictures.timeline(tracks, label=f"Loading timeline. {told}")
    return {
        "picture": picture,
        "orders": [
            {
                "order": order,
                "group": group,
                "shade": letters.shade(group),
                "steps": _steps(record),
                "rows": _rows(record, limits),
                "imports": sum(1 for event in record.events if event.kind == "import"),
                "libraries": sum(1 for event in record.events if event.kind == "library"),
                "captured": record.trial.capture,
            }
            for order, group, record in found
        ],
        "more": max(0, len({arm.group for arm in evidence.arms}) - len(found)),
    }


def _told(track: Track) -> str:
    return f"{track.label}: " + ", ".join(f"{span.label} {span.start:.2f} to {span.stop:.2f} s" for span in track.spans)


def _track(order: tuple[str, ...], group: str | None, record: Record, study: Study) -> Track:
    times = record.timeline
    spans = [
        Span(
            start=times[f"importing:{name}"],
            stop=times.get(f"imported:{name}", _end(record)),
            kind="import",
            label=name,
        )
        for name in record.trial.order
        if f"importing:{name}" in times
    ]
    if "workload" in times:
        stop = times.get("returned", _end(record))
        spans.append(Span(start=times["workload"], stop=stop, kind="workload", label="workload"))
    label = clip(visible(order_text(order)), 40) + (f"  ({group})" if group else "")
    return Track(
        label=label,
        spans=tuple(
            Span(start=span.start, stop=span.stop, kind=span.kind, label=clip(visible(span.label), 40))
            for span in spans
        ),
        libraries=tuple(event.at for event in record.events if event.kind == "library")[:400],
        changes=tuple(_moments(order, group, record, [*study.state_differences, *study.hazards]))[:100],
    )


def _end(record: Record) -> float:
    return max(record.timeline.values(), default=record.seconds)


def _moments(
    order: tuple[str, ...], group: str | None, record: Record, differences: list[StateDifference]
) -> list[float]:
    """When a differing key took its value in this order: as its event tells, else when it was first seen."""
    taken = {snapshot.phase: snapshot.at for snapshot in record.snapshots}
    moments = set()
    for item in differences:
        for change in item.changes:
            if change.group not in (group, order_text(order)) or change.phase in ("t0", "t2"):
                continue
            if change.event is not None:
                moments.add(change.event.at)
            elif change.phase in taken:
                moments.add(taken[change.phase])
    return sorted(moments)


def _steps(record: Record) -> list[tuple[str, float, float]]:
    """Imports and workload with start and length."""
    times = record.timeline
    steps = [
        (f"import {name}", times[f"importing:{name}"], times[f"imported:{name}"] - times[f"importing:{name}"])
        for name in record.trial.order
        if f"imported:{name}" in times and f"importing:{name}" in times
    ]
    if "workload" in times and "returned" in times:
        steps.append(("workload", times["workload"], times["returned"] - times["workload"]))
    return steps


def _rows(record: Record, limits: Limits) -> list[dict[str, Any]]:
    """The telling events: everything that set or loaded something, then native libraries while there is room."""
    told = [event for event in record.events if event.kind in _TOLD][: limits.events]
    libraries = [event for event in record.events if event.kind == "library"]
    chosen = sorted([*told, *libraries[: limits.events]], key=lambda event: event.at)
    return [_row(event) for event in chosen]


def _row(event: Event) -> dict[str, Any]:
    name = value_text(event.name, 200) if event.kind in ("library", "dlopen") else event.name
    value = "" if event.kind == "library" else event.value
    return {
        "at": event.at,
        "kind": {"putenv": "set variable", "unsetenv": "unset variable", "library": "library"}.get(
            event.kind, event.kind
        ),
        "name": name,
        "value": value,
        "by": event.module,
        "where": f"{value_text(event.file)}:{event.line}"
        if event.file and not event.file.startswith("<frozen")
        else "",
    }

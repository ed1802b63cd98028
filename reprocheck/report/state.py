"""The captured state of one order, or what differs between several, as text and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

import msgspec
from rich.console import Console
from rich.text import Text

from reprocheck.explain.state import flatten, state_differences
from reprocheck.headline import order_text
from reprocheck.model import Record
from reprocheck.report.text import change_text, value_text

__all__ = ["print_state", "print_state_difference", "state_json"]


def _wanted(key: str, patterns: Sequence[str]) -> bool:
    return not patterns or any(fnmatchcase(key, pattern) for pattern in patterns)


def _phase_text(phase: str) -> str:
    stage, _, subject = phase.partition(":")
    return {
        "t0": "at start",
        "t1": f"after `import {subject}`",
        "t2": "before the workload",
        "t3": "after the workload",
    }[stage]


def print_state(record: Record, patterns: Sequence[str], console: Console, *, everything: bool = False) -> None:
    """Phase by phase: the keys that changed since the phase before (all of them with `everything`)."""
    console.print(
        Text(f"{order_text(record.trial.order)}  ({record.python.get('executable', '')})", style="bold"), soft_wrap=True
    )
    last: dict[str, Any] = {}
    for snapshot in record.snapshots:
        now = flatten(snapshot.kinds)
        console.print(Text(f"\n{_phase_text(snapshot.phase)}  [{snapshot.ms:.1f} ms to read]", style="bold"))
        shown = 0
        for key, value in now.items():
            if not _wanted(key, patterns) or (not everything and key in last and last[key] == value):
                continue
            shown += 1
            line = Text.assemble("  ", (key, "cyan"), " = ", value_text(value, 400))
            if key in last and last[key] != value and not isinstance(value, list):
                line.append(f"   (was {value_text(last[key], 120)})", style="dim")
            console.print(line, soft_wrap=True)
        for event in record.events:
            if event.phase == snapshot.phase and event.kind != "import" and _wanted(f"event.{event.kind}", patterns):
                where = f"  ({event.file}:{event.line})" if event.file else ""
                value = f" = {event.value}" if event.value is not None else ""
                console.print(Text(f"  event {event.kind}: {event.name}{value}{where}", style="dim"), soft_wrap=True)
        if not shown:
            console.print("  nothing changed")
        last.update(now)


def print_state_difference(records: Sequence[Record], patterns: Sequence[str], console: Console) -> None:
    """What differs between the orders, most serious first."""
    groups = {order_text(record.trial.order): [record] for record in records}
    found = [item for item in state_differences(groups) if _wanted(item.key, patterns)]
    console.print(
        Text(
            f"{len(found)} {'key differs' if len(found) == 1 else 'keys differ'} between "
            + " and ".join(f"`{name}`" for name in groups),
            style="bold",
        )
    )
    for item in found:
        console.print()
        console.print(Text.assemble((item.key, "cyan"), f"  [{item.severity}] {item.why}"), soft_wrap=True)
        for change in item.changes:
            console.print(Text(f"  {change.group}: {change_text(change)}"), soft_wrap=True)


def state_json(records: Sequence[Record], patterns: Sequence[str]) -> str:
    """All snapshots and events, one document; keys flattened when patterns select some."""
    document: dict[str, Any] = {"schema": "reprocheck/state", "schema_version": 1, "orders": []}
    for record in records:
        phases = {}
        for snapshot in record.snapshots:
            flat = flatten(snapshot.kinds)
            phases[snapshot.phase] = {key: value for key, value in flat.items() if _wanted(key, patterns)}
        document["orders"].append(
            {
                "order": record.trial.order,
                "effective_order": record.effective_order,
                "python": record.python,
                "phases": phases,
                "read_ms": {snapshot.phase: snapshot.ms for snapshot in record.snapshots},
                "events": record.events,
            }
        )
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"

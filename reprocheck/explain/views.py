"""What each import saw: the state of a trial at the moments at which code could read it.

A moment is `before:SUBJECT`, when that subject's import begins, or `workload`. Two orders give a subject another world
exactly when a key differs between their views at one of these moments; imposing one order's views on the other is what
an intervention does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec

from reprocheck.explain.state import flatten, state_differences
from reprocheck.model import Change, Event, Record, Snapshot, StateDifference

__all__ = ["ABSENT", "WORKLOAD", "Views", "differences", "has_value"]

ABSENT = "absent"
MAY_BE_ABSENT = ("environ.", "patches.")
"""Keys for which being absent is a state like any other."""
WORKLOAD = "workload"


class Views:
    """The views of one record, in the order in which its moments came."""

    def __init__(self, record: Record) -> None:
        """`record` should have snapshots; without them there are no views."""
        self.record = record

    @cached_property
    def moments(self) -> tuple[str, ...]:
        """`before:a`, `before:b`, …, `workload` (if it came to that)."""
        found = [f"before:{name}" for name in self._subjects]
        if any(snapshot.phase == "t2" for snapshot in self.record.snapshots):
            found.append(WORKLOAD)
        return tuple(found)

    @cached_property
    def _subjects(self) -> tuple[str, ...]:
        """Subjects in the order in which their import began, the one whose import failed last."""
        record = self.record
        begun = list(record.effective_order) or list(record.preloaded)
        failing = next((name for name in record.trial.order if name not in begun), None)
        return (*begun, *([failing] if failing and not record.ok else []))

    def snapshot(self, moment: str) -> Snapshot | None:
        """The last snapshot before `moment`; None where it is not captured."""
        snapshots = self.record.snapshots
        if moment == WORKLOAD:
            return next((item for item in snapshots if item.phase == "t2"), None)
        name = moment.removeprefix("before:")
        outer = self.record.pulled_in.get(name, name)
        order = self.record.trial.order
        before = order[: order.index(outer)] if outer in order else ()
        wanted = f"t1:{before[-1]}" if before else "t0"
        return next((item for item in snapshots if item.phase == wanted), None)

    def values(self, moment: str) -> Mapping[str, Any]:
        """Key -> value as the import, or the workload, saw it."""
        if moment not in self._values:
            snapshot = self.snapshot(moment)
            found = flatten(snapshot.kinds) if snapshot is not None else {}
            name = moment.removeprefix("before:")
            if name in self.record.pulled_in:
                found.update(self._changed_on_the_way(name))
            for report in self.record.actions:
                if report.get("do") == "look" and report.get("when") == moment and report.get("ok"):
                    found.update(flatten(report["kinds"]))
            self._values[moment] = found
        return self._values[moment]

    @cached_property
    def _values(self) -> dict[str, dict[str, Any]]:
        return {}

    def _changed_on_the_way(self, name: str) -> dict[str, Any]:
        """Variables that the subject which imports `name` wrote before it did."""
        found: dict[str, Any] = {}
        phase = f"t1:{self.record.pulled_in[name]}"
        for event in self.record.events:
            if event.phase != phase:
                continue
            if event.kind == "import" and event.name == name:
                break
            if event.kind in ("putenv", "unsetenv"):
                value = ABSENT if event.kind == "unsetenv" else event.value
                found[f"environ.python.{event.name}"] = value
        return found

    def value(self, moment: str, key: str) -> Any:
        """One key's value at a moment, `absent` where it has none."""
        return self.values(moment).get(key, ABSENT)

    def as_seen(self) -> Record:
        """The record with its snapshots labelled by who saw them: `t1:NAME` is the world that NAME's import met."""
        snapshots = [
            msgspec.structs.replace(snapshot, phase=f"t1:{moment.removeprefix('before:')}", kinds=self._nested(moment))
            for moment in self.moments
            if moment != WORKLOAD and (snapshot := self.snapshot(moment)) is not None
        ]
        last = self.snapshot(WORKLOAD)
        return msgspec.structs.replace(self.record, snapshots=(*snapshots, *([last] if last else [])))

    def _nested(self, moment: str) -> dict[str, dict[str, Any]]:
        kinds: dict[str, dict[str, Any]] = {}
        for key, value in self.values(moment).items():
            kind, _, rest = key.partition(".")
            kinds.setdefault(kind, {})[rest] = value
        return kinds


def differences(good: Sequence[Record], bad: Sequence[Record]) -> tuple[StateDifference, ...]:
    """Keys that are constant in each of two orders and differ between them, for the workload or for an import.

    The two groups are called `good` and `bad`. A key that differs at several moments is listed once, at the workload
    if it differs there. What differs for an import only because a library is not loaded yet is left out.
    """
    groups = {
        name: [Views(record).as_seen() for record in records if record.snapshots]
        for name, records in (("good", good), ("bad", bad))
    }
    if not all(groups.values()):
        return ()
    originals = {"good": good[0], "bad": bad[0]}
    phases = ["t2", *(f"t1:{name}" for name in originals["bad"].trial.order)]
    return tuple(
        msgspec.structs.replace(
            item, changes=tuple(_told(change, item, originals[change.group]) for change in item.changes)
        )
        for item in state_differences(groups, phases=phases)
        if item.phase == "t2" or item.key.startswith(MAY_BE_ABSENT) or all(has_value(c.value) for c in item.changes)
    )


def has_value(value: Any) -> bool:
    """False for what a reader says where there is nothing to read."""
    return value not in (ABSENT, "not loaded") and not (isinstance(value, dict) and "error" in value)


def _told(change: Change, difference: StateDifference, record: Record) -> Change:
    """The change with the import that brought it, and the event if one was seen: told from the record as it was."""
    before: Any = ABSENT
    phase = "t0"
    for snapshot in record.snapshots:
        now = flatten(snapshot.kinds).get(difference.key, ABSENT)
        if now == change.value != before:
            phase = snapshot.phase
        before = now
        if snapshot.phase == "t2":
            break
    event = _event(difference.key, phase, record)
    return msgspec.structs.replace(change, phase=phase, event=change.event or event)


def _event(key: str, phase: str, record: Record) -> Event | None:
    leaf = key.rpartition(".")[2]
    for event in reversed(record.events):
        if event.phase == phase and event.kind in ("putenv", "unsetenv") and event.name == leaf:
            return event
        if event.phase == phase and event.kind in ("set", "change", "setter") and event.name == key:
            return event
    return None

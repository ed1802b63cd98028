"""State difference: captured keys that are constant inside each group and differ between two.

A key's story in one arm is the sequence of its values over the phases. Two arms are compared at t2, before the
workload; where the end states are alike, right after each subject's import, since an import that read a variable
in between has kept what it read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reprocheck.explain import keys
from reprocheck.model import Change, Event, Record, Snapshot, StateDifference

__all__ = ["flatten", "state_differences"]

# What a later import may read and keep. Only this is compared right after each import: everything else differs there
# for the plain reason that other subjects are not loaded yet.
LATCHED = ("environ.", "fp.", "process.rlimit")
LATCHED_KEY = "process.affinity"
SEVERITIES = ("numeric", "performance", "latent", "informational")


def flatten(kinds: Mapping[str, Any]) -> dict[str, Any]:
    """Nested captured values as `kind.key.subkey` -> value; lists stay whole."""
    flat: dict[str, Any] = {}

    def walk(prefix: str, value: Any) -> None:
        if isinstance(value, Mapping) and "error" not in value:
            for key, item in value.items():
                walk(f"{prefix}.{key}", item)
        else:
            flat[prefix] = value

    for kind, values in kinds.items():
        walk(kind, values)
    return flat


def state_differences(
    groups: Mapping[str, Sequence[Record]], *, phases: Iterable[str] | None = None
) -> tuple[StateDifference, ...]:
    """Differences between `groups` (id -> captured records), most serious first.

    Keys whose value varies inside a group are left out: they vary anyway. Without two groups that have snapshots
    there is nothing to compare, and the result is empty.
    """
    stories = {name: [_story(record) for record in records] for name, records in groups.items()}
    stories = {name: items for name, items in stories.items() if items and all(items)}
    if len(stories) < 2:
        return ()
    shared = set.intersection(*[set(story) for items in stories.values() for story in items])
    wanted = list(phases) if phases is not None else _phase_order(shared)
    found: dict[str, StateDifference] = {}
    for phase in wanted:
        if phase not in shared:
            continue
        early = phase.startswith("t1:") and phases is None
        for key in sorted({key for items in stories.values() for key in items[0][phase]}):
            if early and key != LATCHED_KEY and not key.startswith(LATCHED):
                continue
            if key in found or any(key.startswith(f"{other}.") for other in found):
                continue
            difference = _difference(key, phase, groups, stories)
            if difference is not None:
                found[key] = difference
    return tuple(sorted(found.values(), key=lambda item: (SEVERITIES.index(item.severity), item.key)))


def _phase_order(shared: set[str]) -> list[str]:
    return [phase for phase in ("t2",) if phase in shared] + sorted(
        phase for phase in shared if phase.startswith("t1:")
    )


def _story(record: Record) -> dict[str, dict[str, Any]]:
    return {snapshot.phase: flatten(snapshot.kinds) for snapshot in record.snapshots}


def _difference(
    key: str,
    phase: str,
    groups: Mapping[str, Sequence[Record]],
    stories: Mapping[str, Sequence[dict[str, dict[str, Any]]]],
) -> StateDifference | None:
    info = keys.lookup(key)
    if info.compare == "never":
        return None
    values: dict[str, Any] = {}
    for name, items in stories.items():
        seen = [keys.comparable(key, story[phase].get(key, "absent")) for story in items]
        if any(value != seen[0] for value in seen[1:]):
            return None
        values[name] = seen[0]
    first = next(iter(values.values()))
    if all(value == first for value in values.values()):
        return None
    changes = tuple(_change(name, key, phase, groups[name][0]) for name in values)
    return StateDifference(key=key, phase=phase, severity=info.severity, why=info.why, changes=changes)


def _change(group: str, key: str, phase: str, record: Record) -> Change:
    """When the key took its value in this record, and the event that did it if one was seen."""
    since = phase
    value: Any = "absent"
    for snapshot in record.snapshots:
        here = flatten(snapshot.kinds)
        if key not in here and snapshot.phase != phase:
            continue
        now = here.get(key, "absent")
        if now != value:
            value, since = now, snapshot.phase
        if snapshot.phase == phase:
            break
    return Change(
        group=group,
        order=record.effective_order or record.trial.order,
        value=value,
        phase=since,
        event=_event_for(key, value, since, record),
    )


def _event_for(key: str, value: Any, phase: str, record: Record) -> Event | None:
    """The last event up to the end of `phase` that names the variable, or the library, that `key` is about."""
    leaf = key.rpartition(".")[2]
    for event in reversed([event for event in record.events if event.phase == phase]):
        if event.kind in ("putenv", "unsetenv") and event.name == leaf:
            return event
        if event.kind == "set" and event.name == key:
            return event
        if (
            event.kind == "dlopen"
            and isinstance(value, str)
            and event.name
            and value.endswith(event.name.rpartition("/")[2])
        ):
            return event
    return None


def snapshot_at(record: Record, phase: str) -> Snapshot | None:
    """The record's snapshot of one phase."""
    return next((snapshot for snapshot in record.snapshots if snapshot.phase == phase), None)

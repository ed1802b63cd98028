"""Who set it: the module, and in Python the line, behind state that differs and that no event explains.

The audit hook sees imports, dlopens and environment writes. What else an import changes (a flag through a setter, the
FP control word, an affinity, an attribute of another module) is found in blame trials, which only import: the first
narrows a change down to the module whose body was executing, the second to the line in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from reprocheck.engine.runner import Runner
from reprocheck.model import Change, Event, Record, StateDifference, Trial

__all__ = ["attribute"]

# Every watched key is read whenever a module's body ends.
MAX_KEYS = 24
# What follows from which libraries are loaded has no setter.
NOT_ASKED = ("libraries.", "modules.", "process.threads", "openmp.", "blas.", "cuda.", "patches.digest")


def attribute(
    differences: Sequence[StateDifference], groups: Mapping[str, Sequence[Record]], runner: Runner
) -> tuple[StateDifference, ...]:
    """`differences` with the events that blame trials found; at most two trials for each group."""
    found: dict[tuple[str, str], Event] = {}
    for group, records in groups.items():
        keys = [item.key for item in differences for change in item.changes if _open(item, change, group)][:MAX_KEYS]
        if keys:
            order = records[0].trial.order
            found.update({(group, key): event for key, event in _blame(order, keys, runner).items()})
    return tuple(
        msgspec.structs.replace(
            item,
            changes=tuple(
                msgspec.structs.replace(change, event=change.event or found.get((change.group, item.key)))
                for change in item.changes
            ),
        )
        for item in differences
    )


def _open(item: StateDifference, change: Change, group: str) -> bool:
    """Whether an import of this group set the key and nothing says yet which line did."""
    return (
        change.group == group
        and change.event is None
        and change.phase.startswith("t1:")
        and change.value != "absent"
        and item.severity != "informational"
        and not item.key.startswith(NOT_ASKED)
    )


def _blame(order: tuple[str, ...], keys: Sequence[str], runner: Runner) -> dict[str, Event]:
    by_module = _changes(Trial(order=order, repeat=0, blame={"keys": list(keys)}), runner)
    modules = sorted({event.module for event in by_module.values() if event.module})
    if not modules:
        return by_module
    by_line = _changes(Trial(order=order, repeat=0, blame={"keys": list(keys), "modules": modules}), runner)
    return by_module | {key: event for key, event in by_line.items() if event.file}


def _changes(trial: Trial, runner: Runner) -> dict[str, Event]:
    """Key -> its last change. A blame trial that fails tells what it saw until then."""
    (record,) = runner.run([trial])
    return {event.name: event for event in record.events if event.kind == "change"}

"""What the machines have to do with the outcomes, when a study's trials ran on several. Pure.

Trials with the same repeat number run on one machine, so no order meets a machine more often than another does: a
machine that computes otherwise shows as noise within every order, and here it is told apart from noise.
"""

from __future__ import annotations

from collections.abc import Sequence

from reprocheck.model import Machine, Record

__all__ = ["machine_notes"]


def machine_notes(records: Sequence[Record], groups: Sequence[str]) -> tuple[str, ...]:
    """Sentences for the report: where the trials ran, and whether outcomes go by the machine; none for one machine.

    `groups` are the outcomes of `records`, in the same order.
    """
    counts: dict[Machine, int] = {}
    outcomes: dict[tuple[tuple[str, ...], Machine], set[str]] = {}
    orders: dict[tuple[str, ...], set[str]] = {}
    for record, group in zip(records, groups, strict=True):
        if record.machine is None:
            continue
        counts[record.machine] = counts.get(record.machine, 0) + 1
        outcomes.setdefault((record.trial.order, record.machine), set()).add(group)
        orders.setdefault(record.trial.order, set()).add(group)
    if len(counts) < 2:
        return ()
    where = ", ".join(f"{_name(machine)} ({count} trials)" for machine, count in counts.items())
    notes = [f"the trials ran on {len(counts)} machines: {where}"]
    unstable = any(len(found) > 1 for found in orders.values())
    if unstable and all(len(found) == 1 for found in outcomes.values()):
        notes.append(
            "identical runs differ between machines and agree on each of them: the machine is a factor of its own; "
            "keep to one with --workers to judge the orders alone"
        )
    return tuple(notes)


def _name(machine: Machine) -> str:
    devices = f" with {', '.join(machine.gpus)}" if machine.gpus else ""
    return f"`{machine.host}`{devices}"

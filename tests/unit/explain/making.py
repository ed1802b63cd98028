"""Records and oracles made up for tests of the explanation: no trial is run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from reprocheck.engine.runner import Silent
from reprocheck.model import (
    Arm,
    Event,
    Failure,
    Group,
    Noise,
    Output,
    Record,
    Snapshot,
    Study,
    Target,
    Trial,
)

__all__ = ["Engine", "failed", "record", "study"]

Kinds = Mapping[str, Mapping[str, Any]]
TARGET = Target(text="work.py::run", kind="function", path="/folder/work.py", name="run")


def record(
    order: Sequence[str],
    value: str = "1",
    *,
    states: Mapping[str, Kinds] | None = None,
    events: Sequence[Event] = (),
    **fields: Any,
) -> Record:
    """A record that finished with one output; `states` maps a phase to what was captured then."""
    own = {key: fields.pop(key) for key in ("repeat", "capture", "presence", "env", "actions_asked") if key in fields}
    trial = Trial(
        order=tuple(order),
        repeat=own.get("repeat", 0),
        capture=own.get("capture", True),
        presence=own.get("presence", False),
    )
    snapshots = tuple(
        Snapshot(phase=phase, at=0.0, ms=0.1, kinds={kind: dict(keys) for kind, keys in kinds.items()})
        for phase, kinds in (states or {}).items()
    )
    output = Output(name="x", dtype="float64", shape=(), nbytes=8, digest="sha256:" + value.rjust(64, "0"))
    settled: dict[str, Any] = {"ok": True, "outputs": (output,), "effective_order": tuple(order)} | fields
    return Record(trial=trial, snapshots=snapshots, events=tuple(events), **settled)


def failed(order: Sequence[str], signature: str, **fields: Any) -> Record:
    """A record that did not finish."""
    failure = Failure(kind="exception", phase="importing", signature=signature, message=signature)
    return record(order, ok=False, failure=failure, outputs=(), **fields)


def study(records: Sequence[Record], *, stable: bool = True, **fields: Any) -> Study:
    """A study of records, with as much in it as an explanation reads."""
    trials = Counter(record.trial.order for record in records if not record.trial.presence)
    arms = tuple(Arm(order=order, effective_order=order, trials=count) for order, count in trials.items())
    settled: dict[str, Any] = {
        "reprocheck_version": "0",
        "verdict": "order-dependent",
        "exit_code": 1,
        "headline": "order-dependent: made up",
        "reason": "",
        "workload": TARGET.text,
        "target": TARGET,
        "subjects": tuple(sorted({name for order in trials for name in order})),
        "subjects_from": "",
        "orders": arms,
        "plan": "",
        "groups": tuple(Group(id=name, orders=(), trials=1, outcome="ok") for name in "ABCD"),
        "outputs": (),
        "noise": Noise(p_value=0.001, repeats=1, trials=len(records), stable=stable),
    }
    return Study(**(settled | fields))


class Engine:
    """Stands for a runner with its engine and its run folder: what a trial gives is a function of it."""

    def __init__(self, outcome: Callable[[Trial], Record]) -> None:
        self.outcome = outcome
        self.writer = self.engine = self.objects = self
        self.progress = Silent()
        self.mixed = False
        self.level: dict[str, str | None] = {}
        self.told: set[str] = set()
        self.known: dict[str, Record] = {}

    def done(self, trial: Trial) -> Record | None:
        """As `RunWriter.done`."""
        return self.known.get(repr(trial))

    def records(self) -> Iterator[Record]:
        """As `RunWriter.records`."""
        return iter(self.known.values())

    def add(self, made: Record) -> None:
        """As `RunWriter.add`."""
        self.known[repr(made.trial)] = made

    def run(self, trials: Sequence[Trial], _keep: object) -> Iterator[Record]:
        """As `LocalEngine.run`."""
        for trial in trials:
            yield msgspec.structs.replace(self.outcome(trial), trial=trial)

    def path(self, digest: str) -> Path:
        """Nothing is stored."""
        raise AssertionError(digest)

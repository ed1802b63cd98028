"""What all interventions share: the pair of orders they work on, and the course of values they impose."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, NamedTuple

import msgspec

from reprocheck.explain.keys import comparable
from reprocheck.explain.views import ABSENT, WORKLOAD, Views, has_value
from reprocheck.model import Origin, Record, StateDifference, Trial

__all__ = [
    "SIDES",
    "Candidate",
    "Course",
    "Intervention",
    "Pair",
    "Side",
    "Step",
    "course",
    "is_kept",
    "moment_of",
    "told",
    "with_actions",
]

Side = Literal["good", "bad"]
SIDES: tuple[Side, Side] = ("good", "bad")


class Step(NamedTuple):
    """What to set at one moment."""

    moment: str
    values: dict[str, Any]
    """Key -> value."""
    changes: bool
    """False when the order has this value there by itself, and gets it back after an earlier change."""


Course = tuple[Step, ...]
"""Steps in the order of the trial on which they are imposed."""


@dataclass(frozen=True)
class Pair:
    """A good and a bad order, each with a captured record, and their trials without any intervention."""

    good: Views
    bad: Views

    def side(self, side: Side) -> Views:
        """The views of one of the two."""
        return self.good if side == "good" else self.bad

    def other(self, side: Side) -> Views:
        """The views of the other one."""
        return self.bad if side == "good" else self.good

    def trial(self, side: Side) -> Trial:
        """The plain trial of one of the two, its first repeat, captured."""
        trial = self.side(side).record.trial
        return Trial(order=trial.order, repeat=0, presence=trial.presence)

    def parts_at(self, keys: Sequence[str]) -> int:
        """How early the two orders differ in one of `keys`: the number of the moment in the bad order."""
        for number, moment in enumerate(self.bad.moments):
            if moment in self.good.moments and any(
                self.good.value(moment, key) != self.bad.value(moment, key) for key in keys
            ):
                return number
        return len(self.bad.moments)


@dataclass(frozen=True)
class Intervention(ABC):
    """One thing that can be changed. `key` is the state key it is named after."""

    key: str
    kind: ClassVar[str]

    @property
    def id(self) -> str:
        """Tells its reports in a record from others."""
        return f"{self.kind}: {self.key}"

    @classmethod
    @abstractmethod
    def applies_to(cls, difference: StateDifference) -> bool:
        """Whether this kind can change the key of a difference."""

    @classmethod
    def propose(cls, differences: Sequence[StateDifference], pair: Pair) -> list[Candidate]:
        """Candidates for all differences that this kind applies to; one for each, unless keys belong together."""
        found = []
        for difference in differences:
            if cls.applies_to(difference):
                candidate = cls(difference.key).candidate((difference,), pair)
                if candidate is not None:
                    found.append(candidate)
        return found

    def candidate(self, differences: Sequence[StateDifference], pair: Pair) -> Candidate | None:
        """A candidate that imposes the course of its differences' keys; None where there is nothing to impose."""
        keys = tuple(item.key for item in differences)
        values = {
            side: course(pair.side(side), pair.other(side), keys, absent=self.sets_absent) or None for side in SIDES
        }
        if not any(values.values()):
            return None
        return Candidate(intervention=self, keys=keys, differences=tuple(differences), values=values)

    sets_absent: ClassVar[bool] = False
    """Whether a key can be made to disappear again."""

    @abstractmethod
    def apply(self, trial: Trial, value: Any) -> Trial:
        """`trial` with this thing given `value`."""

    @abstractmethod
    def says(self, value: Any) -> str:
        """What `apply` does, for a sentence: `OMP_NUM_THREADS=1 when torch is imported`."""

    def took_effect(self, record: Record) -> bool | None:
        """Whether the record shows that the change was made; None where it was not asked for."""
        own = [report for report in record.actions if report.get("id") == self.id]
        if any(report.get("ok") is False for report in own):
            return False
        return True if any(report.get("ok") for report in own) else None

    def why_not(self, record: Record) -> str:
        """What an intervention that took no effect reported."""
        for report in record.actions:
            if report.get("id") == self.id and report.get("ok") is False:
                return str(report.get("error") or f"it is {report.get('now')!r} afterwards")
        return "not reported"


@dataclass(frozen=True)
class Candidate:
    """An intervention with the values of both sides: `values["bad"]` is for the good order, and the other way round.

    A value of None means that this side's state cannot be imposed on the other.
    """

    intervention: Intervention
    keys: tuple[str, ...]
    differences: tuple[StateDifference, ...]
    values: Mapping[Side, Any]
    scout: Callable[[Side], Sequence[Mapping[str, Any]]] | None = field(default=None, compare=False)
    """Actions that let one side's own trial tell the value first, where a snapshot holds only its digest."""
    display: Mapping[Side, Any] | None = None
    """What to show as the two values, where the first key's are not it."""
    origin: Origin | None = None
    """Who brought it about, where that is no matter of the first key's events."""

    def __hash__(self) -> int:
        return hash(self.id)

    @property
    def id(self) -> str:
        """The intervention's."""
        return self.intervention.id

    def impose(self, trial: Trial, side: Side) -> Trial:
        """`trial` with the values of `side`."""
        return self.intervention.apply(trial, self.values[side])

    def shown(self, side: Side) -> Any:
        """The value on one side, as found in the snapshots."""
        if self.display is not None:
            return self.display[side]
        change = next((c for c in self.differences[0].changes if c.group == side), None)
        return None if change is None else change.value

    def at_workload(self) -> Candidate:
        """The candidate without what its courses do before the workload; itself where it does nothing else."""
        values = dict(self.values)
        for side, value in values.items():
            if not isinstance(value, tuple) or not value or not isinstance(value[-1], Step):
                return self
            if value[-1].moment != WORKLOAD or not value[-1].changes:
                return self
            values[side] = value[-1:]
        return self if values == dict(self.values) else replace(self, values=values)

    def visible(self, record: Record, side: Side) -> bool | None:
        """Whether a snapshot before the workload shows a value of `side`; None where the keys differ only earlier."""
        late = [item for item in self.differences if item.phase == "t2" and item.key in self.keys]
        views = Views(record)
        if not late or WORKLOAD not in views.moments or self.display is not None:
            return None
        wanted = {item.key: next(c.value for c in item.changes if c.group == side) for item in late}
        return any(_alike(item.key, views.value(WORKLOAD, item.key), wanted[item.key]) for item in late)


def _alike(key: str, one: Any, other: Any) -> bool:
    return bool(comparable(key, one) == comparable(key, other))


def course(source: Views, own: Views, keys: Sequence[str], *, absent: bool) -> Course:
    """What to set, and when, on `own`'s order so that every import sees of `keys` what it saw in `source`'s order.

    Starts at the first moment at which the two differ. A value that is `absent` is left out unless it can be set. None
    of it is of use when the value of a moment that differs is not kept: then the course is empty.
    """
    found: list[Step] = []
    for moment in own.moments:
        if moment not in source.moments:
            continue
        theirs = {key: source.value(moment, key) for key in keys}
        changes = any(own.value(moment, key) != value for key, value in theirs.items())
        usable = {key: value for key, value in theirs.items() if has_value(value) or (absent and value == ABSENT)}
        if changes and not all(is_kept(key, value) for key, value in theirs.items()):
            return ()
        if usable and (changes or found):
            found.append(Step(moment, usable, changes))
    return tuple(found)


def is_kept(key: str, value: Any) -> bool:
    """False for the digest that stands for a variable's value which a record may not hold."""
    return not (key.startswith("environ.") and isinstance(value, str) and value.startswith("sha256:"))


def moment_of(moment: str) -> str:
    """The worker's word for a moment: before the workload is before its file is loaded, and before the snapshot."""
    return "t2" if moment == WORKLOAD else moment


def told(course: Course, say: Callable[[dict[str, Any]], str]) -> str:
    """A course in words: `say` tells the values of one moment; what the order has by itself is left out."""
    parts: list[tuple[str, list[str]]] = []
    for step in course:
        if step.changes:
            text = say(step.values)
            if parts and parts[-1][0] == text:
                parts[-1][1].append(step.moment)
            else:
                parts.append((text, [step.moment]))
    return ", ".join(f"{text} {_when(moments)}" for text, moments in parts)


def _when(moments: Sequence[str]) -> str:
    words = [
        "before the workload" if moment == WORKLOAD else f"when `{moment.removeprefix('before:')}` is imported"
        for moment in moments
    ]
    return (
        words[0]
        if len(words) == 1
        else f"from {words[0].removeprefix('when ')} on".replace(" is imported", "'s import")
    )


def with_actions(trial: Trial, actions: Sequence[dict[str, Any]]) -> Trial:
    """`trial` with actions added."""
    return msgspec.structs.replace(trial, actions=(*trial.actions, *actions))

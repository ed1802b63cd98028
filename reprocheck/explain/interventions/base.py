"""What all interventions share: the pair of orders they work on, and the course of values they impose."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import msgspec

from reprocheck.explain.views import ABSENT, WORKLOAD, Views
from reprocheck.model import Record, StateDifference, Trial

__all__ = ["Candidate", "Course", "Intervention", "Pair", "Side", "course", "moment_of", "told", "with_actions"]

Side = Literal["good", "bad"]
Course = tuple[tuple[str, dict[str, Any]], ...]
"""Moment -> key -> value, in the order of the trial on which it is imposed."""


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
                candidate = cls(difference.key)._candidate((difference,), pair)
                if candidate is not None:
                    found.append(candidate)
        return found

    def _candidate(self, differences: Sequence[StateDifference], pair: Pair) -> Candidate | None:
        """A candidate that imposes the course of its differences' keys; None where there is nothing to impose."""
        keys = tuple(item.key for item in differences)
        values: dict[Side, Course] = {
            side: course(pair.side(side), pair.other(side), keys, absent=self.sets_absent) for side in ("good", "bad")
        }
        if not values["bad"] and not values["good"]:
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
    """An intervention with the values of both sides: `values["bad"]` is for the good order, and the other way round."""

    intervention: Intervention
    keys: tuple[str, ...]
    differences: tuple[StateDifference, ...]
    values: Mapping[Side, Any]
    scout: Callable[[Side], Sequence[Mapping[str, Any]]] | None = field(default=None, compare=False)
    """Actions that let one side's own trial tell the value first, where a snapshot holds only its digest."""

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
        """The value of the first key on one side, as found in the snapshots."""
        change = next((c for c in self.differences[0].changes if c.group == side), None)
        return None if change is None else change.value


def course(source: Views, own: Views, keys: Sequence[str], *, absent: bool) -> Course:
    """What to set, and when, on `own`'s order so that every import sees of `keys` what it saw in `source`'s order.

    Starts at the first moment at which the two differ. A value that is `absent` is left out unless it can be set.
    """
    found = []
    begun = False
    for moment in own.moments:
        if moment not in source.moments:
            continue
        theirs = {key: source.value(moment, key) for key in keys}
        begun = begun or any(own.value(moment, key) != value for key, value in theirs.items())
        usable = {key: value for key, value in theirs.items() if absent or not _unusable(value)}
        if begun and usable:
            found.append((moment, usable))
    return tuple(found)


def _unusable(value: Any) -> bool:
    return value == ABSENT or value == "not loaded" or (isinstance(value, dict) and "error" in value)


def moment_of(moment: str) -> str:
    """The worker's word for a moment: before the workload is before its file is loaded, and before the snapshot."""
    return "t2" if moment == WORKLOAD else moment


def told(course: Course, say: Callable[[dict[str, Any]], str]) -> str:
    """A course in words: `say` tells the values of one moment; equal neighbours are told once."""
    parts: list[tuple[str, list[str]]] = []
    for moment, values in course:
        text = say(values)
        if parts and parts[-1][0] == text:
            parts[-1][1].append(moment)
        else:
            parts.append((text, [moment]))
    return ", ".join(f"{text} {_when(moments)}" for text, moments in parts)


def _when(moments: Sequence[str]) -> str:
    words = [
        "before the workload" if moment == WORKLOAD else f"when `{moment.removeprefix('before:')}` is imported"
        for moment in moments
    ]
    return words[0] if len(words) == 1 else f"from {words[0].removeprefix('when ')} on".replace(" is imported", "'s import")


def with_actions(trial: Trial, actions: Sequence[dict[str, Any]]) -> Trial:
    """`trial` with actions added."""
    return msgspec.structs.replace(trial, actions=(*trial.actions, *actions))

"""Flush-to-zero, denormals-are-zero and the rounding mode: of the thread that imports, and of OpenMP's workers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from reprocheck.explain.interventions.base import (
    SIDES,
    Candidate,
    Course,
    Intervention,
    Pair,
    Side,
    moment_of,
    told,
    with_actions,
)
from reprocheck.model import StateDifference, Trial

__all__ = ["FloatingPoint", "WorkerFloatingPoint"]

_KEYS = ("fp.ftz", "fp.daz", "fp.rounding")
_NAMES = {"fp.ftz": "flush-to-zero", "fp.daz": "denormals-are-zero", "fp.rounding": "rounding"}


class FloatingPoint(Intervention):
    """The control register of the main thread, from which new threads inherit it."""

    kind: ClassVar[str] = "floating point"

    @classmethod
    def applies_to(cls, difference: StateDifference) -> bool:
        """The three things that change results."""
        return difference.key in _KEYS

    @classmethod
    def propose(cls, differences: Sequence[StateDifference], pair: Pair) -> list[Candidate]:
        """One candidate for all three: they are one register, and are set together."""
        own = sorted((item for item in differences if cls.applies_to(item)), key=lambda item: _KEYS.index(item.key))
        candidate = cls(own[0].key).candidate(own, pair) if own else None
        return [candidate] if candidate else []

    def apply(self, trial: Trial, value: Course) -> Trial:
        """Set it before every import that saw another value, and before the workload."""
        return with_actions(
            trial,
            [
                {"do": "fp", "at": moment_of(moment), "id": self.id}
                | {key.removeprefix("fp."): item for key, item in values.items()}
                for moment, values, _ in value
            ],
        )

    def says(self, value: Any) -> str:
        """`flush-to-zero on when native.warmup is imported`."""
        return told(value, _told)


class WorkerFloatingPoint(Intervention):
    """The control registers of OpenMP's threads, set in a parallel region before the workload."""

    kind: ClassVar[str] = "floating point of worker threads"

    @classmethod
    def applies_to(cls, difference: StateDifference) -> bool:
        """What the main thread's register was when threads may have been started."""
        return difference.key in _KEYS

    @classmethod
    def propose(cls, differences: Sequence[StateDifference], pair: Pair) -> list[Candidate]:
        """A candidate where an import saw another register than in the other order, and OpenMP is loaded."""
        own = sorted((item for item in differences if cls.applies_to(item)), key=lambda item: _KEYS.index(item.key))
        if not own or not all(_has_openmp(pair, side) for side in SIDES):
            return []
        values: dict[Side, Any] = {}
        for side in SIDES:
            views = pair.side(side)
            moments = [moment for moment in views.moments if moment.startswith("before:")]
            if not moments:
                return []
            values[side] = {item.key: views.value(moments[-1], item.key) for item in own}
        if values["good"] == values["bad"]:
            return []
        keys = tuple(item.key for item in own)
        return [Candidate(intervention=cls(own[0].key), keys=keys, differences=tuple(own), values=values)]

    def apply(self, trial: Trial, value: dict[str, Any]) -> Trial:
        """Set it in all of OpenMP's threads but the main one."""
        changes = {key.removeprefix("fp."): item for key, item in value.items()}
        return with_actions(trial, [{"do": "fp", "at": "t2", "id": self.id, "where": "workers", **changes}])

    def says(self, value: Any) -> str:
        """`flush-to-zero on in OpenMP's threads`."""
        return f"{_told(value)} in OpenMP's threads"


def _told(values: dict[str, Any]) -> str:
    words = {True: "on", False: "off"}
    return ", ".join(f"{_NAMES[key]} {words.get(value, value)}" for key, value in values.items())


def _has_openmp(pair: Pair, side: Side) -> bool:
    return any(key.startswith("openmp.") for key in pair.side(side).values("workload"))

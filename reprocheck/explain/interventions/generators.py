"""States of random generators. A snapshot holds their digest only, so the trial of one order tells the state first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from reprocheck.explain.interventions.base import (
    Candidate,
    Course,
    Intervention,
    Pair,
    Side,
    moment_of,
    told,
    with_actions,
)
from reprocheck.model import Record, StateDifference, Trial

__all__ = ["Generator"]

_NAMES = {"process.random_state": "random", "numpy.rng": "numpy", "torch.rng.cpu": "torch"}


class Generator(Intervention):
    """The state of `random`, of numpy's legacy generator, or of torch's CPU generator."""

    kind: ClassVar[str] = "random state"

    @property
    def generator(self) -> str:
        """`random`, `numpy` or `torch`."""
        return _NAMES[self.key]

    @classmethod
    def applies_to(cls, difference: StateDifference) -> bool:
        """States that are the same in all runs of one order; without that, there is nothing to put back."""
        return difference.key in _NAMES

    @classmethod
    def propose(cls, differences: Sequence[StateDifference], pair: Pair) -> list[Candidate]:
        """As for others, with actions by which one side tells its states."""
        return [
            replace(candidate, scout=_scout(candidate))
            for candidate in super().propose(differences, pair)
            if isinstance(candidate.intervention, Generator)
        ]

    def learned(self, course: Course, record: Record) -> Course:
        """The course with states in the place of their digests, from the record of a scouting trial."""
        states = {
            report["when"]: report["state"]
            for report in record.actions
            if report.get("id") == self.id and report.get("ok") and "state" in report
        }
        return tuple(
            step._replace(values={self.key: states[moment_of(step.moment)]})
            for step in course
            if moment_of(step.moment) in states
        )

    def apply(self, trial: Trial, value: Course) -> Trial:
        """Put states back before every import that met another one, and before the workload."""
        return with_actions(
            trial,
            [
                {"do": "rng", "at": moment_of(moment), "id": self.id, "of": self.generator, "state": values[self.key]}
                for moment, values, _ in value
            ],
        )

    def says(self, value: Any) -> str:
        """`the state of random that the other order has, before the workload`."""
        return told(value, lambda _: f"the other order's state of `{self.generator}`")


def _scout(candidate: Candidate) -> Any:
    intervention = candidate.intervention
    assert isinstance(intervention, Generator)  # noqa: S101 - made for it above

    def actions(side: Side) -> Sequence[Mapping[str, Any]]:
        """To be carried out on the order of `side`: it tells its own states."""
        return [
            {"do": "rng", "at": moment_of(moment), "id": intervention.id, "of": intervention.generator}
            for moment, *_ in candidate.values[side]
        ]

    return actions

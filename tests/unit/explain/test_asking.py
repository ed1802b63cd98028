from __future__ import annotations

from typing import Any

import pytest

from reprocheck.explain.asking import Asker
from reprocheck.explain.labels import Labels
from reprocheck.explain.search import BudgetSpentError
from reprocheck.model import Record, Tolerance, Trial
from tests.unit.explain.making import Engine, record, study

AB, BA = ("a", "b"), ("b", "a")


def asker(limit: int, **options: Any) -> Asker:
    known = [record(AB, "1"), record(BA, "2")]

    def outcome(trial: Trial) -> Record:
        return record(trial.order, "1" if trial.order == AB else "2", repeat=trial.repeat, capture=trial.capture)

    labels = Labels(
        study(known),
        known,
        patterns=(),
        tolerance_for=lambda _: Tolerance(),
        objects=None,  # type: ignore[arg-type]
    )
    return Asker(Engine(outcome), labels, limit, **options)  # type: ignore[arg-type]


def test_a_trial_is_paid_for_once() -> None:
    asking = asker(3)

    assert asking.label(Trial(order=BA, repeat=0), repeats=2) == "B"
    assert asking.label(Trial(order=BA, repeat=0), repeats=2) == "B"
    assert (asking.spent, asking.left) == (2, 1)


def test_what_cannot_be_paid_is_not_run() -> None:
    asking = asker(3)
    asking.reserve = 1

    with pytest.raises(BudgetSpentError):
        asking.records([Trial(order=AB, repeat=number) for number in range(3)])

    assert (asking.spent, asking.refused) == (0, True)
    asking.reserve = 0
    assert len(asking.records([Trial(order=AB, repeat=number) for number in range(3)])) == 3


def test_bare_trials_when_capture_disturbs() -> None:
    asking = asker(9, bare=True)

    assert not any(item.trial.capture for item in asking.again(Trial(order=AB, repeat=0), repeats=2))
    assert all(item.trial.capture for item in asking.records([Trial(order=AB, repeat=0)]))

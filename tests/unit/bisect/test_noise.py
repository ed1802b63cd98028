"""Searching under noise: stated probabilities against the truth, in simulations with a fixed seed."""

from __future__ import annotations

import random
from math import comb
from statistics import mean

import pytest
from hypothesis import given, strategies as st

from reprocheck.bisect.noise import (
    ENOUGH,
    Belief,
    Count,
    believe,
    confirmations,
    ends_differ,
    likely_range,
    look,
    misfits,
    most_telling,
)


def simulate(rng: random.Random, count: int, first_new: int, old: float, new: float) -> tuple[Belief, int]:
    """(belief at the end, runs) of one search."""
    bad, runs = [0] * count, [0] * count
    while True:
        trend = look([Count(b, r) for b, r in zip(bad, runs, strict=True)])
        if not trend.wanted:
            assert trend.belief is not None
            return trend.belief, sum(runs)
        index = trend.wanted[0]
        runs[index] += 1
        bad[index] += rng.random() < (new if index >= first_new else old)
        assert sum(runs) < 1500


@pytest.mark.parametrize(
    ("count", "old", "new", "budget"),
    [(32, 0, 1, 24), (32, 0, 0.9, 32), (32, 0, 0.5, 70), (32, 0.1, 0.8, 60), (64, 0, 0.5, 80)],
)
def test_stated_confidence_holds(count: int, old: float, new: float, budget: float) -> None:
    rng = random.Random(20261201)
    right, runs, stated = [], [], []
    for _ in range(60):
        first_new = rng.randrange(1, count)
        belief, cost = simulate(rng, count, first_new, old, new)
        right.append(belief.best == first_new)
        runs.append(cost)
        stated.append(belief.confidence)
    assert min(stated) >= ENOUGH
    # 60 searches of which 97 % are right: fewer than 54 would be so with a probability below 0.2 %.
    assert sum(right) >= 54
    assert mean(runs) < budget


def test_without_noise_one_run_a_version_settles_it() -> None:
    belief, runs = simulate(random.Random(1), 64, 23, 0, 1)

    assert belief.best == 23
    assert belief.steady > 0.9
    assert runs <= 5 + 5 + 6 + 6, "ends told apart, halving, boundary confirmed"


counts = st.lists(
    st.integers(0, 6).flatmap(lambda runs: st.integers(0, runs).map(lambda bad: Count(bad, runs))),
    min_size=2,
    max_size=20,
)


@given(counts)
def test_beliefs_are_probabilities(runs: list[Count]) -> None:
    belief = believe(runs)

    assert len(belief.boundary) == len(runs) - 1
    assert sum(belief.boundary) == pytest.approx(1)
    assert all(0 <= p <= 1 for p in (*belief.old_rates, *belief.new_rates, belief.steady))
    first, last = likely_range(belief)
    assert 1 <= first <= last < len(runs)
    assert sum(belief.boundary[first - 1 : last]) >= 0.9 - 1e-9
    assert sorted(most_telling(belief)) == list(range(len(runs)))


@given(counts)
def test_believing_is_symmetric_in_time_and_outcome(runs: list[Count]) -> None:
    mirrored = [Count(count.runs - count.bad, count.runs) for count in reversed(runs)]

    assert believe(mirrored).boundary[::-1] == pytest.approx(believe(runs).boundary)


def test_a_contradiction_ends_the_belief_in_a_steady_outcome() -> None:
    steady = believe([Count(0, 3), Count(0, 1), Count(1, 1), Count(3, 3)])
    flaky = believe([Count(0, 3), Count(1, 2), Count(0, 1), Count(3, 3)])

    assert steady.steady > 0.8
    assert flaky.steady == 0


def test_the_first_look_is_at_the_middle() -> None:
    runs = [Count(0, 5), *[Count(0, 0)] * 31, Count(5, 5)]

    assert most_telling(believe(runs))[0] == 16


def test_ends_are_told_apart_by_fishers_test() -> None:
    # One-sided: of 10 runs, the chance that all 5 bad ones fall to the new end.
    assert ends_differ(Count(0, 5), Count(5, 5)) == pytest.approx(1 / comb(10, 5))
    assert ends_differ(Count(2, 5), Count(2, 5)) > 0.5
    assert ends_differ(Count(0, 0), Count(0, 0)) == 1


def test_ends_that_do_not_differ_are_run_no_longer_than_allowed() -> None:
    trend = look([Count(3, 10), Count(0, 0), Count(4, 10)], ends=10)

    assert not trend.wanted
    assert not trend.apart
    assert trend.belief is None


def test_confirmation_overlooks_little() -> None:
    def with_rates(old: float, new: float) -> Belief:
        return Belief((1.0,), old, new, 0.0, (old,), (new,))

    assert confirmations(with_rates(0, 1)) == 3
    assert 0.5 ** confirmations(with_rates(0, 0.5)) <= 0.02
    assert confirmations(with_rates(0.4, 0.4)) < 100, "bounded where the rates hardly differ"


def test_misfits_name_what_no_single_change_explains() -> None:
    runs = [Count(0, 10), Count(9, 10), Count(0, 10), Count(10, 10), Count(10, 10)]

    assert misfits(runs, 3) == (1,)
    assert misfits([Count(0, 10), Count(0, 10), Count(9, 10)], 2) == ()


def test_one_version_is_no_history() -> None:
    with pytest.raises(ValueError, match="before"):
        believe([Count(0, 1)])

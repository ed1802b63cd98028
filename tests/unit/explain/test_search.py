"""The culprit search on simulated outcomes: right for every planting, and within its budget of questions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import ceil, log2

import pytest
from hypothesis import given, settings, strategies as st

from reprocheck.explain.search import BudgetSpentError, Culprits, find_culprits


class World:
    """Candidates 0…n-1 of which some sets are culprits; counts what it is asked."""

    def __init__(self, sets: Sequence[frozenset[int]], *, partial: bool, limit: int | None = None) -> None:
        self.sets, self.partial, self.limit = sets, partial, limit
        self.asked: list[frozenset[int]] = []

    def outcome(self, given: frozenset[int]) -> str:
        if self.limit is not None and len(self.asked) >= self.limit:
            raise BudgetSpentError
        self.asked.append(given)
        active = [number for number, culprits in enumerate(self.sets) if culprits <= given]
        if not active:
            return "good"
        complete = len(active) == len(self.sets) or not self.partial
        return "bad" if complete else f"parts {active}"

    def search(self, n: int) -> Culprits[int]:
        return find_culprits(range(n), self.outcome, good="good", bad="bad")


@st.composite
def worlds(draw: st.DrawFn) -> tuple[int, list[frozenset[int]], bool]:
    n = draw(st.integers(1, 64))
    k = draw(st.integers(0, min(n, 4)))
    chosen = draw(st.permutations(range(n)))[:k]
    sets: list[frozenset[int]] = []
    while chosen:
        size = draw(st.integers(1, len(chosen)))
        sets.append(frozenset(chosen[:size]))
        chosen = chosen[size:]
    return n, sets, draw(st.booleans())


@settings(max_examples=400, deadline=None)
@given(worlds())
def test_finds_every_disjoint_set_and_nothing_else(world: tuple[int, list[frozenset[int]], bool]) -> None:
    n, sets, partial = world
    simulated = World(sets, partial=partial)

    answer = simulated.search(n)

    assert {frozenset(item.members) for item in answer.found} == set(sets)
    assert answer.complete
    assert answer.rest_is_good
    assert len(set(simulated.asked)) == len(simulated.asked), "nothing is asked twice"
    k = sum(map(len, sets))
    steps = ceil(log2(n)) if n > 1 else 0
    bound = 5 + k * steps if k <= 2 else 5 + k * (steps + 1)
    assert len(simulated.asked) <= bound
    if sets:
        assert answer.together == "bad"
        assert {frozenset(item.members) for item in answer.reproducing("bad")} == set(sets)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 6, 8, 12, 16])
@pytest.mark.parametrize("k", [0, 1, 2])
def test_the_bound_holds_for_every_planting(n: int, k: int) -> None:
    for chosen in combinations(range(n), k):
        plantings = [[frozenset([one]) for one in chosen]]
        if k == 2:
            plantings.append([frozenset(chosen)])
        for sets in plantings:
            for partial in (True, False):
                simulated = World(sets, partial=partial)
                answer = simulated.search(n)
                assert {frozenset(item.members) for item in answer.found} == set(sets)
                assert len(simulated.asked) <= 5 + k * (ceil(log2(n)) if n > 1 else 0), (n, chosen, partial)


@pytest.mark.parametrize("n", [1, 7, 64, 200])
def test_a_prime_suspect_costs_two_questions(n: int) -> None:
    simulated = World([frozenset([0])], partial=False)

    answer = simulated.search(n)

    assert [item.members for item in answer.found] == [(0,)]
    assert len(simulated.asked) <= 2, "it alone, and all the others"


def test_what_follows_from_a_culprit_is_no_culprit() -> None:
    # 3 and 5 do the same to the outcome as 0, because 0 brings them about.
    simulated = World([frozenset([0]), frozenset([3, 5])], partial=False)

    answer = find_culprits(
        range(8),
        simulated.outcome,
        good="good",
        bad="bad",
        follows=lambda members: frozenset({3, 5} if members == (0,) else ()),
    )

    assert [item.members for item in answer.found] == [(0,)]
    assert answer.rest_is_good


@given(worlds(), st.integers(0, 12))
def test_a_spent_budget_leaves_what_is_known(world: tuple[int, list[frozenset[int]], bool], limit: int) -> None:
    n, sets, partial = world
    simulated = World(sets, partial=partial, limit=limit)

    answer = simulated.search(n)

    assert len(simulated.asked) <= limit
    assert {frozenset(item.members) for item in answer.found} <= set(sets)
    assert answer.complete or not answer.rest_is_good


@given(st.integers(1, 16), st.randoms(use_true_random=False))
def test_nonsense_ends_too(n: int, random: object) -> None:
    # Outcomes without any order in them: what is found still flips the outcome by itself.
    answers: dict[frozenset[int], str] = {}

    def outcome(given: frozenset[int]) -> str:
        return answers.setdefault(given, random.choice(["good", "bad", "other"]))  # type: ignore[attr-defined]

    answer = find_culprits(range(n), outcome, good="good", bad="bad")

    for item in answer.found:
        assert answers[frozenset(item.members)] == item.label != "good"

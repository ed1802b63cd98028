"""The culprit search on simulated outcomes: right for every planting, and within its budget of questions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import pytest
from hypothesis import given, settings, strategies as st

from reprocheck.explain.allowance import FEW, allowance_for, fits, most_questions
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
    k = draw(st.integers(0, min(n, 8)))
    # Next to one another, or anywhere: neighbours are the hardest to tell apart.
    width = draw(st.integers(k, n))
    start = draw(st.integers(0, n - width))
    places = st.lists(st.integers(start, start + width - 1), min_size=k, max_size=k, unique=True)
    chosen = draw(places) if width else []
    sets: list[frozenset[int]] = []
    while chosen:
        size = draw(st.integers(1, len(chosen)))
        sets.append(frozenset(chosen[:size]))
        chosen = chosen[size:]
    return n, sets, draw(st.booleans())


@settings(max_examples=200, deadline=None)
@given(worlds())
def test_finds_every_disjoint_set_and_nothing_else(world: tuple[int, list[frozenset[int]], bool]) -> None:
    n, sets, partial = world
    simulated = World(sets, partial=partial)

    answer = simulated.search(n)

    assert {frozenset(item.members) for item in answer.found} == set(sets)
    assert answer.complete
    assert answer.rest_is_good
    assert len(set(simulated.asked)) == len(simulated.asked), "nothing is asked twice"
    assert len(simulated.asked) <= most_questions(n, sum(map(len, sets)), parts=partial and len(sets) > 1)
    if sets:
        assert answer.together == "bad"
        assert {frozenset(item.members) for item in answer.reproducing("bad")} == set(sets)


def arrangements(chosen: Sequence[int]) -> Iterator[list[frozenset[int]]]:
    """All partitions into culprit sets: each alone, some only together."""
    if not chosen:
        yield []
        return
    for others in arrangements(chosen[1:]):
        yield [frozenset(chosen[:1]), *others]
        for at, one in enumerate(others):
            yield [*others[:at], one | {chosen[0]}, *others[at + 1 :]]


@pytest.mark.parametrize("n", range(1, 13))
def test_the_bound_holds_for_every_planting(n: int) -> None:
    """Every subset of up to four culprits, in every arrangement: within 5 + k·⌈log₂ n⌉ questions."""
    for k in range(min(n, FEW if n in (4, 6, 8) else 3) + 1):
        for chosen in combinations(range(n), k):
            for sets in arrangements(chosen):
                for partial in (False, True) if len(sets) > 1 else (False,):
                    simulated = World(sets, partial=partial)
                    answer = simulated.search(n)
                    assert {frozenset(item.members) for item in answer.found} == set(sets)
                    limit = 5 + k * (n - 1).bit_length() + (partial and k == FEW)
                    assert len(simulated.asked) <= limit, (n, sets, partial)


@pytest.mark.parametrize("n", [12, 16])
def test_four_neighbours_are_within_the_bound(n: int) -> None:
    for start in range(n - 3):
        for sets in arrangements(range(start, start + 4)):
            simulated = World(sets, partial=False)
            assert {frozenset(item.members) for item in simulated.search(n).found} == set(sets)
            assert len(simulated.asked) <= 5 + 4 * (n - 1).bit_length(), (n, sets)


@pytest.mark.parametrize("n", [*range(1, 17), 31, 32, 53, 64, 128])
def test_the_worst_case_of_any_number_of_candidates_is_paid_for(n: int) -> None:
    assert allowance_for(n).extra == 5


def test_blocks_fit_side_by_side_where_aligned() -> None:
    assert fits([0, 0, 1], 2)
    assert fits([1, 0, 0], 2)
    assert not fits([0, 1, 0], 2), "the block of two does not lie at a multiple of two"
    assert fits([0, 1, 0], 3)
    assert fits([], 0)
    assert not fits([1], 0)


@pytest.mark.parametrize("n", [1, 7, 24, 48, 200])
def test_a_prime_suspect_costs_two_questions(n: int) -> None:
    simulated = World([frozenset([0])], partial=False)

    answer = simulated.search(n)

    assert [item.members for item in answer.found] == [(0,)]
    assert len(simulated.asked) <= 2, "it alone, and all the others"


@pytest.mark.parametrize("n", [16, 32])
def test_where_the_worst_case_leaves_no_room_it_is_asked_about_second(n: int) -> None:
    simulated = World([frozenset([0])], partial=False)

    assert [item.members for item in simulated.search(n).found] == [(0,)]
    assert len(simulated.asked) <= 4


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

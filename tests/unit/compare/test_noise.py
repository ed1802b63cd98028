from __future__ import annotations

import itertools
from collections import Counter
from math import comb

import pytest
from hypothesis import given, settings, strategies as st

from reprocheck.compare.noise import ARRANGEMENTS_LIMIT, permutation_p, repeats_needed, rule_of_three


def brute_force(outcomes: list[list[str]]) -> tuple[float, int]:
    """The p-value and the number of arrangements, by going through all of them."""
    sizes = [len(groups) for groups in outcomes]

    def statistic(trials: tuple[str, ...]) -> int:
        start = pairs = 0
        for size in sizes:
            pairs += sum(comb(count, 2) for count in Counter(trials[start : start + size]).values())
            start += size
        return pairs

    flat = tuple(itertools.chain.from_iterable(outcomes))
    arrangements = set(itertools.permutations(flat))
    observed = statistic(flat)
    return sum(statistic(trials) >= observed for trials in arrangements) / len(arrangements), len(arrangements)


@pytest.mark.parametrize(
    ("outcomes", "p_value"),
    [
        (["AAAAA", "BBBBB"], 2 / 252),
        (["AAA", "BBB"], 0.1),
        (["AA", "BB"], 2 / 6),
        (["ABC", "DEF"], 1.0),
        (["AAA", "AAA"], 1.0),
        (["AAAA", "BBBB", "BBBB"], 3 / comb(12, 4)),
        (["AAAAB", "BBBBA"], 52 / 252),
        (["A", "B"], 1.0),
        (["AAAA"], 1.0),
        (["", "AB"], 1.0),
        ([], 1.0),
    ],
)
def test_known_answers(outcomes: list[str], p_value: float) -> None:
    found = permutation_p(outcomes)
    assert found.p_value == pytest.approx(p_value, rel=1e-15)
    assert found.method == "exact"


@settings(max_examples=150, deadline=None)
@given(
    outcomes=st.lists(st.lists(st.sampled_from("ABCD"), max_size=4), max_size=4).filter(lambda o: sum(map(len, o)) <= 8)
)
def test_agrees_with_full_enumeration(outcomes: list[list[str]]) -> None:
    found = permutation_p(outcomes)
    p_value, arrangements = brute_force(outcomes)
    assert found.p_value == pytest.approx(p_value, rel=1e-12)
    assert found.arrangements == arrangements


def test_names_and_sequence_do_not_matter() -> None:
    one = permutation_p([["A", "B", "A"], ["B", "B", "C"]])
    assert permutation_p([["B", "C", "B"], ["A", "B", "A"]]) == one
    assert permutation_p([["y", "y", "z"], ["x", "z", "z"]]).p_value == one.p_value


def test_many_stable_orders_are_exact_and_quick() -> None:
    outcomes = [["A"] * 5] * 12 + [["B"] * 5] * 12
    found = permutation_p(outcomes)
    assert found.method == "exact"
    assert found.p_value == pytest.approx(comb(24, 12) / comb(120, 60), rel=1e-12)
    assert found.arrangements == ARRANGEMENTS_LIMIT


def test_many_trials_that_all_differ_are_exact() -> None:
    found = permutation_p([[f"{order}.{repeat}" for repeat in range(3)] for order in range(24)])
    assert (found.p_value, found.method) == (1.0, "exact")


def test_too_many_states_are_estimated_and_said_to_be() -> None:
    outcomes = [list("AABC"), list("ABBB"), list("CCAB"), list("DDDA")]
    exact = permutation_p(outcomes)
    estimate = permutation_p(outcomes, max_steps=3)
    assert (exact.method, estimate.method, estimate.arrangements) == ("exact", "monte-carlo", 19_999)
    assert estimate.p_value == pytest.approx(exact.p_value, abs=0.02)
    assert estimate == permutation_p(outcomes, max_steps=3)
    assert permutation_p([["A"] * 9, ["B"] * 9], max_steps=0).p_value >= 1 / 20_000


def test_a_large_mixed_study_ends() -> None:
    outcomes = [[chr(65 + (order * repeat + order) % 7) for repeat in range(9)] for order in range(12)]
    found = permutation_p(outcomes)
    assert 0 < found.p_value <= 1


def test_the_bound_on_what_was_never_seen() -> None:
    assert rule_of_three(0) == 1.0
    assert rule_of_three(1) == pytest.approx(0.95)
    for n in (2, 10, 1000):
        assert rule_of_three(n) < 3 / n
        assert (1 - rule_of_three(n)) ** n == pytest.approx(0.05)
    assert rule_of_three(1000) == pytest.approx(0.003, rel=0.01)


@pytest.mark.parametrize(
    ("orders", "alpha", "repeats"), [(2, 0.01, 5), (2, 0.05, 4), (3, 0.01, 4), (24, 0.01, 3), (2, 0.5, 2)]
)
def test_repeats_that_can_convince(orders: int, alpha: float, repeats: int) -> None:
    assert repeats_needed(orders, alpha) == repeats


@given(orders=st.integers(2, 8), alpha=st.sampled_from([0.2, 0.05, 0.01, 0.001]))
def test_that_many_repeats_convince_and_one_less_may_not(orders: int, alpha: float) -> None:
    repeats = repeats_needed(orders, alpha)

    def least_convincing(count: int) -> float:
        return max(
            permutation_p([["A"] * count] * first + [["B"] * count] * (orders - first)).p_value
            for first in range(1, orders)
        )

    assert least_convincing(repeats) < alpha
    assert repeats == 1 or least_convincing(repeats - 1) >= alpha


@pytest.mark.parametrize(("orders", "alpha"), [(1, 0.01), (0, 0.01), (2, 0.0), (2, 1.0)])
def test_questions_without_an_answer(orders: int, alpha: float) -> None:
    with pytest.raises(ValueError, match="no number of repeats"):
        repeats_needed(orders, alpha)

from __future__ import annotations

import itertools
import math
import random

import pytest
from hypothesis import given, settings, strategies as st

from reprocheck.plan import designs
from reprocheck.plan.designs import Order

SIZES_IN_THE_TABLE = {4: 6, 5: 7, 6: 8, 7: 8, 8: 8, 9: 9, 10: 10}


def triples_in(rows: list[Order]) -> set[Order]:
    return {triple for row in rows for triple in itertools.combinations(row, 3)}


def pairs_beside_each_other(rows: list[Order]) -> set[Order]:
    return {pair for row in rows for pair in itertools.pairwise(row)}


def assert_orders(rows: list[Order], n: int) -> None:
    """Distinct permutations, the first of them the user's own."""
    assert rows[0] == tuple(range(n))
    assert len(set(rows)) == len(rows)
    assert all(sorted(row) == list(range(n)) for row in rows)


@pytest.mark.parametrize(("n", "size"), SIZES_IN_THE_TABLE.items())
def test_the_table_holds_every_ordered_triple(n: int, size: int) -> None:
    rows = designs.triples(n, seed=0)
    assert_orders(rows, n)
    assert len(rows) == size
    assert triples_in(rows) == set(itertools.permutations(range(n), 3))


def test_the_table_does_not_depend_on_the_seed() -> None:
    assert designs.triples(designs.LARGEST_TABLE, 1) == designs.triples(designs.LARGEST_TABLE, 2)


@pytest.mark.parametrize("n", range(4))
def test_triples_of_up_to_three_are_all_orders(n: int) -> None:
    assert designs.triples(n, seed=0) == designs.all_orders(n)


@pytest.mark.parametrize(("n", "most"), [(11, 14), (12, 15), (13, 16), (16, 18), (20, 19), (25, 21), (40, 25)])
def test_constructed_triples_are_complete_and_few(n: int, most: int) -> None:
    rows = designs.triples(n, seed=0)
    assert_orders(rows, n)
    assert triples_in(rows) == set(itertools.permutations(range(n), 3))
    assert len(rows) <= most


@settings(max_examples=8, deadline=None)
@given(n=st.integers(11, 15), seed=st.integers())
def test_the_construction_ends_complete_for_any_seed_and_repeats_itself(n: int, seed: int) -> None:
    rows = designs.triples(n, seed)
    assert_orders(rows, n)
    assert len(triples_in(rows)) == n * (n - 1) * (n - 2)
    # Each order covers a sixth of what is missing, and the first two cover a third of everything.
    assert len(rows) <= 2 + math.log(n * (n - 1) * (n - 2) * 2 / 3) / -math.log(5 / 6) + 1
    assert rows == designs.triples(n, seed)


@settings(max_examples=40, deadline=None)
@given(n=st.integers(4, 12), seed=st.integers())
def test_each_greedy_order_covers_a_sixth_of_what_is_missing(n: int, seed: int) -> None:
    rng, missing = random.Random(seed), designs._Missing(n)
    left = set(itertools.permutations(range(n), 3))
    while left:
        assert missing
        row = missing.likely_order(rng)
        held = left & set(itertools.combinations(row, 3))
        assert missing.held_by(row) == len(held)
        assert 6 * len(held) >= len(left)
        missing.remove(row)
        left -= held
    assert not missing


@pytest.mark.parametrize("n", range(1, 21))
def test_balanced_puts_everyone_everywhere_and_beside_everyone(n: int) -> None:
    rows = designs.balanced(n)
    assert_orders(rows, n)
    assert len(rows) == (n if n % 2 == 0 or n == 1 else 2 * n)
    assert all({row[place] for row in rows} == set(range(n)) for place in range(n))
    assert pairs_beside_each_other(rows) == set(itertools.permutations(range(n), 2))
    found = len(triples_in(rows))
    assert found == (n * (n - 1) * (n - 2) if n % 2 or n == 2 else n * (n - 2) ** 2)


def test_balanced_of_nothing_is_the_empty_order() -> None:
    assert designs.balanced(0) == [()]


@pytest.mark.parametrize("n", range(7))
def test_all_and_pairs(n: int) -> None:
    assert_orders(designs.all_orders(n), n)
    assert len(designs.all_orders(n)) == math.factorial(n)
    rows = designs.pairs(n)
    assert_orders(rows, n)
    assert {pair for row in rows for pair in itertools.combinations(row, 2)} == set(itertools.permutations(range(n), 2))
    assert len(rows) == min(2, math.factorial(n))


@settings(max_examples=50, deadline=None)
@given(n=st.integers(0, 9), count=st.integers(1, 200), seed=st.integers())
def test_samples_are_distinct_repeatable_and_as_many_as_there_are(n: int, count: int, seed: int) -> None:
    rows = designs.sample(n, count, seed)
    assert_orders(rows, n)
    assert len(rows) == min(count, math.factorial(n))
    assert rows == designs.sample(n, count, seed)


def test_samples_are_drawn_evenly() -> None:
    seen = {row for seed in range(400) for row in designs.sample(4, 5, seed)[1:]}
    assert len(seen) == math.factorial(4) - 1

from __future__ import annotations

import itertools
from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from reprocheck.plan.coverage import Coverage, Tally, best_first, coverage

Rows = list[tuple[int, ...]]


def counted(rows: Sequence[Sequence[int]], n: int) -> Coverage:
    """The same figures from plain sets of tuples."""
    pairs = {pair for row in rows for pair in itertools.combinations(row, 2)}
    triples = {triple for row in rows for triple in itertools.combinations(row, 3)}
    beside = {pair for row in rows for pair in itertools.pairwise(row)}
    return msgspec.convert(
        {
            "pairs": (len(pairs), n * (n - 1)),
            "triples": (len(triples), n * (n - 1) * (n - 2)),
            "firsts": (len({row[0] for row in rows if row}), n),
            "adjacencies": (len(beside), n * (n - 1)),
        },
        Coverage,
    )


@st.composite
def rows_of(draw: st.DrawFn, *, partial: bool = False, least: int = 0) -> tuple[int, Rows]:
    n = draw(st.integers(1, 7))
    row = st.permutations(range(n))
    if partial:
        row = st.tuples(row, st.integers(0, n)).map(lambda drawn: drawn[0][: drawn[1]])
    return n, draw(st.lists(row.map(tuple), min_size=least, max_size=12))


@settings(max_examples=50, deadline=None)
@given(rows_of(partial=True))
def test_coverage_counts_what_plain_sets_count(drawn: tuple[int, Rows]) -> None:
    n, rows = drawn
    names = [f"m{i}" for i in range(n)]
    assert coverage([[names[i] for i in row] for row in rows], names) == counted(rows, n)


@settings(max_examples=50, deadline=None)
@given(rows_of(partial=True, least=1))
def test_gain_is_what_adding_changes(drawn: tuple[int, Rows]) -> None:
    n, rows = drawn
    tally = Tally(n)
    for row in rows:
        before, gain = tally.coverage(), tally.gain(row)
        tally.add(row)
        after = tally.coverage()
        assert gain == tuple(
            getattr(after, kind).covered - getattr(before, kind).covered
            for kind in ("pairs", "triples", "firsts", "adjacencies")
        )
        assert not any(tally.gain(row))


def test_two_opposite_orders_cover_all_pairs_and_a_third_of_the_triples() -> None:
    found = coverage([("a", "b", "c"), ("c", "b", "a")], ("a", "b", "c"))
    assert found == counted([(0, 1, 2), (2, 1, 0)], 3)
    assert (found.pairs, found.triples, found.firsts, found.adjacencies) == ((6, 6), (2, 6), (2, 3), (4, 6))


def test_nothing_ran_and_nothing_to_run() -> None:
    assert coverage([], ["a", "b", "c"]).pairs == (0, 6)
    assert coverage([()], []).firsts == (0, 0)


def test_foreign_names_are_refused() -> None:
    with pytest.raises(KeyError, match="x"):
        coverage([("a", "x")], ["a", "b"])


def test_coverage_has_a_plain_json_form() -> None:
    assert msgspec.json.decode(msgspec.json.encode(coverage([("a", "b")], ("a", "b")))) == {
        "pairs": [1, 2],
        "triples": [0, 0],
        "firsts": [1, 2],
        "adjacencies": [1, 2],
    }


@settings(max_examples=50, deadline=None)
@given(rows_of(least=1))
def test_best_first_keeps_the_rows_and_the_first_one(drawn: tuple[int, Rows]) -> None:
    _, rows = drawn
    chosen = best_first(rows)
    assert sorted(chosen) == sorted(rows)
    assert chosen[0] == rows[0]


@settings(max_examples=50, deadline=None)
@given(rows_of(least=2))
def test_each_row_is_the_best_of_those_left(drawn: tuple[int, Rows]) -> None:
    n, rows = drawn
    left = best_first(rows)
    tally = Tally(n)
    tally.add(left.pop(0))
    while left:
        row = left.pop(0)
        assert all(tally.gain(other) <= tally.gain(row) for other in left)
        tally.add(row)


def test_best_first_of_nothing_is_nothing() -> None:
    assert best_first([]) == []

from __future__ import annotations

import itertools
import random
import statistics
from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from reprocheck.model import Coverage, Failure, Record, Share, Trial
from reprocheck.plan import designs
from reprocheck.plan.coverage import Tally, achieved, best_first, coverage

Rows = list[tuple[int, ...]]
KINDS = ("pairs", "triples", "firsts", "adjacencies")


def counted(rows: Sequence[Sequence[int]], n: int) -> Coverage:
    """The same figures from plain sets of tuples."""
    pairs = {pair for row in rows for pair in itertools.combinations(row, 2)}
    triples = {triple for row in rows for triple in itertools.combinations(row, 3)}
    beside = {pair for row in rows for pair in itertools.pairwise(row)}
    return msgspec.convert(
        {
            name: {"covered": covered, "total": total}
            for name, covered, total in (
                ("pairs", len(pairs), n * (n - 1)),
                ("triples", len(triples), n * (n - 1) * (n - 2)),
                ("firsts", len({row[0] for row in rows if row}), n),
                ("adjacencies", len(beside), n * (n - 1)),
            )
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
        assert gain == tuple(getattr(after, kind).covered - getattr(before, kind).covered for kind in KINDS)
        assert not any(tally.gain(row))


def test_two_opposite_orders_cover_all_pairs_and_a_third_of_the_triples() -> None:
    found = coverage([("a", "b", "c"), ("c", "b", "a")], ("a", "b", "c"))
    assert found == counted([(0, 1, 2), (2, 1, 0)], 3)
    assert [getattr(found, kind).covered for kind in KINDS] == [6, 2, 2, 4]
    assert [getattr(found, kind).total for kind in KINDS] == [6, 6, 3, 6]


def test_nothing_ran_and_nothing_to_run() -> None:
    assert coverage([], ["a", "b", "c"]).pairs == Share(covered=0, total=6)
    assert coverage([()], []).firsts == Share(covered=0, total=0)


def test_foreign_names_are_refused() -> None:
    with pytest.raises(KeyError, match="x"):
        coverage([("a", "x")], ["a", "b"])


def test_coverage_has_a_plain_json_form() -> None:
    assert msgspec.json.decode(msgspec.json.encode(coverage([("a", "b")], ("a", "b")))) == {
        "pairs": {"covered": 1, "total": 2},
        "triples": {"covered": 0, "total": 0},
        "firsts": {"covered": 1, "total": 2},
        "adjacencies": {"covered": 1, "total": 2},
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


ARRANGEMENTS = {
    **{f"triples of {n}": designs.triples(n, 0) for n in range(4, 13)},
    **{f"balanced of {n}": designs.balanced(n) for n in range(4, 11)},
    **{f"both of {n}": [*designs.triples(n, 0), *designs.balanced(n)] for n in (5, 6, 8, 10)},
    "all of 5": designs.all_orders(5),
}


@pytest.mark.parametrize("name", ARRANGEMENTS)
def test_wherever_it_is_cut_a_plan_has_lost_less_than_a_random_arrangement(name: str) -> None:
    rows = list(dict.fromkeys(ARRANGEMENTS[name]))
    rng = random.Random(20261201)
    others = [[rows[0], *rng.sample(rows[1:], len(rows) - 1)] for _ in range(30)]
    ours = prefixes(best_first(rows))
    theirs = [prefixes(other) for other in others]
    for at, mine in enumerate(ours):
        # Pairs come first: no arrangement has more of them. That may cost a triple here or there.
        assert mine[0] >= max(other[at][0] for other in theirs), at
        assert mine[1] >= 0.97 * statistics.mean(other[at][1] for other in theirs), at
    assert sum(mine[1] for mine in ours) >= statistics.mean(sum(row[1] for row in other) for other in theirs)


def prefixes(rows: Rows) -> list[tuple[int, int]]:
    """(pairs, triples) covered by the first one, two, three … rows."""
    tally = Tally(len(rows[0]))
    found = []
    for row in rows:
        tally.add(row)
        now = tally.coverage()
        found.append((now.pairs.covered, now.triples.covered))
    return found


def record(order: str, effective: str, failed: str | None = None) -> Record:
    failure = Failure(kind="exception", phase="", signature="s", message="m", subject=failed) if failed else None
    trial = Trial(order=tuple(order), repeat=0)
    return Record(trial=trial, effective_order=tuple(effective), ok=failure is None, failure=failure)


def test_achieved_is_what_trials_came_to_not_what_was_asked_for() -> None:
    found = achieved(
        [
            record("abc", "abc"),
            record("acb", "abc"),  # loads like the first one: adds nothing
            record("bca", "b", "c"),  # died importing its second subject: one pair was tried
            record("cab", "", "c"),  # died at once: only a first position
        ],
        ("a", "b", "c"),
    )
    assert found == coverage([("a", "b", "c"), ("b", "c"), ("c",)], ("a", "b", "c"))
    assert (found.pairs.covered, found.firsts.covered, found.triples.covered) == (3, 3, 1)


def test_a_workload_that_fails_after_its_imports_has_gone_through_its_order() -> None:
    assert achieved([record("ab", "ab", None)], ("a", "b")).pairs.covered == 1

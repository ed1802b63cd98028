"""The verdict as a function of groups alone."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from reprocheck.compare.verdict import ALPHA, EXIT_CODES, judge

AB, BA = ("a", "b"), ("b", "a")
NONE: frozenset[str] = frozenset()


@pytest.mark.parametrize(
    ("first", "second", "failed", "tolerated", "verdict", "settled"),
    [
        ("AAA", "AAA", "", False, "identical", True),
        ("AAAAA", "BBBBB", "", False, "order-dependent", True),
        ("AAA", "BBB", "", False, "inconclusive", False),
        ("AAA", "BBB", "", True, "within-tolerance", True),
        ("ABABA", "ABABA", "", True, "within-tolerance", True),
        ("ABABA", "BABAB", "", False, "noisy", False),
        ("ABCDE", "FGHIJ", "", False, "noisy", False),
        ("ABABABAB", "CDCDCDCD", "", False, "order-dependent-with-noise", True),
        ("FFF", "FFF", "F", False, "fails-everywhere", True),
        ("FFFFF", "AAAAA", "F", False, "fails-in-some-orders", True),
        ("FFFFF", "AAAAA", "F", True, "fails-in-some-orders", True),
        ("FFF", "AAA", "F", False, "inconclusive", False),
        ("FGFGF", "GFGFG", "FG", False, "fails-everywhere", True),
        ("FFFFF", "GGGGG", "FG", False, "order-dependent", True),
        ("FAFAF", "AAFAF", "F", False, "noisy", False),
        ("", "AAA", "", False, "inconclusive", True),
    ],
)
def test_table(first: str, second: str, failed: str, tolerated: bool, verdict: str, settled: bool) -> None:
    found = judge({AB: list(first), BA: list(second)}, frozenset(failed), within_tolerance=tolerated)

    assert found.verdict == verdict
    assert found.settled is settled
    assert found.reason
    assert "\n" not in found.reason


def test_every_verdict_has_an_exit_code() -> None:
    assert {judge({AB: ["A"]}, NONE, within_tolerance=False).verdict} <= set(EXIT_CODES)
    assert sorted(EXIT_CODES.values()) == [0, 0, 1, 1, 1, 1, 1, 3]


arms = st.lists(st.lists(st.sampled_from("ABF"), min_size=1, max_size=6), min_size=2, max_size=4)


@given(arms, st.booleans())
def test_never_claims_the_order_without_the_test(groups: list[list[str]], tolerated: bool) -> None:
    found = judge({(str(i),): row for i, row in enumerate(groups)}, frozenset("F"), within_tolerance=tolerated)

    if found.verdict in ("order-dependent", "order-dependent-with-noise", "fails-in-some-orders"):
        assert found.permutation is not None
        assert found.permutation.p_value < ALPHA
    if len({group for row in groups for group in row}) > 1:
        assert found.verdict != "identical"


@given(arms, st.permutations(range(4)))
def test_the_sequence_of_orders_means_nothing(groups: list[list[str]], shuffled: list[int]) -> None:
    rows: dict[tuple[str, ...], list[str]] = {(str(i),): row for i, row in enumerate(groups)}
    keys = [key for i in shuffled for key in [(str(i),)] if key in rows]

    one = judge(rows, frozenset("F"), within_tolerance=False)
    two = judge({key: rows[key] for key in keys}, frozenset("F"), within_tolerance=False)

    assert one.verdict == two.verdict

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from reprocheck.explain.locate import align as room
from reprocheck.explain.locate.align import Gap, Pair, align, lcs

SEQUENCES = st.lists(st.sampled_from("abcd"), max_size=12)


def longest(a: Sequence[str], b: Sequence[str]) -> int:
    """Length of a longest common subsequence, by the table."""
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i in range(len(a) - 1, -1, -1):
        for j in range(len(b) - 1, -1, -1):
            table[i][j] = 1 + table[i + 1][j + 1] if a[i] == b[j] else max(table[i + 1][j], table[i][j + 1])
    return table[0][0]


@given(SEQUENCES, SEQUENCES)
def test_longest_common_subsequence(a: list[str], b: list[str]) -> None:
    pairs = lcs(a, b)

    assert len(pairs) == longest(a, b)
    assert all(a[i] == b[j] for i, j in pairs)
    assert pairs == sorted(set(pairs))
    assert len({j for _, j in pairs}) == len(pairs)


@given(SEQUENCES, SEQUENCES)
def test_alignment_covers_both_in_order(a: list[str], b: list[str]) -> None:
    steps = align(a, b)

    left = [i for step in steps for i in ([step.a] if isinstance(step, Pair) else step.a)]
    right = [j for step in steps for j in ([step.b] if isinstance(step, Pair) else step.b)]
    assert left == list(range(len(a)))
    assert right == list(range(len(b)))
    assert all(a[step.a] == b[step.b] for step in steps if isinstance(step, Pair))
    assert not any(isinstance(one, Gap) and isinstance(other, Gap) for one, other in pairwise(steps))


def test_equal_sequences_are_pairs_only() -> None:
    assert align("abc", "abc") == [Pair(0, 0), Pair(1, 1), Pair(2, 2)]


def test_one_step_replaced() -> None:
    assert align("abc", "axc") == [Pair(0, 0), Gap(range(1, 2), range(1, 2)), Pair(2, 2)]


def test_nothing_in_common() -> None:
    assert align("ab", "xyz") == [Gap(range(2), range(3))]
    assert align("", "x") == [Gap(range(0), range(1))]
    assert align("", "") == []


def test_long_sequences_with_few_edits_are_fast() -> None:
    a = [n % 97 for n in range(50_000)]
    b = a.copy()
    del b[30_000]
    b.insert(10_000, -1)

    gaps = [step for step in align(a, b) if isinstance(step, Gap)]

    assert gaps == [
        Gap(range(10_000, 10_000), range(10_000, 10_001)),
        Gap(range(30_000, 30_001), range(30_001, 30_001)),
    ]


def test_beyond_the_limit_blocks_are_matched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "MAX_EDITS", 3)

    pairs = lcs("abcdefgh", "12abcdxxgh34")

    assert all("abcdefgh"[i] == "12abcdxxgh34"[j] for i, j in pairs)
    assert [i for i, _ in pairs] == [0, 1, 2, 3, 6, 7]

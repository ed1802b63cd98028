"""Alignment of two sequences of steps: the exact prefix and suffix, and a longest common subsequence in between."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

__all__ = ["Gap", "Pair", "align", "lcs"]

MAX_EDITS = 1_000
"""Edits up to which the exact (Myers) search is used; its memory grows with the square."""


class Pair(NamedTuple):
    """Step `a` of the first sequence is step `b` of the second."""

    a: int
    b: int


class Gap(NamedTuple):
    """Steps of either sequence without a partner, between the same two pairs. One side may be empty."""

    a: range
    b: range


def align(a: Sequence[Hashable], b: Sequence[Hashable], *, cut: bool = False) -> list[Pair | Gap]:
    """Pairs of equal keys and the gaps between them, in the order of both sequences.

    The equal beginning and the equal end are paired one by one; the rest by a longest common subsequence, so that as
    many steps as possible have a partner. With `cut`, a sequence ends early, and a gap at the end is left out.
    """
    start = 0
    shortest = min(len(a), len(b))
    while start < shortest and a[start] == b[start]:
        start += 1
    end = 0
    while end < shortest - start and a[-1 - end] == b[-1 - end]:
        end += 1
    middle = lcs(a[start : len(a) - end], b[start : len(b) - end])
    pairs = [Pair(index, index) for index in range(start)]
    pairs += [Pair(start + i, start + j) for i, j in middle]
    pairs += [Pair(len(a) - left, len(b) - left) for left in range(end, 0, -1)]
    found: list[Pair | Gap] = []
    at_a = at_b = 0
    for pair in [*pairs, Pair(len(a), len(b))]:
        if pair.a > at_a or pair.b > at_b:
            found.append(Gap(range(at_a, pair.a), range(at_b, pair.b)))
        found.append(pair)
        at_a, at_b = pair.a + 1, pair.b + 1
    found.pop()
    if cut and found and isinstance(found[-1], Gap):
        found.pop()
    return found


def lcs(a: Sequence[Hashable], b: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Index pairs of a longest common subsequence, by Myers' greedy algorithm (https://doi.org/10.1007/BF01840446).

    Beyond `MAX_EDITS` edits the sequences have next to nothing in common, and the longest matching blocks are taken
    instead, which may leave a few more steps without a partner.
    """
    if not a or not b:
        return []
    trail = _myers(a, b)
    if trail is None:
        blocks = SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks()
        return [(block.a + k, block.b + k) for block in blocks for k in range(block.size)]
    x, y = len(a), len(b)
    found: list[tuple[int, int]] = []
    for edits in range(len(trail) - 1, -1, -1):
        reached = trail[edits]
        k = x - y
        down = k == -edits or (k != edits and reached[k - 1] < reached[k + 1])
        before = k + 1 if down else k - 1
        from_x = reached[before] if edits else 0
        from_y = from_x - before if edits else 0
        while x > from_x and y > from_y:
            x, y = x - 1, y - 1
            found.append((x, y))
        x, y = from_x, from_y
    return found[::-1]


def _myers(a: Sequence[Hashable], b: Sequence[Hashable]) -> list[dict[int, int]] | None:
    """Per number of edits, the farthest x on each diagonal before that edit; None beyond `MAX_EDITS`."""
    farthest: dict[int, int] = {1: 0}
    trail: list[dict[int, int]] = []
    for edits in range(min(len(a) + len(b), MAX_EDITS) + 1):
        trail.append({k: farthest[k] for k in range(-edits - 1, edits + 2) if k in farthest})
        for k in range(-edits, edits + 1, 2):
            if k == -edits or (k != edits and farthest[k - 1] < farthest[k + 1]):
                x = farthest[k + 1]
            else:
                x = farthest[k - 1] + 1
            y = x - k
            while x < len(a) and y < len(b) and a[x] == b[y]:
                x, y = x + 1, y + 1
            farthest[k] = x
            if x >= len(a) and y >= len(b):
                return trail
    return None

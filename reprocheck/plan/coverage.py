"""How much of all possible orders a list of orders covers, and in which sequence to run them.

Four things are counted, because library clashes come in four shapes: who is imported before whom (ordered
pairs), what must come before what before what (ordered triples), who is first (first positions), and who
comes directly before whom (adjacencies).
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from reprocheck.model import Coverage, Record, Share

__all__ = ["Coverage", "Gain", "Share", "Tally", "achieved", "best_first", "coverage", "tried"]


class Gain(NamedTuple):
    """How many new things of each kind an order would add. Compares pairs first, then triples, firsts, adjacencies."""

    pairs: int
    triples: int
    firsts: int
    adjacencies: int


class Tally:
    """What the orders added so far cover, over subjects numbered 0 to n-1.

    Sets of subjects are bit masks in plain integers, so adding or weighing one order costs O(n²) word
    operations, although it holds O(n³) triples.
    """

    def __init__(self, n: int) -> None:
        self._n = n
        self._before = [0] * n  # [a]: every b seen after a
        self._triples = [[0] * n for _ in range(n)]  # [a][b]: every c seen after a, b
        self._adjacent = [0] * n  # [a]: every b seen directly after a
        self._first = 0

    def gain(self, order: Sequence[int]) -> Gain:
        """What `order` (of all subjects or some of them) would add to the tally, which stays as it is."""
        pairs = triples = adjacencies = 0
        after = _after(order)
        for i, a in enumerate(order):
            pairs += (after[i] & ~self._before[a]).bit_count()
            seen = self._triples[a]
            for j in range(i + 1, len(order)):
                triples += (after[j] & ~seen[order[j]]).bit_count()
        for a, b in itertools.pairwise(order):
            adjacencies += not self._adjacent[a] >> b & 1
        firsts = int(bool(order) and not self._first >> order[0] & 1)
        return Gain(pairs, triples, firsts, adjacencies)

    def add(self, order: Sequence[int]) -> None:
        """Counts `order` in."""
        after = _after(order)
        for i, a in enumerate(order):
            self._before[a] |= after[i]
            seen = self._triples[a]
            for j in range(i + 1, len(order)):
                seen[order[j]] |= after[j]
        for a, b in itertools.pairwise(order):
            self._adjacent[a] |= 1 << b
        if order:
            self._first |= 1 << order[0]

    def coverage(self) -> Coverage:
        """The totals so far."""
        n = self._n
        return Coverage(
            pairs=Share(covered=_count(self._before), total=n * (n - 1)),
            triples=Share(covered=sum(map(_count, self._triples)), total=n * (n - 1) * (n - 2)),
            firsts=Share(covered=self._first.bit_count(), total=n),
            adjacencies=Share(covered=_count(self._adjacent), total=n * (n - 1)),
        )


def coverage(orders: Iterable[Sequence[str]], subjects: Sequence[str]) -> Coverage:
    """What `orders` cover of everything `subjects` could be put into.

    Works for what was achieved as well as for what was planned: any number of orders, repeated ones too,
    and orders cut short (a trial that died at its second import has covered one pair).

    Raises:
        KeyError: an order holds a name that is not among `subjects`.
    """
    number = {subject: i for i, subject in enumerate(subjects)}
    tally = Tally(len(number))
    for order in orders:
        tally.add([number[subject] for subject in order])
    return tally.coverage()


def tried(record: Record) -> tuple[str, ...]:
    """The order a trial really went through: subjects as their imports began, the one that failed being the last."""
    failed = record.failure.subject if record.failure is not None else None
    began = record.effective_order
    return (*began, failed) if failed is not None and failed not in began else began


def achieved(records: Iterable[Record], subjects: Sequence[str]) -> Coverage:
    """What these trials came to: an order that loads like another adds nothing, one that died adds its beginning."""
    return coverage(dict.fromkeys(tried(record) for record in records), subjects)


def best_first(orders: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """The same orders: the first stays first, then always the one that adds most to what came before it.

    So a budget that ends early has lost the fewest pairs and triples. Equal gains keep their given sequence.
    """
    if not orders:
        return []
    tally = Tally(len(orders[0]))
    tally.add(orders[0])
    chosen = [orders[0]]
    # A gain can only shrink as the tally grows (coverage is submodular), so an order whose gain, weighed
    # again, still heads the queue is the best of all: the others need not be weighed.
    # https://en.wikipedia.org/wiki/Submodular_set_function#Optimization_problems (lazy greedy, Minoux 1978)
    queue = [(_cost(tally.gain(order)), i) for i, order in enumerate(orders) if i]
    heapq.heapify(queue)
    while queue:
        stale, i = queue[0]
        cost = _cost(tally.gain(orders[i]))
        if cost == stale:
            heapq.heappop(queue)
            tally.add(orders[i])
            chosen.append(orders[i])
        else:
            heapq.heapreplace(queue, (cost, i))
    return chosen


def _after(order: Sequence[int]) -> list[int]:
    """For each position, the set of subjects after it, as a bit mask."""
    masks, later = [0] * len(order), 0
    for i in range(len(order) - 1, -1, -1):
        masks[i] = later
        later |= 1 << order[i]
    return masks


def _count(masks: Iterable[int]) -> int:
    return sum(mask.bit_count() for mask in masks)


def _cost(gain: Gain) -> tuple[int, ...]:
    return tuple(-value for value in gain)

"""Sets of orders with a guarantee, over subjects numbered 0 to n-1; the first order is always 0, 1, …, n-1.

The words of the literature: `triples` is a sequence covering array of strength 3 (every ordered triple of
subjects occurs, not necessarily side by side, in some order), `balanced` a Williams design, i.e. a row-complete
Latin square (every subject at every position, every ordered pair side by side).

* Kuhn, Higdon, Lawrence, Kacker, Lei: Combinatorial Methods for Event Sequence Testing, ICST 2012,
  https://csrc.nist.gov/Projects/automated-combinatorial-testing-for-software
* Chee, Colbourn, Horsley, Zhou: Sequence Covering Arrays, SIAM J. Discrete Math. 27 (2013): the density
  argument that makes the greedy construction end.
* Williams: Experimental designs balanced for the estimation of residual effects of treatments, 1949;
  Wei et al., https://link.springer.com/chapter/10.1007/978-3-030-72016-2_15, use the same squares on flaky tests.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable, Sequence

__all__ = ["LARGEST_TABLE", "Order", "all_orders", "balanced", "pairs", "sample", "triples"]

Order = tuple[int, ...]

# Sequence covering arrays of strength 3, one letter a subject, one word an order: the smallest found by
# simulated annealing (an upper bound, proven minimal only for 4, where 3! = 6 is the lower bound).
_TRIPLES = {
    4: "dacb dbca cbda cadb abdc bacd",
    5: "edcba eacbd caedb bcdea adcbe baedc daebc",
    6: "ecbfda bdaecf dceafb afcbed cdfbea fadebc bfcaed eadbfc",
    7: "edcfagb cbdgafe afcedbg fgbceda ebcfgad gfadecb agbdcef dbeagfc",
    8: "ebhfcagd hdcgeafb cfbgdhae dhbfeagc abdgcefh afcehdgb gfahbedc egcdbahf",
    9: "gfbchdiea dgiaebchf ahdfbcegi haigecbdf bgeaidfhc idhcbfgae cebfdahig ecgihafdb fiaeghdcb",
    10: (
        "bgefjaichd cjdifgaehb chegfadbij afegdchjib djegbhcafi abhigjedcf iadfcjbheg jhcgbifdea fbdighacej eihbdjfcag"
    ),
}
LARGEST_TABLE = max(_TRIPLES)
"""Up to this many subjects `triples` comes from a table; beyond, it is constructed and depends on a seed."""


def all_orders(n: int) -> list[Order]:
    """All n! orders, in lexicographic sequence."""
    return list(itertools.permutations(range(n)))


def pairs(n: int) -> list[Order]:
    """The order and its reverse: every ordered pair is in one of the two."""
    forward = tuple(range(n))
    return _distinct([forward, forward[::-1]])


def triples(n: int, seed: int) -> list[Order]:
    """Few orders that hold every ordered triple: all n! up to 3 subjects, then the table, beyond it greedy.

    The greedy construction ends: every order it adds covers at least a sixth of the triples still missing.
    Equal `n` and `seed` give equal orders.
    """
    if n < min(_TRIPLES):
        return all_orders(n)
    if n in _TRIPLES:
        return _relabelled([tuple(ord(letter) - ord("a") for letter in word) for word in _TRIPLES[n].split()])
    # One construction costs O(n³), so the attempts are many where they are cheap.
    attempts = max(1, min(20, 2000 // n**2))
    rng = random.Random(seed)  # noqa: S311  # a design, not a secret
    return min((_construct(n, rng) for _ in range(attempts)), key=len)


def balanced(n: int) -> list[Order]:
    """Williams' design, n orders (n even) or 2n (n odd).

    Every subject is at every position, and every ordered pair side by side. All triples are there for odd n,
    a share of (n-2)/(n-1) for even n (counted exhaustively by the tests).
    """
    if n == 0:
        return [()]
    zigzag = [0]  # 0, 1, n-1, 2, n-2, …: all n-1 steps differ modulo n
    for step in range(1, n):
        zigzag.append((zigzag[-1] + (step if step % 2 else -step)) % n)
    rows = [tuple((subject + shift) % n for subject in zigzag) for shift in range(n)]
    if n % 2:
        rows += [row[::-1] for row in rows]
    return _distinct(_relabelled(rows))


def sample(n: int, count: int, seed: int) -> list[Order]:
    """`count` distinct orders drawn evenly, the first being 0, 1, …, n-1; all n! where there are no more."""
    rng = random.Random(seed)  # noqa: S311  # a design, not a secret
    own = tuple(range(n))
    if count >= math.factorial(n):
        return all_orders(n)
    if 2 * count > math.factorial(n):
        return [own, *rng.sample(all_orders(n)[1:], count - 1)]
    chosen = {own: None}
    while len(chosen) < count:  # at least every second draw is new
        chosen[tuple(rng.sample(range(n), n))] = None
    return list(chosen)


def _relabelled(rows: Sequence[Order]) -> list[Order]:
    """The same design under other names, such that its first row is 0, 1, …, n-1; coverage does not change."""
    name = {subject: i for i, subject in enumerate(rows[0])}
    return [tuple(name[subject] for subject in row) for row in rows]


def _distinct(rows: Iterable[Order]) -> list[Order]:
    return list(dict.fromkeys(rows))


def _construct(n: int, rng: random.Random) -> list[Order]:
    """Orders that hold every ordered triple, one greedy order after the other."""
    missing = _Missing(n)
    rows = pairs(n)
    for row in rows:
        missing.remove(row)
    while missing:
        row = max((missing.likely_order(rng) for _ in range(8)), key=missing.held_by)
        missing.remove(row)
        rows.append(row)
    return rows


class _Missing:
    """The ordered triples (a, b, c) that no order holds yet, as bit masks over each of their places."""

    def __init__(self, n: int) -> None:
        def others() -> list[list[int]]:
            everyone = (1 << n) - 1
            return [[everyone & ~(1 << i) & ~(1 << j) if i != j else 0 for j in range(n)] for i in range(n)]

        self._n = n
        self._thirds = others()  # [a][b]: every c
        self._seconds = others()  # [a][c]: every b
        self._firsts = others()  # [b][c]: every a

    def __bool__(self) -> bool:
        return any(map(any, self._thirds))

    def held_by(self, order: Order) -> int:
        """How many of the missing triples `order` holds."""
        _, after = self._around(order)
        return sum(
            (self._thirds[a][order[j]] & after[j]).bit_count()
            for i, a in enumerate(order)
            for j in range(i + 1, len(order))
        )

    def remove(self, order: Order) -> None:
        """Takes out the triples `order` holds."""
        before, after = self._around(order)
        for i, a in enumerate(order):
            for j in range(i + 1, len(order)):
                b = order[j]
                self._thirds[a][b] &= ~after[j]
                self._seconds[a][b] &= ~(after[i] & before[j])
                self._firsts[a][b] &= ~before[i]

    def likely_order(self, rng: random.Random) -> Order:
        """An order that holds at least a sixth of what is missing.

        Subjects are inserted in random sequence, each where the expected number of missing triples is largest
        if all later ones fell at random. With two of a triple in place and in order, the third falls right
        with probability 1/3; with all three in place it is right or wrong. The expectation starts at 1/6 of
        the missing triples (3! = 6 arrangements) and, the best place being at least as good as the average
        one, never falls. Everything is counted in thirds, so in integers.
        """
        waiting = (1 << self._n) - 1
        row: list[int] = []
        for new in rng.sample(range(self._n), self._n):
            waiting &= ~(1 << new)
            before, after = 0, sum(1 << subject for subject in row)
            gain = best = 0  # relative to `new` in front of everyone
            places = [0]
            for place, passed in enumerate(row, 1):  # `new` moves from just before `passed` to just behind it
                after &= ~(1 << passed)
                around = before, waiting, after
                gain += self._gain(passed, new, *around) - self._gain(new, passed, *around)
                before |= 1 << passed
                if gain > best:
                    best, places = gain, [place]
                elif gain == best:
                    places.append(place)
            row.insert(rng.choice(places), new)
        return tuple(row)

    def _gain(self, x: int, y: int, before: int, waiting: int, after: int) -> int:
        """Expected missing triples, in thirds, that hold x directly before y in this surrounding."""
        firsts, thirds = self._firsts[x][y], self._thirds[x][y]
        decided = firsts & before, thirds & after
        undecided = firsts & waiting, self._seconds[x][y] & waiting, thirds & waiting
        return 3 * sum(map(int.bit_count, decided)) + sum(map(int.bit_count, undecided))

    def _around(self, order: Order) -> tuple[list[int], list[int]]:
        """For each position, the sets of subjects before and after it."""
        before = list(itertools.accumulate((1 << subject for subject in order), initial=0))
        return before[:-1], [before[-1] & ~mask for mask in before[1:]]

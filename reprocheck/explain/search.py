"""Which of the candidates are to blame: all disjoint culprit sets, in few questions, with the assumptions checked.

A question is a set of candidates that are given their bad values at once; the answer is the outcome's label. A culprit
set is found by bisection over prefixes of the ranked list: the smallest prefix that changes the outcome ends with a
member; that one is fixed and the search repeated before it, until the fixed ones alone change the outcome. Found sets
are taken out, and the rest is asked again. This is what Go's `bisect` does with its recursion over halves
(https://research.swtch.com/bisect), arranged so that every step leaves a proof behind: each found set alone changes the
outcome; none of its members can be missed; what is left, together, does not change it.

Where a row of prefixes is split is not the middle: likely answers are asked for first (the prime suspect, "this one
alone does it", "the rest does nothing"), as long as the worst case stays within what `allowance` allows.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from reprocheck.explain.allowance import Allowance, allowance_for, fits

__all__ = ["BudgetSpentError", "Culprits", "Found", "find_culprits"]

T = TypeVar("T", bound=Hashable)


class BudgetSpentError(Exception):
    """Raised by an oracle that may not ask any more; the search returns what is known by then."""


@dataclass(frozen=True, slots=True)
class Found(Generic[T]):
    """One culprit set: alone it changes the outcome, and without any of its members it does not."""

    members: tuple[T, ...]
    label: str
    """What it gives alone: the bad outcome itself, or a part of it, which is yet another one."""


@dataclass(frozen=True, slots=True)
class Culprits(Generic[T]):
    """What a search found, and what it proved."""

    found: tuple[Found[T], ...] = ()
    together: str | None = None
    """The bad outcome when a set alone gives it, else what all found sets give at once; None when nothing was found."""
    rest_is_good: bool = False
    """True when all other candidates at once leave the outcome alone."""
    complete: bool = True
    """False when the budget ended the search."""

    def reproducing(self, bad: str) -> tuple[Found[T], ...]:
        """The sets that give the bad outcome: each alone, or else all together; empty when neither does."""
        alone = tuple(item for item in self.found if item.label == bad)
        if alone:
            return alone
        return self.found if self.together == bad else ()


@dataclass(slots=True)
class _Asked(Generic[T]):
    ask: Callable[[frozenset[T]], str]
    good: str
    known: dict[frozenset[T], str] = field(default_factory=dict)

    def label(self, some: Sequence[T] | frozenset[T]) -> str:
        key = frozenset(some)
        if not key:
            return self.good
        if key not in self.known:
            self.known[key] = self.ask(key)
        return self.known[key]

    def flips(self, some: Sequence[T]) -> bool:
        return self.label(some) != self.good


def find_culprits(
    candidates: Sequence[T],
    outcome: Callable[[frozenset[T]], str],
    *,
    good: str,
    bad: str,
    follows: Callable[[tuple[T, ...]], frozenset[T]] = lambda _: frozenset(),
) -> Culprits[T]:
    """All disjoint culprit sets among `candidates`, the most suspected first.

    `outcome` is asked once for each set; the outcome of the empty one is `good`. `follows(members)` may name
    candidates that a found set brings about (a thread count that follows from a variable): they are no causes of their
    own and leave the list with it. For k culprits among n candidates this asks at most 5 + k·⌈log₂ n⌉ times for k up
    to 4, 8 + k·⌈log₂ n⌉ times for more, and once more where several sets give only parts of the bad outcome
    (`allowance.most_questions`); unless candidates cancel one another.

    `outcome` may raise `BudgetSpentError`: what is known by then is returned, with `complete` false.
    """
    search = _Search(list(dict.fromkeys(candidates)), _Asked(outcome, good), bad)
    complete = False
    try:
        while search.next_set(follows):
            pass
        together = search.together()
        complete = True
    except BudgetSpentError:
        together = bad if search.reproduced else None
    return Culprits(tuple(search.found), together, rest_is_good=complete, complete=complete)


PATIENCE = 2
"""So many prefixes may fail at the start before the whole is asked."""


class _Search(Generic[T]):
    def __init__(self, pool: list[T], asked: _Asked[T], bad: str) -> None:
        self.pool, self.asked, self.bad = pool, asked, bad
        self.allowance: Allowance = allowance_for(len(pool))
        self.found: list[Found[T]] = []
        self.members = 0
        """Culprits found, those of the set at hand included."""
        self.proved = 0
        """So long a prefix of the pool holds no set: it does not change the outcome."""
        self.cleared = 0
        """So long a prefix holds none, if labels tell the truth."""
        self.limit: int | None = None
        """So long a prefix holds one for sure, if labels tell the truth."""

    @property
    def reproduced(self) -> bool:
        """Whether a found set alone gives the bad outcome."""
        return any(item.label == self.bad for item in self.found)

    def together(self) -> str | None:
        """What all found sets give at once; the bad outcome where one gives it alone."""
        if self.reproduced or not self.found:
            return self.bad if self.found else None
        return self.asked.label([member for item in self.found for member in item.members])

    def next_set(self, follows: Callable[[tuple[T, ...]], frozenset[T]]) -> bool:
        """Find one more set and take it out of the pool; false when the rest is good."""
        last = self._last_member()
        if last is None:
            if self.proved >= len(self.pool) and self._left() < 1:
                # Nothing is in it: more than it was asked about, and did not change the outcome.
                return False
            if not self.asked.flips(self.pool):
                return False
            # Labels told of nothing more, or an answer did that another one contradicts, and there is.
            self.cleared, self.proved = self.proved if self.cleared > self.proved else 0, 0
            return True
        before = self.members
        members = self._complete(last)
        if not self.asked.flips(members):
            # Labels told of something more, and there is not.
            self.members, self.limit = before, None
            return True
        self.found.append(Found(tuple(members), self.asked.label(members)))
        self._take_out({*members, *follows(tuple(members))}, last)
        return True

    def _take_out(self, gone: set[T], last: int) -> None:
        """Shorten the pool, and note between which places to look next.

        A prefix whose label is that of the set just found, a part of the bad outcome, holds nothing else; one that
        gives yet another outcome holds something else.
        """
        label, cleared = self.found[-1].label, max(last, self.cleared)
        limit = len(self.pool) if label != self.bad and len(self.found) == 1 else None
        if label != self.bad:
            for end in range(last + 1, len(self.pool) + 1):
                seen = self.asked.known.get(frozenset(self.pool[:end]))
                if seen == label:
                    cleared = end
                elif seen is not None and seen != self.asked.good:
                    limit = end
                    break
        self.proved, self.cleared = (sum(item not in gone for item in self.pool[:end]) for end in (last, cleared))
        self.limit = limit if limit is None else sum(item not in gone for item in self.pool[:limit])
        if self.limit is not None and self.limit <= self.cleared:
            self.limit = None
        self.pool = [item for item in self.pool if item not in gone]

    def _last_member(self) -> int | None:
        """The last item of the smallest prefix that changes the outcome; None when the whole pool does not."""
        pool, size = self.pool, len(self.pool)
        gone = self.allowance.n - size
        low, high, failed = self.cleared + 1, self.limit or size + 1, 0
        while low < high:
            costs = self.allowance.set_costs(low - 1, gone, self.members)[: high - low + 1]
            wish = size if self.found or failed >= PATIENCE else None if failed else 1
            length = self._split(costs, low, wish)
            if self.asked.flips(pool[:length]):
                high = length
            else:
                low, failed = length + 1, failed + 1
        return None if low > size else low - 1

    def _complete(self, last: int) -> list[T]:
        """The members of one culprit set that ends with `pool[last]`, in the pool's order.

        Each member ends the smallest prefix that, with those fixed before it, changes the outcome; so none can be
        missed, unless candidates cancel one another.
        """
        fixed, below, number = [self.pool[last]], last, last + self.allowance.n - len(self.pool)
        self.members += 1
        while below:
            low, high = 0, below
            while low < high:
                costs = self.allowance.member_costs(below, number, self.members)[low : high + 1]
                length = self._split(costs, low, 0 if low == 0 else None)
                if self.asked.flips([*self.pool[:length], *fixed]):
                    high = length
                else:
                    low = length + 1
            if low == 0:
                break
            below = low - 1
            fixed.insert(0, self.pool[below])
            self.members += 1
        return fixed

    def _left(self) -> int:
        """Questions that may be asked before another culprit is found, for the worst case to stay within bounds."""
        return self.allowance.extra + self.members * self.allowance.bits - len(self.asked.known)

    def _split(self, costs: Sequence[int], first: int, wish: int | None) -> int:
        """Which length to ask about: that of an answer up to which the row of answers is told from those after it.

        `costs` are those of the answers `first`, `first` + 1, …. Of the splits that the worst case allows, the one
        nearest to `wish`, or to the middle.
        """
        left = self._left() - 1
        # What all found ones give together is to be asked at the end, where none of them gives the bad outcome.
        later = 1 if self.found and not self.reproduced else 0
        splits = _affordable(costs, left - later) or _affordable(costs, left) or range(1, len(costs))
        middle = len(costs) / 2 if wish is None else wish - first + 1
        return first + min(splits, key=lambda at: abs(at - middle)) - 1


def _affordable(costs: Sequence[int], questions: int) -> range:
    """So many answers may be split off, for both parts to be told apart within `questions`."""
    most = bisect_left(range(1, len(costs)), x=True, key=lambda at: not fits(costs[:at], questions))
    least = bisect_left(range(1, len(costs)), x=True, key=lambda at: fits(costs[at:], questions))
    return range(least + 1, most + 1)

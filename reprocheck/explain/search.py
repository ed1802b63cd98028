"""Which of the candidates are to blame: all disjoint culprit sets, in few questions, with the assumptions checked.

A question is a set of candidates that are given their bad values at once; the answer is the outcome's label. A culprit
set is found by binary search over prefixes of the ranked list: the smallest prefix that changes the outcome ends with a
member; that one is fixed and the search repeated before it, until the fixed ones alone change the outcome. Found sets
are taken out, and the rest is asked again. This is what Go's `bisect` does with its recursion over halves
(https://research.swtch.com/bisect), arranged so that every step leaves a proof behind: each found set alone changes the
outcome; none of its members can be missed; what is left, together, does not change it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

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
    own and leave the list with it. For one culprit among n this asks at most 5 + log2 n times, for two 5 + 2·log2 n.

    `outcome` may raise `BudgetSpentError`: what is known by then is returned, with `complete` false.
    """
    asked = _Asked(outcome, good)
    pool = list(dict.fromkeys(candidates))
    found: list[Found[T]] = []
    together: str | None = None
    try:
        cleared = limit = 0
        while pool:
            first = _first_member(pool, cleared, limit, asked, expect=_EXPECT[None if not found else together == bad])
            if first is None:
                break
            members = _complete(pool, first, asked)
            found.append(Found(tuple(members), asked.label(members)))
            together = bad if found[-1].label == bad or together == bad else asked.label(_union(found))
            gone = {*members, *follows(tuple(members))}
            start, stop = _hints(pool, first, together, bad, asked)
            cleared, limit = (sum(item not in gone for item in pool[:end]) for end in (start, stop))
            pool = [item for item in pool if item not in gone]
    except BudgetSpentError:
        return Culprits(tuple(found), together, rest_is_good=False, complete=False)
    return Culprits(tuple(found), together, rest_is_good=True, complete=True)


def _union(found: Sequence[Found[T]]) -> list[T]:
    return [member for item in found for member in item.members]


def _hints(pool: Sequence[T], first: int, together: str, bad: str, asked: _Asked[T]) -> tuple[int, int]:
    """Between which places of `pool` to look for the next member, from the answers so far.

    A prefix that gives no more than the found ones do holds nothing else; one that gives the bad outcome holds all.
    """
    start, stop = first, len(pool)
    for end in range(first + 1, len(pool) + 1):
        label = asked.known.get(frozenset(pool[:end]))
        if label == bad:
            return start, end
        if label == together:
            start = end
    return start, stop


# What to expect of a pool: at the start something, but not for sure; nothing more when the bad outcome is reproduced
# already; more for sure when only a part of it is. Expecting something, so many prefixes may fail before the whole is
# asked.
PATIENCE = 2
_EXPECT = {None: "something", True: "nothing", False: "more"}


def _first_member(pool: Sequence[T], cleared: int, limit: int, asked: _Asked[T], *, expect: str) -> int | None:
    """Index of the last item of the smallest prefix that changes the outcome; None when the whole pool does not.

    `cleared` is the length of a prefix known to change nothing; up to `limit` the member is looked for first. When the
    pool as a whole is asked about depends on what is expected of it: at once, after a few prefixes that change nothing,
    or only when no prefix does.
    """
    low, high = cleared, len(pool)
    if expect == "something":
        if asked.flips(pool[:1]):
            return 0
        low = 1
    proved, failed = False, 0
    if expect == "more" and low < limit < high and asked.flips(pool[:limit]):
        high, proved = limit, True
    while True:
        done = high - low <= 1
        if done and not proved and expect == "more" and asked.flips(pool[-1:]):
            return high - 1
        if not proved and (done or expect == "nothing" or (expect == "something" and failed >= PATIENCE)):
            if not asked.flips(pool):
                return None
            proved = True
        if done:
            return high - 1
        middle = (low + high) // 2
        if asked.flips(pool[:middle]):
            high, proved = middle, True
        else:
            low, failed = middle, failed + 1


def _complete(pool: Sequence[T], first: int, asked: _Asked[T]) -> list[T]:
    """The members of one culprit set that ends with `pool[first]`, in the pool's order.

    Each member ends the smallest prefix that, with those fixed before it, changes the outcome; so none can be missed,
    unless candidates cancel one another.
    """
    fixed, high = [pool[first]], first
    while not asked.flips(fixed):
        # The prefix of length `high` and the fixed ones change the outcome, the fixed ones alone do not.
        low = 0
        while high - low > 1:
            middle = (low + high) // 2
            if asked.flips([*pool[:middle], *fixed]):
                high = middle
            else:
                low = middle
        high -= 1
        fixed.insert(0, pool[high])
    return fixed

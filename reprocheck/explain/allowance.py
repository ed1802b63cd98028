"""How many questions a culprit search may need at most, and which next question keeps it within that.

A search step looks for one of a row of answers ("the set ends with candidate 3", "…with 4", …, "there is none"), by
questions that split the row. Each answer leaves work to do, whose worst case is known by recursion; a row with worst
cases v₁, v₂, … can be told apart within t questions if blocks of 2^v₁, 2^v₂, … fit one after the other, aligned, into
2^t: an alphabetic code (Knuth, The Art of Computer Programming 3, 6.2.2; Kraft's inequality). So a likely answer may be
asked for first exactly as long as the rest still fits.

With k culprits among n candidates the questions are counted beyond k·⌈log₂ n⌉: that is what n candidates cost without
any knowledge of the others. `EXTRA` are left for up to `FEW` culprits and `EXTRA_FOR_MANY` for more, however they are
arranged: each alone a culprit, some only together, in any order. They pay for asking that each set does it alone, that
the rest does nothing, and for likely answers first. `FOR_PARTS` is for asking, at the end, what several sets give
together, where none of them gives the bad outcome alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import groupby

__all__ = ["FEW", "Allowance", "allowance_for", "fits", "most_questions"]

FEW = 4
EXTRA, EXTRA_FOR_MANY = 5, 8
FOR_PARTS = 1
_LEVELS = FEW + 2
"""Numbers of culprits found that are told apart: 0 … FEW, and more."""


def most_questions(n: int, k: int, *, parts: bool = False) -> int:
    """The most questions a search for k culprits among n candidates asks: 5 + k·⌈log₂ n⌉, for k > 4 three more.

    One more with `parts`: several culprit sets, of which none alone gives the bad outcome.
    """
    return (EXTRA if k <= FEW else EXTRA_FOR_MANY) + k * (n - 1).bit_length() + (FOR_PARTS if parts else 0)


def fits(costs: Sequence[int], questions: int) -> bool:
    """Whether answers that leave so many questions each, in this row, can be told apart within `questions` in all."""
    if not costs:
        return True
    least = min(costs)
    room = questions - least
    if room < 0:
        return False
    end = 0
    for cost, run in groupby(costs):
        size = 1 << (cost - least)
        end = -(-end // size) * size + size * len(list(run))
    return end <= 1 << room


def _needed(costs: Sequence[int]) -> int:
    questions = max(costs)
    while not fits(costs, questions):
        questions += 1
    return questions


class Allowance:
    """The worst cases of every state of a search among n candidates, in questions beyond ⌈log₂ n⌉ for each culprit."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.bits = (n - 1).bit_length() if n else 0
        members: Callable[[int, tuple[int, ...]], int] = cache(self._members)
        self._worst = members
        # What is needed after candidate c - 1, for each number of culprits found: filled from the last one down.
        self._after: list[tuple[int, ...]] = [()] * (n + 1)
        self._after[n] = tuple(map(self.none, range(_LEVELS)))
        for start in range(n - 1, -1, -1):
            levels = [_needed(self.set_costs(start, 0, found)) for found in range(_LEVELS)]
            self._after[start] = tuple(levels)
        self.extra = max(EXTRA, self._after[0][0])
        """What the whole search may ask beyond ⌈log₂ n⌉ for each culprit; `EXTRA` for all n that are of use."""

    @staticmethod
    def none(found: int) -> int:
        """What is needed when there is nothing more: nothing, and the more for many culprits is left."""
        return 0 if found <= FEW else EXTRA - EXTRA_FOR_MANY

    def set_costs(self, start: int, gone: int, found: int) -> list[int]:
        """For "the next set ends with candidate `start`", …, "with the last one", "there is none".

        `gone` candidates of the n are no longer in the pool, so that candidate p of it is taken for number p + gone.
        """
        later = self._next(found)
        costs = [
            self._worst(place, self._after[place + gone + 1][later:]) - self.bits
            for place in range(start, self.n - gone)
        ]
        return [*costs, self.none(min(found, _LEVELS - 1))]

    def member_costs(self, below: int, last: int, found: int) -> list[int]:
        """For "the set is complete", "its next member is candidate 0", …, "candidate `below` - 1".

        `last` is the number of the set's last member, as in `set_costs`: what comes after it is still to be searched.
        """
        now = self._after[last + 1][min(found, _LEVELS - 1) :]
        later = self._after[last + 1][self._next(found) :]
        return [now[0], *(self._worst(place, later) - self.bits for place in range(below))]

    @staticmethod
    def _next(found: int) -> int:
        return min(found + 1, _LEVELS - 1)

    def _members(self, below: int, after: tuple[int, ...]) -> int:
        """Needed to complete a set whose lowest known member is `below`, and for all that comes `after` it."""
        if below == 0:
            return after[0]
        later = after[1:] or after
        return _needed([after[0], *(self._worst(place, later) - self.bits for place in range(below))])


@cache
def allowance_for(n: int) -> Allowance:
    """The allowance of n candidates."""
    return Allowance(n)

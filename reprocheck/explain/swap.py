"""From two orders with different outcomes to one adjacent swap that flips it, and to what it needs around it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations

from reprocheck.explain.minimal import smallest
from reprocheck.model import Struct

__all__ = ["Label", "Order", "Swap", "context_of", "distance", "find_swap", "nearest", "presence_of", "swap_path"]

Order = tuple[str, ...]
Label = str
Outcome = Callable[[Order], Label]
"""What an order gives; an order of fewer subjects means that only these are imported before the workload."""


class Swap(Struct, frozen=True, kw_only=True):
    """Two orders that differ by one adjacent swap, and give different outcomes."""

    before: Order
    after: Order
    labels: tuple[Label, Label]

    @property
    def pair(self) -> tuple[str, str]:
        """The two subjects, as they stand in `before`."""
        a, b = (name for name, other in zip(self.before, self.after, strict=True) if name != other)
        return a, b

    @property
    def others(self) -> Order:
        """All other subjects, in their order."""
        return tuple(name for name in self.before if name not in self.pair)


def distance(p: Order, q: Order) -> int:
    """Kendall's distance: the number of pairs that the two orders arrange differently."""
    place = {name: at for at, name in enumerate(q)}
    return sum(place[a] > place[b] for a, b in combinations(p, 2))


def swap_path(p: Order, q: Order) -> list[Order]:
    """The bubble-sort path from `p` to `q`: each step swaps one adjacent pair; `distance(p, q) + 1` orders."""
    place = {name: at for at, name in enumerate(q)}
    path, current = [p], list(p)
    while tuple(current) != q:
        at = next(i for i in range(len(current) - 1) if place[current[i]] > place[current[i + 1]])
        current[at], current[at + 1] = current[at + 1], current[at]
        path.append(tuple(current))
    return path


def nearest(known: Mapping[Order, Label]) -> tuple[Order, Order] | None:
    """The two orders of equal subjects and different outcomes with the smallest distance, or None."""
    pairs = [(p, q) for p, q in combinations(known, 2) if known[p] != known[q] and set(p) == set(q)]
    return min(pairs, key=lambda pair: distance(*pair), default=None)


def find_swap(p: Order, q: Order, outcome: Outcome) -> Swap:
    """One adjacent swap on the way from `p` to `q` that flips the outcome, in log2(distance) questions.

    Nothing is assumed about the way: its ends differ, so one of its steps must. The outcomes of `p` and `q` have to
    differ, otherwise ValueError.
    """
    path = swap_path(p, q)
    low, high = 0, len(path) - 1
    first, last = outcome(p), outcome(q)
    if first == last:
        raise ValueError(f"{','.join(p)} and {','.join(q)} have the same outcome")
    while high - low > 1:
        middle = (low + high) // 2
        label = outcome(path[middle])
        if label == first:
            low = middle
        else:
            high, last = middle, label
    return Swap(before=path[low], after=path[high], labels=(first, last))


def context_of(swap: Swap, outcome: Outcome) -> tuple[str, ...]:
    """The other subjects without which the swap does not flip the outcome any more; mostly none."""

    def flips(kept: tuple[str, ...]) -> bool:
        wanted = {*kept, *swap.pair}
        before, after = (tuple(name for name in order if name in wanted) for order in (swap.before, swap.after))
        return outcome(before) != outcome(after)

    return smallest(swap.others, flips)


def presence_of(subjects: Sequence[str], outcome: Outcome) -> tuple[str, ...]:
    """The smallest set of subjects whose import alone gives what importing all of them gives.

    Empty when importing none gives it, too. The outcome must not depend on the order.
    """
    everything = outcome(tuple(subjects))
    return smallest(subjects, lambda kept: outcome(kept) == everything)

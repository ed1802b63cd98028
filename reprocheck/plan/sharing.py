"""Which orders are run fresh once forked trials said into which groups the orders fall: pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from reprocheck.model import Trial

__all__ = ["forked_pass", "to_confirm"]

Order = tuple[str, ...]


def forked_pass(orders: Sequence[Order]) -> list[Trial]:
    """Every order once, from a process that imported what it shares with others."""
    return [Trial(order=order, repeat=0, forked=True) for order in orders]


def to_confirm(groups: Mapping[Order, object]) -> tuple[Order, ...]:
    """The orders whose fresh trials speak for all: of each group the first order, and as many others as it takes.

    `groups` says in which group the forked trial of each order landed, the reference order first. Two orders are of one
    kind, as far as a pair of subjects goes, when the same one comes first. For each pair and each kind that a group
    has, one of its orders is taken: of a group of all orders the first and one that turns every pair round. What
    forking hides about a pair shows there. The orders come in the sequence of `groups`.
    """
    members: dict[object, list[Order]] = {}
    for order, group in groups.items():
        members.setdefault(group, []).append(order)
    chosen: set[Order] = set()
    for orders in members.values():
        missing = set().union(*map(_pairs, orders))
        rest = list(orders)
        best = orders[0]
        while True:
            chosen.add(best)
            missing -= _pairs(best)
            if not missing:
                break
            best = max(rest, key=lambda order: len(missing & _pairs(order)))
    return tuple(order for order in groups if order in chosen)


def _pairs(order: Order) -> set[tuple[str, str]]:
    return set(combinations(order, 2))

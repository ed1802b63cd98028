"""Rules that say which order gives which outcome: the smallest decision lists that agree with what is known.

A condition is `a before b`, `a first` or `a last`; a clause joins one or two of them; a list is read from the top, and
what no clause catches is the rest. With all orders known the rule is a summary; with some of them it is a forecast, so
`orders_between` names orders on which equally small rules disagree.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, permutations
from math import factorial
from typing import Literal

from reprocheck.explain.swap import Label, Order
from reprocheck.model import Struct

__all__ = ["Clause", "Condition", "RuleList", "explained", "fit", "orders_between", "unknown_orders"]

MOST_CONDITIONS = 4
"""A rule with more of them is no simple rule."""
MOST_RULES = 24
"""Equally small rules that are kept side by side."""
MOST_STEPS = 60_000
SEED = 20261201


class Condition(Struct, frozen=True, kw_only=True):
    """`subject` before `other`, or first or last of all."""

    place: Literal["before", "first", "last"]
    subject: str
    other: str = ""

    def holds(self, order: Order) -> bool:
        """Whether the order meets it; a subject that is not imported is never first, and before nothing."""
        if self.place == "before":
            both = self.subject in order and self.other in order
            return both and order.index(self.subject) < order.index(self.other)
        end = order[:1] if self.place == "first" else order[-1:]
        return end == (self.subject,)

    def text(self) -> str:
        """`a` before `b`."""
        return f"`{self.subject}` before `{self.other}`" if self.other else f"`{self.subject}` {self.place}"


class Clause(Struct, frozen=True, kw_only=True):
    """All conditions together mean this outcome."""

    conditions: tuple[Condition, ...]
    label: Label

    def holds(self, order: Order) -> bool:
        """Whether the order meets every condition."""
        return all(condition.holds(order) for condition in self.conditions)


class RuleList(Struct, frozen=True, kw_only=True):
    """Clauses from the top, then the rest."""

    clauses: tuple[Clause, ...]
    rest: Label

    def predict(self, order: Order) -> Label:
        """The outcome this rule forecasts."""
        return next((clause.label for clause in self.clauses if clause.holds(order)), self.rest)

    @property
    def size(self) -> int:
        """Number of conditions."""
        return sum(len(clause.conditions) for clause in self.clauses)


def explained(rule: RuleList, known: Mapping[Order, Label]) -> int:
    """How many of the known orders the rule gets right."""
    return sum(rule.predict(order) == label for order, label in known.items())


def fit(
    known: Mapping[Order, Label], *, pair: tuple[str, str] | None = None, rest: Label | None = None
) -> list[RuleList]:
    """The smallest rules that agree with all known orders; one that agrees with most of them when none is simple.

    Rules over `pair` (found by swapping) come first, then those of few clauses, then those whose rest is `rest`. The
    list is never empty.

    Raises:
        ValueError: nothing is known.
    """
    if not known:
        raise ValueError("no order is known")
    subjects = sorted({name for order in known for name in order}, key=list(next(iter(known))).index)
    table = _Table(list(known), list(known.values()), _conditions(subjects))
    for size in range(MOST_CONDITIONS + 1):
        found = list(dict.fromkeys(table.rules(size)))
        if found:
            found.sort(key=lambda rule: (not _about(rule, pair), len(rule.clauses), rest not in (None, rule.rest)))
            return found[:MOST_RULES]
    return [table.greedy(rest)]


def orders_between(rules: Sequence[RuleList], candidates: Iterable[Order], count: int) -> list[Order]:
    """Up to `count` orders on which the rules disagree most evenly: running them leaves the fewest rules standing."""
    found = []
    for order in candidates:
        votes = [rule.predict(order) for rule in rules]
        largest = max(votes.count(label) for label in set(votes))
        if largest < len(rules):
            found.append((largest, order))
    found.sort(key=lambda item: item[0])
    return [order for _, order in found[:count]]


def unknown_orders(subjects: Sequence[str], known: Iterable[Order], most: int) -> list[Order]:
    """Orders nobody has run yet: all of them in turn up to 7 subjects, above that random ones; at most `most`.

    Shuffled with a fixed seed, so that equal questions get equal answers.
    """
    seen = set(known)
    shuffle = random.Random(SEED)  # noqa: S311 - reproducible sampling, not secrecy
    if factorial(len(subjects)) <= factorial(7):
        left = [order for order in permutations(subjects) if order not in seen]
        shuffle.shuffle(left)
        return left[:most]
    drawn: dict[Order, None] = {}
    while len(drawn) < most:
        order = list(subjects)
        shuffle.shuffle(order)
        if tuple(order) not in seen:
            drawn[tuple(order)] = None
    return list(drawn)


def _conditions(subjects: Sequence[str]) -> list[Condition]:
    found = [
        Condition(place="before", subject=one, other=two)
        for a, b in combinations(subjects, 2)
        for one, two in ((a, b), (b, a))
    ]
    if len(subjects) > 2:
        found += [Condition(place=place, subject=name) for name in subjects for place in ("first", "last")]
    return found


def _about(rule: RuleList, pair: tuple[str, str] | None) -> bool:
    if pair is None or not rule.clauses:
        return False
    first = rule.clauses[0].conditions
    return any(condition.other and {condition.subject, condition.other} == set(pair) for condition in first)


class _Table:
    """Orders as bits: which of them meet a condition, and which have a label."""

    def __init__(self, orders: Sequence[Order], labels: Sequence[Label], conditions: Sequence[Condition]) -> None:
        self._all = (1 << len(orders)) - 1
        self._labels: dict[Label, int] = {}
        for at, label in enumerate(labels):
            self._labels[label] = self._labels.get(label, 0) | 1 << at
        single: dict[int, tuple[Condition, ...]] = {}
        for condition in conditions:
            mask = sum(1 << at for at, order in enumerate(orders) if condition.holds(order))
            single.setdefault(mask, (condition,))
        # One clause for each distinguishable set of orders, the shorter one.
        masks = dict(single)
        if len(orders[0]) <= 6:
            for (one, first), (two, second) in combinations(single.items(), 2):
                masks.setdefault(one & two, (*first, *second))
        self._clauses = [(mask, conditions_) for mask, conditions_ in masks.items() if mask]
        self._steps = 0

    def rules(self, size: int) -> Iterator[RuleList]:
        """Exact rules of exactly `size` conditions."""
        self._steps = 0
        yield from self._lists(self._all, size, ())

    def _lists(self, left: int, size: int, clauses: tuple[Clause, ...]) -> Iterator[RuleList]:
        self._steps += 1
        labels = [label for label, mask in self._labels.items() if mask & left]
        if len(labels) <= 1:
            if size == 0 and labels:
                yield RuleList(clauses=clauses, rest=labels[0])
            return
        if size == 0 or self._steps > MOST_STEPS:
            return
        seen = set()
        for mask, conditions in self._clauses:
            caught = mask & left
            if not caught or caught == left or len(conditions) > size or caught in seen:
                continue
            label = next((label for label in labels if caught & ~self._labels[label] == 0), None)
            if label is not None:
                seen.add(caught)
                clause = Clause(conditions=conditions, label=label)
                yield from self._lists(left & ~mask, size - len(conditions), (*clauses, clause))

    def greedy(self, rest: Label | None) -> RuleList:
        """At most three clauses, each catching as many orders as it can without a mistake; the rest is the majority."""
        left, clauses = self._all, []
        for _ in range(3):
            pure = [
                ((mask & left).bit_count(), -len(conditions), -at, label)
                for at, (mask, conditions) in enumerate(self._clauses)
                for label, members in self._labels.items()
                if mask & left and mask & left & ~members == 0 and label != rest
            ]
            if not pure:
                break
            _, _, at, label = max(pure)
            mask, conditions = self._clauses[-at]
            clauses.append(Clause(conditions=conditions, label=label))
            left &= ~mask
        majority = max(self._labels, key=lambda label: ((self._labels[label] & left).bit_count(), label == rest))
        return RuleList(clauses=tuple(clauses), rest=majority)

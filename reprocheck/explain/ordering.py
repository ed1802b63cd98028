"""The order rule of a study: one swap that flips the outcome, what it needs, and a rule checked on held-back orders."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reprocheck.explain.asking import Asker
from reprocheck.explain.rule import RuleList, explained, fit, orders_between, unknown_orders
from reprocheck.explain.search import BudgetSpentError
from reprocheck.explain.swap import Label, Order, Swap, context_of, distance, find_swap, nearest, presence_of
from reprocheck.model import Arm, Record, Rule, Study, Trial

__all__ = ["Ordering", "find_presence", "find_rule"]

HELD_BACK = 4
"""Orders run to check a rule that was not found on all of them."""
SAMPLE = 400
MOST_SWAPS = 3


@dataclass(frozen=True)
class Ordering:
    """What is known of the orders."""

    rule: Rule | None = None
    rules: RuleList | None = None
    swaps: tuple[Swap, ...] = ()
    """Adjacent swaps that flip the outcome, one for each further group; the first is the rule's."""


def find_rule(study: Study, records: Sequence[Record], asker: Asker) -> Ordering:
    """The rule and its swaps, as far as the budget goes. Orders of the study are known and cost nothing."""
    arms = [arm for arm in study.orders if not arm.presence]
    known = _known(arms, records, asker)
    if len(set(known.values())) < 2:
        return Ordering()
    seen = _Seen(asker, arms)
    swaps: list[Swap] = []
    context: tuple[str, ...] = ()
    held: list[Order] = []
    with contextlib.suppress(BudgetSpentError):
        swaps = _swaps(known, seen)
        if swaps and len(study.subjects) > 2:
            context = context_of(swaps[0], lambda order: seen.label(order, presence=len(order) < len(study.subjects)))
    reference = known[arms[0].order]
    pair = swaps[0].pair if swaps else None
    learned = dict(seen.effective) | {seen.as_loaded(order): label for order, label in known.items()}
    with contextlib.suppress(BudgetSpentError):
        held = _held_back(study.subjects, learned, seen, pair, reference)
    learned |= seen.effective
    best = fit(learned, pair=pair, rest=reference)[0]
    rule = _rule(best, learned, swaps, context, held, asker)
    return Ordering(rule=rule, rules=best, swaps=tuple(swaps))


def find_presence(study: Study, asker: Asker) -> Ordering:
    """The subjects whose mere import changes the result, when the order of all of them does not matter."""
    seen = _Seen(asker, study.orders)

    def outcome(order: Order) -> Label:
        return seen.label(order, presence=len(order) < len(study.subjects))

    everything = outcome(study.subjects)
    if outcome(()) == everything:
        return Ordering()
    subjects = presence_of(study.subjects, outcome)
    names = " and ".join(f"`{name}`" for name in subjects)
    place = "its place does not matter" if len(subjects) == 1 else "their order does not matter"
    arms = [arm.order for arm in study.orders if arm.presence]
    right = sum((set(subjects) <= set(order)) == (outcome(order) == everything) for order in arms)
    without = tuple(name for name in study.subjects if name not in subjects)
    rule = Rule(
        sentence=f"merely importing {names} changes the result; {place} ({right} of {len(arms)} selections)",
        kind="presence",
        swap=(without, (*without, *subjects)),
        context=subjects,
        explained=right,
        total=len(arms),
    )
    labels = (outcome(without), outcome((*without, *subjects)))
    return Ordering(rule=rule, swaps=(Swap(before=without, after=(*without, *subjects), labels=labels),))


class _Seen:
    """Labels of orders, and the effective orders they turned out to be."""

    def __init__(self, asker: Asker, arms: Sequence[Arm]) -> None:
        self._asker = asker
        self._loaded = {arm.order: arm.effective_order for arm in arms if not arm.presence}
        self.effective: dict[Order, Label] = {}
        """Effective order of all subjects -> label, of the orders asked about here."""

    def label(self, order: Order, *, presence: bool = False) -> Label:
        """The label of an order; of fewer subjects with `presence`."""
        records = self._asker.again(Trial(order=order, repeat=0, presence=presence))
        label = self._asker.labels.label(records)
        if not presence:
            self._loaded[order] = records[0].effective_order
            self.effective[self.as_loaded(order)] = label
        return label

    @property
    def asked(self) -> list[Order]:
        """Orders of all subjects whose outcome is known, as they were asked for."""
        return list(self._loaded)

    def as_loaded(self, order: Order) -> Order:
        """The effective order, or the order itself where an import failed on the way."""
        loaded = self._loaded.get(order, order)
        return loaded if len(loaded) == len(order) else order


def _known(arms: Sequence[Arm], records: Sequence[Record], asker: Asker) -> dict[Order, Label]:
    by_order: dict[Order, list[Record]] = {}
    for record in records:
        if not record.trial.presence:
            by_order.setdefault(record.trial.order, []).append(record)
    labels = {order: asker.labels.label(items) for order, items in by_order.items()}
    found = {arm.order: labels.get(arm.same_as or arm.order) for arm in arms}
    return {order: label for order, label in found.items() if label is not None}


def _swaps(known: Mapping[Order, Label], seen: _Seen) -> list[Swap]:
    """Swaps between groups, nearest pairs first, until every group is one side of a swap."""
    swaps: list[Swap] = []
    reached: set[Label] = set()
    learned = dict(known)

    def outcome(order: Order) -> Label:
        if order not in learned:
            learned[order] = seen.label(order)
        return learned[order]

    for _ in range(MOST_SWAPS):
        left = {order: label for order, label in learned.items() if label not in reached}
        if not left:
            break
        pairs = [(p, q) for p in left for q in learned if learned[p] != learned[q]] if swaps else [nearest(learned)]
        ends = min(filter(None, pairs), key=lambda pair: distance(*pair), default=None)
        if ends is None:
            break
        swap = find_swap(*ends, outcome)
        if set(swap.labels) <= reached:
            break
        swaps.append(swap)
        reached |= set(swap.labels)
    return swaps


def _held_back(
    subjects: Sequence[str], learned: Mapping[Order, Label], seen: _Seen, pair: tuple[str, str] | None, rest: Label
) -> list[Order]:
    """Orders that were run to tell equally small rules apart, and then to check the one that is left."""
    known = dict(learned)
    held: list[Order] = []
    # An order that loads as another one does says nothing new, but it costs: hence a limit on the questions.
    for _ in range(2 * HELD_BACK):
        left = unknown_orders(subjects, [*known, *seen.asked], SAMPLE)
        if not left or len(held) == HELD_BACK:
            break
        rules = fit(known, pair=pair, rest=rest)
        order = next(iter(orders_between(rules, left, 1)), left[0])
        seen.label(order)
        if seen.as_loaded(order) not in known:
            held.append(order)
        known |= seen.effective
    return held


def _rule(
    best: RuleList,
    learned: Mapping[Order, Label],
    swaps: Sequence[Swap],
    context: tuple[str, ...],
    held: Sequence[Order],
    asker: Asker,
) -> Rule:
    right, total = explained(best, learned), len(learned)
    what = "outcomes" if any(asker.labels.failure(label) for label in set(learned.values())) else "outputs"
    parts = [
        " and ".join(condition.text() for condition in clause.conditions) + f" → {asker.labels.name(clause.label)}"
        for clause in best.clauses
    ]
    text = "; else ".join(parts)
    if len(parts) > 1:
        text += f"; else {asker.labels.name(best.rest)}"
    count = f"{right} of {total} orders" + (f", {len(held)} of them held back" if held else "")
    if right == total:
        sentence = f"{what} follow one rule: {text} ({count})"
    else:
        sentence = f"{what} follow no simple rule; the best short one is: {text} ({count})"
    if context:
        needed = ", ".join(f"`{name}`" for name in context)
        sentence += (
            f"; swapping `{swaps[0].pair[0]}` and `{swaps[0].pair[1]}` matters only when {needed} is imported, too"
        )
    return Rule(
        sentence=sentence,
        kind="order" if right == total else "list",
        pair=swaps[0].pair if swaps else None,
        swap=(swaps[0].before, swaps[0].after) if swaps else None,
        context=context,
        explained=right,
        total=total,
        held_back=len(held),
    )

"""What an outcome is called: the group's letter, with equal failures, tolerances and noise taken into account.

A study's groups are the vocabulary. Groups that are one thing to an explanation share a label: failures that differ
only in the place of the failing subject ("2nd of 3"), groups that agree within the tolerance asked for, and groups
that one order gives side by side, because identical runs differ.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence

from reprocheck.compare.groups import group_id, group_records, outcome_key, select_outputs
from reprocheck.model import Output, Record, Study, Tolerance
from reprocheck.store.objects import ObjectStore

__all__ = ["Labels", "enough_repeats"]

LEAST_REPEATS, MOST_REPEATS = 3, 12
MISSED = 0.02
"""The chance, at most, that an outcome which identical runs show now and then is missed."""

Order = tuple[str, ...]
ToleranceFor = Callable[[str], Tolerance]


def enough_repeats(outcomes: Sequence[str]) -> int:
    """So many runs that runs like these would all agree by luck with a chance of at most `MISSED`; 3 to 12."""
    shares = [count / len(outcomes) for count in Counter(outcomes).values()]
    for repeats in range(LEAST_REPEATS, MOST_REPEATS):
        if sum(share**repeats for share in shares) <= MISSED:
            return repeats
    return MOST_REPEATS


class Labels:
    """Names outcomes. The same record always gets the same name."""

    def __init__(
        self,
        study: Study,
        records: Sequence[Record],
        *,
        patterns: Sequence[str],
        tolerance_for: ToleranceFor,
        objects: ObjectStore,
    ) -> None:
        """`records` are those the study was judged by; `patterns` select outputs as in the study.

        Groups keep their letters; of groups that share a label, the first one names it.
        """
        self._patterns = tuple(patterns)
        self._agree = _Agreement(tolerance_for, objects)
        self._known: dict[object, str] = {}
        self._examples: dict[str, Record] = {}
        arms = {arm.order: arm for arm in study.orders if not arm.presence}
        orders = list(arms)
        counted = [record for record in records if record.trial.order in orders and not record.trial.presence]
        # Runs that an explanation added later come last: the letters are those that the study gave.
        counted.sort(
            key=lambda record: (
                record.trial.repeat >= arms[record.trial.order].trials,
                orders.index(record.trial.order),
            )
        )
        letters = group_records(counted, self._patterns)
        self._used = len(letters.groups)
        for record, letter in zip(counted, letters.ids, strict=True):
            self._name(record, letter)
        self._told = frozenset(group.id for group in study.groups)
        self._arms: dict[Order, list[str]] = {}
        for record in counted:
            self._arms.setdefault(record.trial.order, []).append(self.group(record))
        self._noise()

    def group(self, record: Record) -> str:
        """The name of this record's own outcome, noise aside: the study's letter, or a further one."""
        key = _key(record, self._patterns)
        if key not in self._known:
            self._used += self._name(record, group_id(self._used)) == group_id(self._used)
        return self._known[key]

    def _name(self, record: Record, letter: str) -> str:
        """Give a new outcome its name: that of one it is equal to for our purposes, else `letter`."""
        key = _key(record, self._patterns)
        if key not in self._known:
            same = next((name for name, example in self._examples.items() if self._within(record, example)), letter)
            self._known[key] = same
            self._examples.setdefault(same, record)
        return self._known[key]

    def label(self, records: Sequence[Record]) -> str:
        """What identical runs amount to: their common label; of several, the one that only noise hides."""
        groups = list(dict.fromkeys(map(self.group, records)))
        known = {self._class[group] for group in groups if group in self._class}
        if self.repeats > 1 and not self._weak and len(known) == 1:
            # What identical runs show side by side is one thing, also when the study happened not to see all of it.
            self._class |= dict.fromkeys(groups, *known)
        found = list(dict.fromkeys(self._class.get(group, group) for group in groups))
        strong = [label for label in found if label not in self._weak]
        if len(strong) == 1:
            return strong[0]
        return found[0] if len(found) == 1 else " or ".join(sorted(found))

    def name(self, label: str) -> str:
        """`group B`, for a sentence."""
        members = [group for group, own in self._class.items() if own == label and group in self._told]
        return f"group {label}" if len(members) < 2 else f"groups {', '.join(sorted(members))}"

    def is_known(self, label: str) -> bool:
        """Whether the study itself has this outcome."""
        return label in self._class.values()

    def example(self, label: str) -> Record | None:
        """A record with this outcome."""
        return self._examples.get(label)

    def failure(self, label: str) -> str | None:
        """How a label fails, in words; None if it finishes."""
        example = self._examples.get(label)
        return example.failure.message if example is not None and example.failure is not None else None

    def unsettled(self) -> dict[Order, int]:
        """How many more runs of which orders it takes to have seen what else noise makes of their outcomes.

        An order whose few runs happened to agree, in a study whose runs differ, hides half of its outcomes; a trial
        that shows the other half would be taken for something new.
        """
        noisy = [groups for groups in self._arms.values() if len(set(groups)) > 1]
        if not noisy or self._weak:
            return {}
        enough = max(map(enough_repeats, noisy))
        classes: dict[str, list[Order]] = {}
        for order, groups in self._arms.items():
            classes.setdefault(self._class[groups[0]], []).append(order)
        found = {}
        for orders in classes.values():
            seen = [group for order in orders for group in self._arms[order]]
            if len(set(seen)) == 1 and len(seen) < enough:
                found[orders[0]] = enough - len(seen)
        return found

    def learn(self, records: Sequence[Record]) -> None:
        """Take in further runs of the study's orders, as they are."""
        for record in records:
            self._arms[record.trial.order].append(self.group(record))
        self._noise()

    def _noise(self) -> None:
        """Join groups that occur side by side; where that joins everything, tell groups by their share instead."""
        arms = self._arms
        parent = {group: group for groups in arms.values() for group in groups}

        def root(group: str) -> str:
            while parent[group] != group:
                group = parent[group]
            return group

        for groups in arms.values():
            for other in groups[1:]:
                first, second = sorted((root(groups[0]), root(other)))
                parent[second] = first
        self._class = {group: root(group) for group in parent}
        self._weak: frozenset[str] = frozenset()
        self.repeats = 1
        unstable = [groups for groups in arms.values() if len(set(groups)) > 1]
        if not unstable:
            return
        if len(set(self._class.values())) > 1:
            self.repeats = 2
            return
        # One order's outcomes are among another's: seeing the rare one tells them apart, not seeing it needs repeats.
        self._class = {group: group for group in parent}
        common = set.intersection(*map(set, arms.values()))
        self._weak = frozenset(common)
        shares = [sum(group not in common for group in groups) / len(groups) for groups in arms.values()]
        share = min((share for share in shares if share), default=0.0)
        if 0 < share < 1:
            self.repeats = min(MOST_REPEATS, math.ceil(math.log(MISSED) / math.log(1 - share)))

    def _within(self, record: Record, example: Record) -> bool:
        if record.failure is not None or example.failure is not None:
            return False
        left, right = ({o.name: o for o in select_outputs(item, self._patterns)} for item in (record, example))
        return left.keys() == right.keys() and all(self._agree(left[name], right[name]) for name in left)


class _Agreement:
    """Whether two outputs agree within the tolerance asked for; each pair of stored arrays is compared once."""

    def __init__(self, tolerance_for: ToleranceFor, objects: ObjectStore) -> None:
        self._tolerance_for = tolerance_for
        self._objects = objects
        self._known: dict[tuple[str, str, str], bool] = {}

    def __call__(self, left: Output, right: Output) -> bool:
        if left.digest == right.digest:
            return True
        tolerance = self._tolerance_for(left.name)
        if tolerance.exact:
            return False
        key = (left.digest, right.digest, left.name)
        if key not in self._known:
            from reprocheck.compare.arrays import compare
            from reprocheck.compare.source import Source

            one, other = (Source.from_object(self._objects.path(item.digest)) for item in (left, right))
            self._known[key] = compare(one, other, tolerance).within
        return self._known[key]


def _key(record: Record, patterns: Sequence[str]) -> object:
    """As `outcome_key`, with a failure's place in the order left out: fewer subjects move it, and it is the same."""
    key = outcome_key(record, patterns)
    return re.sub(r" \(\d+ of \d+\)", "", key) if isinstance(key, str) else key

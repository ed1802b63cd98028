"""Groups: which trials had the same outcome. Equal outputs bit for bit make one, and so do equal failures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from reprocheck.compare.tolerance import matches
from reprocheck.errors import UsageError
from reprocheck.model import Group, NotCompared, Output, Record, Struct

__all__ = [
    "Grouping",
    "group_id",
    "group_records",
    "left_out",
    "outcome_key",
    "refuse_empty_selection",
    "select_outputs",
]

NAMES_SHOWN = 8


class Grouping(Struct, frozen=True, kw_only=True):
    """Every record's group, and the groups themselves, the reference order's first one leading."""

    ids: tuple[str, ...]
    """Group id of each record, in the order given."""
    groups: tuple[Group, ...]
    examples: dict[str, int]
    """Group id -> index of its first record."""

    @property
    def failed(self) -> frozenset[str]:
        """Ids of the groups that did not finish."""
        return frozenset(group.id for group in self.groups if group.failure is not None)

    def reference(self) -> str | None:
        """The group other outputs are compared with: the first that finished; None if none did."""
        for group in self.groups:
            if group.failure is None:
                return group.id
        return None


def select_outputs(record: Record, patterns: Sequence[str]) -> tuple[Output, ...]:
    """The record's outputs whose names match a pattern (all, without patterns)."""
    if not patterns:
        return record.outputs
    return tuple(o for o in record.outputs if any(matches(pattern, o.name) for pattern in patterns))


def refuse_empty_selection(records: Sequence[Record], patterns: Sequence[str], target: str) -> None:
    """Raise `UsageError` where no record has an output that is selected: nothing compared would be `identical`."""
    if not records or any(select_outputs(record, patterns) for record in records):
        return
    asked = ", ".join(f"`{pattern}`" for pattern in patterns)
    names = [f"`{output.name}`" for output in records[0].outputs]
    more = ", …" if len(names) > NAMES_SHOWN else ""
    raise UsageError(
        f"no output of `{target}` matches --outputs {asked}: it has {', '.join(names[:NAMES_SHOWN])}{more}"
    )


def left_out(records: Iterable[Record], patterns: Sequence[str]) -> tuple[NotCompared, ...]:
    """What was not compared in any record, each name once, and why."""
    found: dict[str, str] = {}
    for record in records:
        for item in record.not_compared:
            found.setdefault(item.name, item.reason)
        if patterns:
            kept = {output.name for output in select_outputs(record, patterns)}
            for output in record.outputs:
                if output.name not in kept:
                    found.setdefault(output.name, "not selected by --outputs")
    return tuple(NotCompared(name=name, reason=reason) for name, reason in found.items())


def group_id(index: int) -> str:
    """A, B, … Z, AA, AB and so on."""
    letters = ""
    index += 1
    while index:
        index, digit = divmod(index - 1, 26)
        letters = chr(65 + digit) + letters
    return letters


def outcome_key(record: Record, patterns: Sequence[str] = ()) -> object:
    """Equal for two records exactly when they belong to one group."""
    if record.failure is not None:
        return record.failure.signature
    return frozenset((output.name, output.digest) for output in select_outputs(record, patterns))


def group_records(records: Sequence[Record], patterns: Sequence[str] = ()) -> Grouping:
    """Sort records into groups, numbered in order of first appearance."""
    known: dict[object, str] = {}
    ids: list[str] = []
    orders: dict[str, dict[tuple[str, ...], None]] = {}
    examples: dict[str, int] = {}
    for index, record in enumerate(records):
        key = outcome_key(record, patterns)
        name = known.setdefault(key, group_id(len(known)))
        examples.setdefault(name, index)
        orders.setdefault(name, {})[record.effective_order or record.trial.order] = None
        ids.append(name)
    counts = Counter(ids)
    groups = tuple(
        Group(
            id=name,
            orders=tuple(orders[name]),
            trials=counts[name],
            outcome=_outcome(records[examples[name]]),
            failure=records[examples[name]].failure,
        )
        for name in examples
    )
    return Grouping(ids=tuple(ids), groups=groups, examples=examples)


def _outcome(record: Record) -> str:
    return "ok" if record.failure is None else record.failure.message

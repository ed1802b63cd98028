"""How each output differs between the groups of a study."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING

import msgspec

from reprocheck.model import Difference, Group, Output, OutputDifference, Tolerance
from reprocheck.store.objects import ObjectStore

if TYPE_CHECKING:
    from reprocheck.compare.source import Source

__all__ = ["compare_groups"]

ToleranceFor = Callable[[str], Tolerance]


def compare_groups(
    groups: tuple[Group, ...],
    outputs: Mapping[str, Mapping[str, Output]],
    reference: str | None,
    objects: ObjectStore,
    tolerance_for: ToleranceFor,
) -> tuple[tuple[OutputDifference, ...], tuple[Group, ...]]:
    """Every output against the reference group's, and the groups with their tolerance verdicts filled in.

    `outputs` maps a group's id to its outputs by name. For an output that differs in several groups the largest
    difference is reported. Each pair of stored arrays is compared once.
    """
    if reference is None:
        return (), groups

    @cache
    def source(digest: str) -> Source:
        from reprocheck.compare.source import Source

        return Source.from_object(objects.path(digest))

    known: dict[tuple[str, str, str], Difference] = {}

    def difference(name: str, other: Output | None, base: Output | None) -> Difference:
        if other is None or base is None:
            present = other or base
            assert present is not None  # noqa: S101 - the name comes from one of the two
            return Difference(
                kind="missing",
                dtype=present.dtype if other else "",
                shape=present.shape if other else (),
                other_dtype=present.dtype if base else "",
                other_shape=present.shape if base else (),
            )
        key = (other.digest, base.digest, name)
        if key not in known:
            # A study whose orders agree has nothing to compare, and need not wait for numpy.
            from reprocheck.compare.arrays import compare

            known[key] = compare(source(other.digest), source(base.digest), tolerance_for(name))
        return known[key]

    base = outputs[reference]
    names = list(base)
    names += [name for items in outputs.values() for name in items if name not in base]
    names = list(dict.fromkeys(names))
    worst: dict[str, tuple[str, Difference]] = {}
    judged: list[Group] = []
    for group in groups:
        items = outputs.get(group.id)
        within = group.failure is None
        if items is not None and group.id != reference:
            for name in names:
                left, right = items.get(name), base.get(name)
                if left is right or (left is not None and right is not None and left.digest == right.digest):
                    continue
                found = difference(name, left, right)
                within = within and found.within
                if name not in worst or rank(found) > rank(worst[name][1]):
                    worst[name] = (group.id, found)
        judged.append(msgspec.structs.replace(group, within_tolerance=within))
    rows = []
    for name in names:
        example = base.get(name) or next(items[name] for items in outputs.values() if name in items)
        if name in worst:
            group_name, found = worst[name]
            rows.append(_row(name, example, (reference, group_name), found))
        else:
            rows.append(OutputDifference(name=name, dtype=example.dtype, shape=example.shape, differs=False))
    return tuple(rows), tuple(judged)


def _row(name: str, example: Output, groups: tuple[str, str], found: Difference) -> OutputDifference:
    return OutputDifference(
        name=name,
        dtype=example.dtype,
        shape=example.shape,
        differs=True,
        groups=groups,
        kind=found.kind,
        size=found.size,
        differing=found.differing,
        max_ulp=found.max_ulp,
        max_abs=found.max_abs,
        max_rel=found.max_rel,
        first_index=found.first_index,
        passes_at=found.passes_at,
        within=found.within,
        detail=found,
    )


_KIND_RANK = {"equal": 0, "values": 1, "dtype": 2, "shape": 3, "missing": 4}


def rank(found: Difference) -> tuple[float, ...]:
    """Sort key: the more serious difference is larger."""
    return (
        _KIND_RANK[found.kind],
        not found.within,
        found.nan_changed + found.inf_changed > 0,
        found.max_rel or 0.0,
        found.max_ulp or 0,
        found.differing,
    )

"""The origin rule: the earliest operator with equal inputs and unequal outputs; everything later is inherited.

Earliest means first in execution order. Where the first difference is in an input instead, its maker is looked for: an
operator that only one order ran, a generator whose state differed, or nothing that was traced.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from reprocheck.explain.locate.align import Gap, Pair
from reprocheck.explain.locate.reading import Fact, Operator
from reprocheck.explain.locate.sequences import Sequences
from reprocheck.model import Struct

__all__ = ["Found", "find_origin"]


Kind = Literal["operator", "replaced", "random", "initialisation", "data", "input"]


class Found(Struct, frozen=True, kw_only=True):
    """The place at which two operator sequences part, as indexes into them."""

    kind: Kind
    a: int | None
    b: int | None
    """Indexes of the operator in either sequence; None where one order has no such operator (kind `replaced`)."""
    side: Literal["in", "out"]
    """`in` or `out`: whether `slot` counts inputs or outputs."""
    slot: int | None
    """The first input or output that differs; None when no array does (an argument, a generator)."""
    inherited: int = 0
    repeated: int = 0
    moved: bool = False
    """The inputs are equal, but came in another order."""
    layout: bool = False
    """The inputs are equal, but laid out with other strides."""


def find_origin(sequences: Sequences) -> Found | None:
    """Where the sequences part; None if nothing differs.

    What ran in one order only is the place if a later difference comes from it, or if nothing after it differs.
    """
    makers = _Makers()
    steps = sequences.steps
    gaps: list[Gap] = []
    for at, step in enumerate(steps):
        if isinstance(step, Gap):
            gaps.append(step)
            for i in step.a:
                makers.add(0, sequences.a[i], i, alone=True)
            for j in step.b:
                makers.add(1, sequences.b[j], j, alone=True)
            continue
        a, b = sequences.a[step.a], sequences.b[step.b]
        if sequences.trusted(step):
            found = _parting(step, a, b, makers)
            if found is not None:
                inherited, repeated = _later(sequences, steps[at + 1 :])
                return msgspec.structs.replace(found, inherited=inherited, repeated=repeated)
        makers.add(0, a, step.a)
        makers.add(1, b, step.b)
    return next(filter(None, (_only(gap, sequences) for gap in gaps)), None)


def _only(gap: Gap, sequences: Sequences) -> Found | None:
    """The first operators of a gap that compute something and are no noise."""
    a = next((i for i in gap.a if not sequences.a[i].view and i not in sequences.noisy[0]), None)
    b = next((j for j in gap.b if not sequences.b[j].view and j not in sequences.noisy[1]), None)
    return None if a is None and b is None else Found(kind="replaced", a=a, b=b, side="out", slot=None)


class _Makers:
    """Which operator made the array with a digest, in either sequence, and whether the other order has it too."""

    def __init__(self) -> None:
        self._made: tuple[dict[str, tuple[int, bool]], dict[str, tuple[int, bool]]] = ({}, {})

    def add(self, side: int, item: Operator, index: int, *, alone: bool = False) -> None:
        made = self._made[side]
        for fact in item.outputs:
            # A call of a toolbox is recorded after the operators inside it: the first of several makers counts.
            if fact.digest is not None and not (alone and made.get(fact.digest, (0, False))[1]):
                made[fact.digest] = (index, alone)

    def of(self, side: int, fact: Fact) -> tuple[int, bool] | None:
        return self._made[side].get(fact.digest) if fact.digest is not None else None


def _parting(pair: Pair, a: Operator, b: Operator, makers: _Makers) -> Found | None:
    """What parts the orders at this pair of operators; None if it agrees."""
    differing = _differing(a.inputs, b.inputs)
    moved = differing is not None and sorted(_digests(a.inputs)) == sorted(_digests(b.inputs))

    def found(kind: Kind, side: Literal["in", "out"], slot: int | None) -> Found:
        layout = _strides(a.inputs) != _strides(b.inputs)
        return Found(kind=kind, a=pair.a, b=pair.b, side=side, slot=slot, moved=moved, layout=layout)

    if (differing is None or moved) and a.arguments == b.arguments:
        if a.random != b.random:
            # The state a generator is in when it draws is an input that no operator made.
            return found("initialisation" if a.phase == "initialisation" else "random", "out", None)
        slot = _differing(a.outputs, b.outputs)
        if slot is None:
            return None
        return found("operator" if a.inputs or a.random else "data", "out", slot)
    if differing is not None and not moved:
        made_a, made_b = makers.of(0, a.inputs[differing]), makers.of(1, b.inputs[differing])
        if (made_a is not None and made_a[1]) or (made_b is not None and made_b[1]):
            return Found(
                kind="replaced",
                a=made_a[0] if made_a is not None and made_a[1] else None,
                b=made_b[0] if made_b is not None and made_b[1] else None,
                side="out",
                slot=None,
            )
    return found("input", "in", None if moved else differing)


def _later(sequences: Sequences, steps: list[Pair | Gap]) -> tuple[int, int]:
    """How many later operators inherited a difference, and how many part by themselves again."""
    inherited = repeated = 0
    for step in steps:
        if isinstance(step, Gap) or not sequences.trusted(step):
            continue
        a, b = sequences.a[step.a], sequences.b[step.b]
        if _differing(a.outputs, b.outputs) is None:
            continue
        if _differing(a.inputs, b.inputs) is not None or a.arguments != b.arguments or a.random != b.random:
            inherited += 1
        else:
            repeated += 1
    return inherited, repeated


def _differing(a: tuple[Fact, ...], b: tuple[Fact, ...]) -> int | None:
    """The first slot whose digests differ."""
    return next((k for k, (x, y) in enumerate(zip(a, b, strict=True)) if x.digest != y.digest), None)


def _digests(facts: tuple[Fact, ...]) -> list[str]:
    return [str(fact.digest) for fact in facts]


def _strides(facts: tuple[Fact, ...]) -> list[tuple[int, ...] | None]:
    return [fact.strides for fact in facts]

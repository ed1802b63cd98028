"""The first line: the earliest executed statement after which the two orders' variables hold different bits."""

from __future__ import annotations

from typing import Literal

from reprocheck.explain.locate.align import Gap, align
from reprocheck.explain.locate.reading import Fact, LineStep, Trace
from reprocheck.model import Struct

__all__ = ["Line", "find_first_line", "noisy_variables"]

Kind = Literal["set", "changed", "met", "path"]


class Line(Struct, frozen=True, kw_only=True):
    """The statement at which two line sequences part."""

    kind: Kind
    a: LineStep
    b: LineStep | None
    """The same step in the second order; None when it did not run, or changed nothing there."""
    variable: str = ""
    fact: Fact | None = None
    """Of the first order."""


def find_first_line(a: Trace, b: Trace, noisy: frozenset[tuple[object, ...]] = frozenset()) -> Line | None:
    """The first step with a variable that differs, or the first at which other lines ran; None if there is none.

    `noisy` holds (step key, variable) pairs that differ between identical runs and are no evidence.
    """
    for step in align([item.key for item in a.lines], [item.key for item in b.lines], cut=a.cut or b.cut):
        if isinstance(step, Gap):
            return _apart([a.lines[i] for i in step.a], [b.lines[j] for j in step.b])
        one, other = a.lines[step.a], b.lines[step.b]
        for kind, left, right in _views(one, other):
            for name in dict.fromkeys([*left, *right]):
                if left.get(name) != right.get(name) and (one.key, name) not in noisy:
                    return Line(kind=kind, a=one, b=other, variable=name, fact=left.get(name) or right[name])
    return None


def _apart(one: list[LineStep], other: list[LineStep]) -> Line:
    """What steps without a partner show: other lines ran, or one line changed something in one order only.

    A line that sets nothing leaves a step only where it changed something.
    """
    step = (one or other)[0]
    if step.changed and not (step.after or step.first) and not (one and other):
        name, fact = next(iter(step.changed.items()))
        return Line(kind="changed", a=step, b=None, variable=name, fact=fact)
    return Line(kind="path", a=step, b=None)


def _views(one: LineStep, other: LineStep) -> tuple[tuple[Kind, dict[str, Fact], dict[str, Fact]], ...]:
    return (
        ("met", one.first, other.first),
        ("set", one.after, other.after),
        ("changed", one.changed, other.changed),
    )


def noisy_variables(one: Trace, again: Trace) -> frozenset[tuple[object, ...]]:
    """(step key, variable) of what differs between two runs of one order."""
    found: set[tuple[object, ...]] = set()
    for step in align([item.key for item in one.lines], [item.key for item in again.lines]):
        if isinstance(step, Gap):
            continue
        left, right = one.lines[step.a], again.lines[step.b]
        for _, mine, theirs in _views(left, right):
            found |= {(left.key, name) for name in {*mine, *theirs} if mine.get(name) != theirs.get(name)}
    return frozenset(found)

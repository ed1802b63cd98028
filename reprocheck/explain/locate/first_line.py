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
    """The same step in the second order; None when it ran other lines."""
    variable: str = ""
    fact: Fact | None = None
    """Of the first order."""


def find_first_line(a: Trace, b: Trace, noisy: frozenset[tuple[object, ...]] = frozenset()) -> Line | None:
    """The first step with a variable that differs, or the first at which other lines ran; None if there is none.

    `noisy` holds (step key, variable) pairs that differ between identical runs and are no evidence.
    """
    for step in align([item.key for item in a.lines], [item.key for item in b.lines]):
        if isinstance(step, Gap):
            where = a.lines[step.a[0]] if step.a else b.lines[step.b[0]]
            return Line(kind="path", a=where, b=None)
        one, other = a.lines[step.a], b.lines[step.b]
        for kind, left, right in (("met", one.first, other.first), ("set", one.after, other.after)):
            for name in dict.fromkeys([*left, *right]):
                if left.get(name) == right.get(name) or (one.key, name) in noisy:
                    continue
                fact = left.get(name) or right[name]
                changed = kind == "set" and not (name in left and name in right)
                return Line(kind="changed" if changed else _kind(kind), a=one, b=other, variable=name, fact=fact)
    return None


def _kind(kind: str) -> Kind:
    return "met" if kind == "met" else "set"


def noisy_variables(one: Trace, again: Trace) -> frozenset[tuple[object, ...]]:
    """(step key, variable) of what differs between two runs of one order."""
    found: set[tuple[object, ...]] = set()
    for step in align([item.key for item in one.lines], [item.key for item in again.lines]):
        if isinstance(step, Gap):
            continue
        left, right = one.lines[step.a], again.lines[step.b]
        for mine, theirs in ((left.first, right.first), (left.after, right.after)):
            found |= {(left.key, name) for name in {*mine, *theirs} if mine.get(name) != theirs.get(name)}
    return frozenset(found)

"""Two orders' operators side by side: which are the same step, what ran in one order only, which are noisy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property

from reprocheck.explain.locate.align import Gap, Pair, align
from reprocheck.explain.locate.reading import Operator, Trace
from reprocheck.model import Unaligned

__all__ = ["Sequences", "noisy_operators"]

MAX_UNALIGNED = 50


class Sequences:
    """The operators of two traces, aligned."""

    def __init__(
        self, a: Trace, b: Trace, noisy: tuple[frozenset[int], frozenset[int]] = (frozenset(), frozenset())
    ) -> None:
        """`noisy`: indexes of operators of either side that are no evidence."""
        self.a, self.b = a.operators, b.operators
        self._cut = a.cut or b.cut
        self.noisy = noisy

    @cached_property
    def steps(self) -> list[Pair | Gap]:
        """Pairs and gaps in execution order."""
        return align([item.key for item in self.a], [item.key for item in self.b], cut=self._cut)

    def trusted(self, pair: Pair) -> bool:
        """Whether neither operator of a pair is noisy."""
        return pair.a not in self.noisy[0] and pair.b not in self.noisy[1]

    def unaligned(self) -> tuple[Unaligned, ...]:
        """What ran in one order only, in the order of execution, equal findings counted together."""
        gaps = [step for step in self.steps if isinstance(step, Gap)]
        moved = self._moved(gaps)
        found: Counter[tuple[str, str, str | None, str | None, int | None, str | None]] = Counter()
        for gap in gaps:
            left = [self.a[i] for i in gap.a if not (self.a[i].view and gap.b)]
            right = [self.b[j] for j in gap.b if not (self.b[j].view and gap.a)]
            out = [item for item in left if _same(item) not in moved]
            came = [item for item in right if _same(item) not in moved]
            for item in left:
                if _same(item) in moved:
                    found[_finding("reordered", item, None)] += 1
            for one, other in zip(out, came, strict=False):
                found[_finding("replaced", one, other.name)] += 1
            for item in out[len(came) :]:
                found[_finding("missing", item, None)] += 1
            for item in came[len(out) :]:
                found[_finding("inserted", item, None)] += 1
        return tuple(_unaligned(*finding, count) for finding, count in list(found.items())[:MAX_UNALIGNED])

    def _moved(self, gaps: Sequence[Gap]) -> set[tuple[object, ...]]:
        """Operators that both sides have without a partner, in different places."""
        left = {_same(self.a[i]) for gap in gaps for i in gap.a}
        right = {_same(self.b[j]) for gap in gaps for j in gap.b}
        return left & right


def _same(item: Operator) -> tuple[object, ...]:
    return (item.key, tuple(sorted(str(fact.digest) for fact in item.inputs)))


def _finding(
    kind: str, item: Operator, other: str | None
) -> tuple[str, str, str | None, str | None, int | None, str | None]:
    place = item.place
    return kind, item.name, other, place.file if place else None, place.line if place else None, item.module


_WORDS = {
    "inserted": "only the second order ran `{0}`",
    "missing": "only the first order ran `{0}`",
    "replaced": "`{0}` was replaced by `{1}`",
    "reordered": "`{0}` ran at another time",
}


def _unaligned(
    kind: str, operator: str, other: str | None, file: str | None, line: int | None, module: str | None, count: int
) -> Unaligned:
    text = _WORDS[kind].format(operator, other)
    if file:
        text += f" at {file}:{line}"
    if module:
        text += f" in `{module}`"
    if count > 1:
        text += f", {count} times"
    return Unaligned(
        kind=kind,  # type: ignore[arg-type]
        operator=operator,
        other=other,
        file=file,
        line=line,
        module=module,
        count=count,
        text=text,
    )


def noisy_operators(one: Trace, again: Trace) -> frozenset[int]:
    """Indexes of operators of `one` whose values are not the same in a second run of the same order.

    Operators that the second run did not have are noisy too: what runs now and then explains no order.
    """
    cut = one.cut or again.cut
    steps = align([item.key for item in one.operators], [item.key for item in again.operators], cut=cut)
    found: set[int] = set()
    for step in steps:
        if isinstance(step, Gap):
            found.update(step.a)
            continue
        left, right = one.operators[step.a], again.operators[step.b]
        if (left.inputs, left.outputs, left.random) != (right.inputs, right.outputs, right.random):
            found.add(step.a)
    return frozenset(found)

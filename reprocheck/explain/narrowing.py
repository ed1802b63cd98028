"""Where no captured state explains a difference: the narrowest import at which the outcome changes.

Two subjects matter in this order, so somewhere inside the import of the one there is a point such that importing the
other before it gives one outcome, and after it another. Points are the beginnings and ends of the imports on the way;
the other subject is imported right there, and the flip is found by binary search. Nothing is assumed: the ends differ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from reprocheck.explain.asking import Asker
from reprocheck.explain.interventions.base import Pair, Side
from reprocheck.model import Record, Trial

__all__ = ["Point", "last_point", "narrow", "points_of"]

MOST_POINTS = 8192


@dataclass(frozen=True)
class Point:
    """A moment on the way of a subject's import, and the module whose code runs from there to the next one."""

    moment: str
    """The worker's word: `before:MODULE` or `past:MODULE`."""
    module: str
    file: str | None
    after: str | None = None
    """What that module had imported just before, if anything."""

    def text(self) -> str:
        """`toolbox.runtime`, after it imported `json`."""
        return f"`{self.module}`" + (f" (after its import of `{self.after}`)" if self.after else "")


def narrow(pair: Pair, asker: Asker) -> tuple[Point, Point] | None:
    """The two places whose order matters: one on the way of each of the two subjects that are swapped.

    The first is on the way of the subject that comes first in the bad order. None for orders that don't differ by a
    swap. Raises `BudgetSpentError`.
    """
    good, bad = pair.trial("good").order, pair.trial("bad").order
    moved = [name for name, other in zip(bad, good, strict=False) if name != other]
    if len(good) != len(bad) or len(moved) != 2:
        return None
    first, second = moved
    return _within(pair, asker, "bad", first, second), _within(pair, asker, "good", second, first)


def _within(pair: Pair, asker: Asker, side: Side, outer: str, other: str) -> Point:
    """The point on the way of `outer`, which comes first on this side, after which `other` is too late."""
    trial = pair.trial(side)
    own = asker.label(trial)
    points = _points(asker, trial, outer)

    def flips(number: int) -> bool:
        """Whether the outcome is not this side's any more when `other` is imported at this point."""
        action = {"do": "import", "at": points[number].moment, "id": "narrowing", "name": other}
        return asker.label(Trial(order=trial.order, repeat=0, presence=trial.presence, actions=(action,))) != own

    return points[last_point(len(points), flips)]


def last_point(count: int, flips: Callable[[int], bool]) -> int:
    """The number of a point that flips the outcome while the next one does not; point 0 flips, the end does not."""
    low, high = 0, count
    while high - low > 1:
        middle = (low + high) // 2
        if flips(middle):
            low = middle
        else:
            high = middle
    return low


def _points(asker: Asker, trial: Trial, outer: str) -> Sequence[Point]:
    watch = {"do": "watch", "id": "narrowing"}
    actions = ({**watch, "at": f"before:{outer}", "mode": "begin"}, {**watch, "at": f"after:{outer}", "mode": "end"})
    record = asker.records([Trial(order=trial.order, repeat=0, presence=trial.presence, actions=actions)])[0]
    return points_of(outer, _told(record))


def _told(record: Record) -> list[tuple[str, str, str | None]]:
    for report in record.actions:
        if report.get("do") == "watch" and report.get("ok") and isinstance(report.get("now"), list):
            return [(str(place), str(name), file) for place, name, file in report["now"]]
    return []


def points_of(outer: str, seen: Sequence[tuple[str, str, str | None]]) -> list[Point]:
    """The points on the way of `outer`, from `(place, module, file)` of the imports that began and ended.

    Points of a module that was imported twice, or between which no code can run, are left out.
    """
    files = {name: file for _, name, file in seen}
    found = [Point(moment=f"before:{outer}", module=outer, file=files.get(outer))]
    stack = [outer]
    for place, name, _ in seen:
        if place == "before":
            if name == outer:
                continue
            stack.append(name)
            found.append(Point(moment=f"before:{name}", module=name, file=files[name]))
        elif stack and stack[-1] == name:
            stack.pop()
            if stack:
                found.append(Point(moment=f"past:{name}", module=stack[-1], file=files.get(stack[-1]), after=name))
    unique = {point.moment: point for point in found}
    return list(unique.values())[:MOST_POINTS]

"""Order against version: did the outcome change because the new version imports things in another order?

Both versions at the boundary are run under the order in which each of them, by itself, imports the modules that could
matter: a two-by-two table, next to what either gives when nothing is forced. Which column or row decides is read off.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from reprocheck.bisect.arms import Arm, Workload, own_order_sequence
from reprocheck.bisect.records import Candidate, Cell, Factorial, Place
from reprocheck.compare.groups import group_id
from reprocheck.model import Record

__all__ = ["RUNS", "Side", "began", "factorial", "native_modules", "read_off", "watched"]

RUNS = 2
"""Trials a cell, so that what varies anyway is seen to vary."""
_NOT_WATCHED = sys.stdlib_module_names | {"reprocheck", "__main__", "__mp_main__"}
Order = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two versions at the boundary."""

    candidate: Candidate
    place: Place
    folder: Path
    """Where its trials lie."""


def factorial(
    good: Side,
    bad: Side,
    workload: Workload,
    subjects: Sequence[str],
    *,
    studied: Sequence[tuple[str, Order, Arm]] = (),
    note: Callable[[str], None],
) -> tuple[Factorial | None, Arm, Arm]:
    """(the table, the good and the bad version's trials in which nothing was forced).

    The table is None when nothing but the package itself could be put in another order. `studied` are cells that were
    run already: (version, order, its trials).
    """
    package = {*good.place.modules, *bad.place.modules}
    note(f"order against version: {good.candidate.name} and {bad.candidate.name}, nothing forced")
    own = {side.candidate.name: workload.arm(side.place, (), range(RUNS), side.folder / "own") for side in (good, bad)}
    arms = own[good.candidate.name], own[bad.candidate.name]
    sequences = [own_order_sequence(arm.records[0]) for arm in arms]
    natives = {name for arm in arms for name in native_modules(arm.records[0])}
    names = {*(natives - _local(workload) - _NOT_WATCHED), *subjects} - package
    good_order, bad_order = (watched(sequence, names) for sequence in sequences)
    if not (good_order or bad_order):
        return None, *arms

    cells: list[tuple[str, Order | None, Arm]] = [(name, None, arm) for name, arm in own.items()]
    for order in dict.fromkeys((good_order, bad_order)):
        if order:
            note(f"order against version: {','.join(order)} first")
            cells += [
                (side.candidate.name, order, workload.arm(side.place, order, range(RUNS), side.folder / _slug(order)))
                for side in (good, bad)
            ]
    cells += list(studied)
    table = tuple(_lettered(cells, workload))
    verdict, sentence = read_off(
        table, good.candidate.name, bad.candidate.name, good_order, bad_order, sorted(package) or ["the package"]
    )
    return (
        Factorial(verdict=verdict, sentence=sentence, good_order=good_order, bad_order=bad_order, cells=table),  # type: ignore[arg-type]
        *arms,
    )


def native_modules(record: Record) -> set[str]:
    """Top-level packages that brought native code into the process, by the paths of what was loaded."""
    found = set()
    for event in record.events:
        if event.kind in ("library", "dlopen"):
            _, installed, inside = event.name.rpartition("-packages/")
            if installed:
                found.add(inside.partition("/")[0].partition(".")[0])
    return found


def watched(sequence: Sequence[str], names: set[str]) -> Order:
    """Those modules of a sequence of imports whose order is looked at; parts of one before them left out."""
    found: list[str] = []
    for name in sequence:
        # `cupy_backends` is a part of `cupy`, which imports it.
        if name in names and not any(name.startswith(f"{other}_") for other in found):
            found.append(name)
    return tuple(found)


def began(good_order: Order, bad_order: Order) -> str:
    """What the bad version does differently, in words; empty when the orders are equal."""
    for later, name in enumerate(bad_order):
        for other in bad_order[later + 1 :]:
            if name in good_order and other in good_order and good_order.index(other) < good_order.index(name):
                return f"began to import {name} before {other}"
    new = [name for name in bad_order if name not in good_order]
    gone = [name for name in good_order if name not in bad_order]
    if new:
        return f"began to import {', '.join(new)}"
    return f"no longer imports {', '.join(gone)}" if gone else ""


def read_off(
    cells: Sequence[Cell], good: str, bad: str, good_order: Order, bad_order: Order, package: Sequence[str]
) -> tuple[str, str]:
    """(verdict, sentence) of the table."""

    def cell(version: str, order: Order | None) -> str | None:
        for one in cells:
            if one.version == version and one.order == order:
                return one.groups[0] if len(set(one.groups)) == 1 else None
        return None

    own_good, own_bad = cell(good, None), cell(bad, None)
    if own_good is None or own_bad is None:
        return "unclear", "identical runs give different outcomes, so the table says nothing about the order"
    if own_good == own_bad:
        others = _other_cells(cells, bad, own_good)
        tail = f"; under {others} it does not" if others else ""
        return (
            "no-difference",
            f"as the workload itself imports, {bad} still gives {good}'s results{tail}",
        )
    first, new_first = ", ".join(good_order), ", ".join(bad_order)
    restored, kept = cell(bad, good_order) == own_good, cell(bad, bad_order) == own_bad
    spread = cell(good, bad_order) == own_bad
    change = began(good_order, bad_order)
    if restored and kept:
        if spread:
            text = (
                f"the change came with {bad}, which {change}; with {first} imported first, {bad} gives {good}'s "
                f"results, and with {new_first} first, {good} gives {bad}'s"
            )
            return "order", text
        text = (
            f"{bad} {change}; with {first} imported first it gives {good}'s results, but its order does not make "
            f"{good} give {bad}'s: the order and other code of {bad} act together"
        )
        return "interaction", text
    if restored:
        ahead = _restoring(cells, bad, own_good, package) or good_order
        text = (
            f"{bad} made the results depend on the order: with {', '.join(ahead)} imported before "
            f"{', '.join(package)}, it gives {good}'s results"
        )
        return "order-sensitive", text
    if spread:
        text = f"{bad} {change}, and that is enough: with {new_first} imported first, {good} gives {bad}'s results"
        return "imports", text
    if kept and cell(bad, good_order) in (own_bad, None) and cell(good, bad_order) in (own_good, None):
        return (
            "not-order",
            f"the order is not the reason: {bad} gives its results in each order tried, and {good} its own",
        )
    return "interaction", "neither the order nor the version alone decides; see the table"


def _restoring(cells: Sequence[Cell], version: str, group: str, package: Sequence[str]) -> Order:
    """The fewest modules that, imported before the package, are known to bring back the outcome `group`."""
    found = []
    for one in cells:
        if one.version == version and one.order and set(one.groups) == {group}:
            ahead = tuple(itertools.takewhile(lambda name: name not in package, one.order))
            found += [ahead] if ahead else []
    return min(found, key=len, default=())


def _other_cells(cells: Sequence[Cell], version: str, group: str) -> str:
    orders = [one.order for one in cells if one.version == version and one.order and set(one.groups) != {group}]
    return ", ".join(f"`{','.join(order)}`" for order in orders[:3] if order)


def _lettered(cells: Sequence[tuple[str, Order | None, Arm]], workload: Workload) -> list[Cell]:
    """Cells with a letter for every outcome; outcomes that agree within the tolerance share one."""
    known: list[tuple[Arm, Record]] = []
    found = []
    for version, order, arm in cells:
        letters = []
        for record in arm.records:
            for index, (other_arm, other) in enumerate(known):
                if workload.agree(arm, record, other_arm, other):
                    letters.append(group_id(index))
                    break
            else:
                letters.append(group_id(len(known)))
                known.append((arm, record))
        first = arm.records[0]
        found.append(
            Cell(
                version=version,
                order=order,
                effective_order=first.effective_order,
                groups=tuple(letters),
                outcome="ok" if first.failure is None else first.failure.message,
            )
        )
    return found


def _local(workload: Workload) -> set[str]:
    """Modules next to the workload: its own code, always imported by it."""
    folder = Path(workload.folder)
    return {path.stem for path in folder.glob("*.py")} if workload.target.path else set()


def _slug(order: Order) -> str:
    return "order-" + "-".join(order)[:80]

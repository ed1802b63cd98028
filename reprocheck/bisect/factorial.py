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
    old: Side,
    new: Side,
    workload: Workload,
    subjects: Sequence[str],
    *,
    studied: Sequence[tuple[str, Order, Arm]] = (),
    note: Callable[[str], None],
) -> tuple[Factorial | None, Arm, Arm]:
    """(the table, the older and the newer version's trials in which nothing was forced).

    The table is None when nothing but the package itself could be put in another order. `studied` are cells that were
    run already: (version, order, its trials).
    """
    package = {*old.place.modules, *new.place.modules}
    note(f"order against version: {old.candidate.name} and {new.candidate.name}, nothing forced")
    own = {side.candidate.name: workload.arm(side.place, (), range(RUNS), side.folder / "own") for side in (old, new)}
    arms = own[old.candidate.name], own[new.candidate.name]
    sequences = [own_order_sequence(arm.records[0]) for arm in arms]
    natives = {name for arm in arms for name in native_modules(arm.records[0])}
    names = {*(natives - _local(workload) - _NOT_WATCHED), *subjects} - package
    old_order, new_order = (watched(sequence, names) for sequence in sequences)
    if not (old_order or new_order):
        return None, *arms

    cells: list[tuple[str, Order | None, Arm]] = [(name, None, arm) for name, arm in own.items()]
    for order in dict.fromkeys((old_order, new_order)):
        if order:
            note(f"order against version: {','.join(order)} first")
            cells += [
                (side.candidate.name, order, workload.arm(side.place, order, range(RUNS), side.folder / _slug(order)))
                for side in (old, new)
            ]
    cells += list(studied)
    table = tuple(_lettered(cells, workload))
    verdict, sentence = read_off(
        table, old.candidate.name, new.candidate.name, old_order, new_order, sorted(package) or ["the package"]
    )
    return (
        Factorial(verdict=verdict, sentence=sentence, old_order=old_order, new_order=new_order, cells=table),  # type: ignore[arg-type]
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


def began(old_order: Order, new_order: Order) -> str:
    """What the newer version does differently, in words; empty when the orders are equal."""
    for later, name in enumerate(new_order):
        for other in new_order[later + 1 :]:
            if name in old_order and other in old_order and old_order.index(other) < old_order.index(name):
                return f"began to import {name} before {other}"
    new = [name for name in new_order if name not in old_order]
    gone = [name for name in old_order if name not in new_order]
    if new:
        return f"began to import {', '.join(new)}"
    return f"no longer imports {', '.join(gone)}" if gone else ""


def read_off(
    cells: Sequence[Cell], old: str, new: str, old_order: Order, new_order: Order, package: Sequence[str]
) -> tuple[str, str]:
    """(verdict, sentence) of the table."""

    def cell(version: str, order: Order | None) -> str | None:
        for one in cells:
            if one.version == version and one.order == order:
                return one.groups[0] if len(set(one.groups)) == 1 else None
        return None

    own_old, own_new = cell(old, None), cell(new, None)
    if own_old is None or own_new is None:
        return "unclear", "identical runs give different outcomes, so the table says nothing about the order"
    if own_old == own_new:
        others = _other_cells(cells, new, own_old)
        tail = f"; under {others} it does not" if others else ""
        return (
            "no-difference",
            f"as the workload itself imports, {new} still gives {old}'s results{tail}",
        )
    first, then = ", ".join(old_order), ", ".join(new_order)
    restored, kept = cell(new, old_order) == own_old, cell(new, new_order) == own_new
    spread = cell(old, new_order) == own_new
    change = began(old_order, new_order)
    if restored and kept:
        if spread:
            text = (
                f"the change came with {new}, which {change}; with {first} imported first, {new} gives {old}'s "
                f"results, and with {then} first, {old} gives {new}'s"
            )
            return "order", text
        text = (
            f"{new} {change}; with {first} imported first it gives {old}'s results, but its order does not make "
            f"{old} give {new}'s: the order and other code of {new} act together"
        )
        return "interaction", text
    if restored:
        ahead = _restoring(cells, new, own_old, package) or old_order
        text = (
            f"{new} made the results depend on the order: with {', '.join(ahead)} imported before "
            f"{', '.join(package)}, it gives {old}'s results"
        )
        return "order-sensitive", text
    if spread and not change:
        ahead = _restoring(cells, old, own_new, package) or new_order
        text = (
            f"{new} made an end of results that depend on the order: with {', '.join(ahead)} imported before "
            f"{', '.join(package)}, {old} gives {new}'s results"
        )
        return "order-sensitive", text
    if spread:
        text = f"{new} {change}, and that is enough: with {then} imported first, {old} gives {new}'s results"
        return "imports", text
    if kept and cell(new, old_order) in (own_new, None) and cell(old, new_order) in (own_old, None):
        return (
            "not-order",
            f"the order is not the reason: {new} gives its results in each order tried, and {old} its own",
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

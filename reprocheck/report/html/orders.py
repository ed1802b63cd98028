"""Which order gave what: the orders with their groups, the matrix of orders and outputs, failures, tests."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from reprocheck.compare.outputs import rank
from reprocheck.headline import order_text, outcomes_text
from reprocheck.model import Arm, Group, OutputDifference, Study
from reprocheck.report.evidence import MIXED, NONE, Evidence, Matrix
from reprocheck.report.html.plots import Pictures
from reprocheck.report.html.text import Limits

__all__ = ["Letters", "orders_view", "ranked", "suite_view"]

SHADES = 6
_MEANING = {MIXED: "identical runs differ", NONE: "not there"}


class Letters:
    """The shade of each group: the first six have their own."""

    def __init__(self, study: Study) -> None:
        """Shades in the order of the study's groups."""
        self._shades = {group.id: f"g{min(number, SHADES)}" for number, group in enumerate(study.groups)}

    def shade(self, letter: str | None) -> str:
        """Class of a group's letter; what is no group has a neutral one."""
        return self._shades.get(letter or "", "gx")


def ranked(study: Study) -> list[OutputDifference]:
    """The outputs that differ, the most serious difference first."""
    found = [output for output in study.outputs if output.differs]
    found.sort(key=lambda output: rank(output.detail) if output.detail is not None else (), reverse=True)
    return found


def orders_view(evidence: Evidence, letters: Letters, limits: Limits, pictures: Pictures | None) -> dict[str, Any]:
    """Arms with their groups, the matrix, arms with only some subjects, and what the failing groups said."""
    study = evidence.study
    arms = [arm for arm in study.orders if not arm.presence]
    numbers = {arm.order: number for number, arm in enumerate(arms, 1)}
    failing = [group for group in study.groups if group.failure is not None]
    return {
        "arms": [_arm(arm, numbers, study, letters, evidence.reference) for arm in arms[: limits.orders]],
        "more_arms": max(0, len(arms) - limits.orders),
        "groups": len(study.groups),
        "presence": [
            {"order": arm.order, "groups": [(letter, letters.shade(letter)) for letter in sorted(set(arm.groups))]}
            for arm in study.orders
            if arm.presence
        ],
        "matrix": _matrix(evidence, numbers, letters, limits, pictures),
        "failures": [
            {
                "id": group.id,
                "shade": letters.shade(group.id),
                "message": group.outcome,
                "phase": group.failure.phase if group.failure is not None else "",
                "orders": [order_text(order) for order in group.orders[:4]],
                "more": max(0, len(group.orders) - 4),
                "traceback": group.failure.traceback if group.failure is not None else None,
            }
            for group in failing[:6]
        ],
        "more_failures": max(0, len(failing) - 6),
    }


def _arm(
    arm: Arm, numbers: dict[tuple[str, ...], int], study: Study, letters: Letters, reference: str | None
) -> dict[str, Any]:
    remarks = []
    if arm.same_as is not None:
        remarks.append(f"loads as order {numbers.get(arm.same_as, '?')} does; counted there")
    elif arm.group is not None:
        group = next((group for group in study.groups if group.id == arm.group), None)
        if group is not None:
            remarks.append(_standing(group, study, reference))
    elif arm.groups:
        counts = {name: arm.groups.count(name) for name in sorted(set(arm.groups))}
        told = ", ".join(f"{count} × {name}" for name, count in list(counts.items())[:6])
        remarks.append(f"identical runs differ: {told}{', …' if len(counts) > 6 else ''}")
    remarks += ["forked, not fresh"] if arm.forked else []
    remarks += [f"`{name}` is imported by `{by}`" for name, by in arm.pulled_in.items()]
    remarks += [f"`{name}` is loaded before Python runs any of your code" for name in arm.preloaded]
    if arm.effective_order != arm.order and arm.same_as is None:
        remarks.append(f"loaded in the order `{order_text(arm.effective_order)}`")
    found = [arm.group] if arm.group else sorted(set(arm.groups), key=lambda name: (len(name), name))
    return {
        "number": numbers[arm.order],
        "order": arm.order,
        "groups": [] if arm.same_as is not None else [(letter, letters.shade(letter)) for letter in found[:6]],
        "more_groups": 0 if arm.same_as is not None else max(0, len(found) - 6),
        "trials": None if arm.same_as is not None else arm.trials,
        "remarks": remarks,
    }


def _standing(group: Group, study: Study, reference: str | None) -> str:
    if group.failure is not None:
        return group.outcome
    if group.id == reference:
        return "the reference"
    if group.within_tolerance and any(output.differs for output in study.outputs):
        return f"differs from {reference} in bits, within the tolerance"
    return f"differs from {reference}"


def _matrix(
    evidence: Evidence,
    numbers: dict[tuple[str, ...], int],
    letters: Letters,
    limits: Limits,
    pictures: Pictures | None,
) -> dict[str, Any] | None:
    matrix = evidence.matrix
    if matrix is None or not matrix.rows:
        return None
    study = evidence.study
    first = [output.name for output in ranked(study)]
    # Within a group identical runs may differ in an output whose examples happen to be equal.
    uneven = {name for name, cells in matrix.rows.items() if len(set(cells)) > 1 or cells[0] == MIXED}
    known = set(first)
    chosen = [*first, *(name for name in matrix.rows if name in uneven and name not in known)]
    equal = [name for name in matrix.rows if name not in uneven and name not in known]
    columns = matrix.orders[: limits.orders]
    return {
        "orders": [(numbers.get(order, 0), order_text(order)) for order in columns],
        "rows": [
            {
                "name": name,
                "cells": [
                    (letter, letters.shade(letter), _MEANING.get(letter, ""))
                    for letter in matrix.rows[name][: limits.orders]
                ],
            }
            for name in chosen[: limits.matrix]
            if name in matrix.rows
        ],
        "more": max(0, len(chosen) - limits.matrix),
        "equal": equal[: limits.matrix],
        "equal_count": len(equal),
        "mixed": any(MIXED in matrix.rows[name] for name in chosen),
        "overview": _overview(matrix, evidence, pictures) if pictures and len(chosen) > limits.matrix else None,
    }


def _overview(matrix: Matrix, evidence: Evidence, pictures: Pictures) -> Markup:
    """Every output of every order at once, when there are too many for a table."""
    import numpy as np

    codes = {group.id: min(number, SHADES) for number, group in enumerate(evidence.study.groups)}
    codes |= {MIXED: 7, NONE: 8}
    rows = list(matrix.rows.values())
    cells = np.array([[codes.get(letter, SHADES) for letter in row] for row in rows], np.uint8).T
    # More columns than a screen has are drawn a few at a time, the most unusual of them showing.
    step = -(-cells.shape[1] // 2000)
    if step > 1:
        padded = np.pad(cells, ((0, 0), (0, -cells.shape[1] % step)))
        cells = padded.reshape(cells.shape[0], -1, step).max(axis=2)
    label = f"Every output of every order: {len(matrix.orders)} orders, {len(rows):,} outputs, coloured by group"
    return pictures.overview(cells, outputs=len(rows), label=label)


def suite_view(study: Study, limits: Limits) -> dict[str, Any] | None:
    """A test suite, test by test; None for other workloads."""
    suite = study.suite
    if suite is None:
        return None
    return {
        "tests": suite.tests,
        "differing": [
            {
                "test": item.test,
                "verdict": item.verdict,
                "told": outcomes_text(item),
                "p": item.p_value,
                "failure": item.failure,
            }
            for item in suite.differing[: limits.tests]
        ],
        "count": len(suite.differing),
        "failing": suite.failing[: limits.tests],
        "failing_count": len(suite.failing),
    }

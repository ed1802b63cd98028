"""Where it starts: the first line, the operator at which the orders part, and the operators around it."""

from __future__ import annotations

from typing import Any

from reprocheck.errors import StoreError
from reprocheck.explain.locate.align import Gap, Pair, align
from reprocheck.explain.locate.reading import Fact, Operator, Trace
from reprocheck.headline import order_text
from reprocheck.model import Difference, OperatorOrigin, Study
from reprocheck.report.evidence import Evidence
from reprocheck.report.html.text import Limits
from reprocheck.report.text import value_text
from reprocheck.words import differ

__all__ = ["start_view"]

BEFORE, AFTER = 5, 8


def start_view(evidence: Evidence, limits: Limits) -> dict[str, Any] | None:
    """First line, origin with the chain around it, and what else the traces showed; None without a trace."""
    study = evidence.study
    if study.traced is None and study.first_line is None and study.origin is None:
        return None
    line, origin = study.first_line, study.origin
    return {
        "line": line,
        "line_excerpt": evidence.excerpt(line.file, line.line) if line is not None else None,
        "line_difference": _difference(line.difference) if line is not None else "",
        "origin": origin,
        "origin_excerpt": _origin_excerpt(evidence, origin, study),
        "origin_difference": _difference(origin.output.difference) if origin is not None and origin.output else "",
        "chain": _chain(evidence) if limits.events > 10 else None,
        "inherited": study.inherited,
        "unaligned": [item.text or item.operator for item in study.unaligned[: limits.events]],
        "more_unaligned": max(0, len(study.unaligned) - limits.events),
        "kernels": study.kernels[: limits.events],
        "traced": study.traced,
        "names": [order_text(order) for order in study.traced.orders] if study.traced is not None else [],
    }


def _origin_excerpt(evidence: Evidence, origin: OperatorOrigin | None, study: Study) -> Any:
    if origin is None or origin.line is None:
        return None
    line = study.first_line
    if line is not None and (line.file, line.line) == (origin.file, origin.line):
        return None  # shown already
    return evidence.excerpt(origin.file, origin.line)


def _difference(found: Difference | None) -> str:
    """A difference in half a sentence."""
    if found is None or found.kind != "values":
        return ""
    told = differ(found.differing, found.size, "element")
    if found.max_ulp is not None:
        told += f", by up to {found.max_ulp:,} ULP"
    return told


def _chain(evidence: Evidence) -> list[dict[str, Any]] | None:
    """The operators around the origin, as the traced runs had them; None where the traces are not at hand."""
    origin = evidence.study.origin
    if origin is None or origin.kind not in ("operator", "random", "initialisation", "data"):
        return None
    try:
        for first, second in evidence.traces():
            steps = align([item.key for item in first.operators], [item.key for item in second.operators])
            at = _find(steps, first, second, origin)
            if at is not None:
                shown = steps[max(0, at - BEFORE) : at + AFTER + 1]
                return [
                    row
                    for number, step in enumerate(shown, max(0, at - BEFORE))
                    for row in _rows(step, first, second, evidence, here=number == at)
                ]
    except StoreError:
        return None
    return None


def _find(steps: list[Pair | Gap], first: Trace, second: Trace, origin: OperatorOrigin) -> int | None:
    """Where the origin is in the aligned steps, if this pair of traces shows it."""
    for number, step in enumerate(steps):
        if isinstance(step, Gap):
            continue
        item = first.operators[step.a]
        if origin.index in (item.number, step.a) and item.name == origin.operator:
            other = second.operators[step.b]
            if (item.outputs, item.random) != (other.outputs, other.random):
                return number
    return None


def _rows(step: Pair | Gap, first: Trace, second: Trace, evidence: Evidence, *, here: bool) -> list[dict[str, Any]]:
    if isinstance(step, Gap):
        rows = [_row(first.operators[i], None, evidence, only="first") for i in step.a]
        rows += [_row(second.operators[j], None, evidence, only="second") for j in step.b]
        return rows[:3]
    return [{**_row(first.operators[step.a], second.operators[step.b], evidence), "here": here}]


def _row(item: Operator, other: Operator | None, evidence: Evidence, *, only: str = "") -> dict[str, Any]:
    place = f"{value_text(item.place.file)}:{item.place.line}" if item.place is not None else ""
    return {
        "number": item.number,
        "name": evidence.shown(item.name),
        "module": evidence.module(item.module or ""),
        "phase": item.phase or "forward",
        "place": evidence.shown(place),
        "shapes": ", ".join(fact.text for fact in item.inputs[:4]),
        "inputs": _mark(item.inputs, other.inputs) if other is not None else "",
        "outputs": _mark(item.outputs, other.outputs) if other is not None else "",
        "only": only,
        "here": False,
    }


def _mark(a: tuple[Fact, ...], b: tuple[Fact, ...]) -> str:
    """Equal or unequal; empty when there is nothing to compare."""
    if not a and not b:
        return ""
    return "equal" if [fact.digest for fact in a] == [fact.digest for fact in b] else "unequal"

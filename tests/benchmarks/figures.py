"""How every benchmark tells a figure: what, against what, the budget, the median over rounds, and the spread."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

__all__ = ["row", "table"]

_HEAD = ("what", "against", "budget", "median", "spread", "rounds", "")


def row(
    what: str,
    against: str,
    values: Sequence[float],
    *,
    budget: float | None = None,
    least: bool = False,
    unit: str = "x",
) -> dict[str, Any]:
    """One figure: `values` are its rounds. With `least` the budget is what must be reached, else what may be spent."""
    median = statistics.median(values)
    return {
        "what": what,
        "against": against,
        "unit": unit,
        "budget": budget,
        "least": least,
        "median": round(median, 4),
        "spread": [round(min(values), 4), round(max(values), 4)],
        "rounds": len(values),
        "met": None if budget is None else bool(median >= budget if least else median <= budget),
    }


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The rows as Markdown, which is also fit for a terminal."""
    cells = [_HEAD, *(_cells(item) for item in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(_HEAD))]
    lines = [
        "| " + " | ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)) + " |" for line in cells
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def _cells(item: dict[str, Any]) -> tuple[str, ...]:
    sign = "≥" if item["least"] else "≤"
    budget = "–" if item["budget"] is None else f"{sign} {_number(item['budget'])} {item['unit']}".rstrip()
    low, high = item["spread"]
    met = {None: "", True: "met", False: "missed"}[item["met"]]
    return (
        item["what"],
        item["against"] or "–",
        budget,
        f"{_number(item['median'])} {item['unit']}".rstrip(),
        f"{_number(low)} – {_number(high)}",
        str(item["rounds"]),
        met,
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.3g}"

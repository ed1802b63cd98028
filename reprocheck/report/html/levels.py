"""The settings that were varied besides the order, their levels, and what they do."""

from __future__ import annotations

from typing import Any

from reprocheck.model import Study
from reprocheck.report.html.orders import Letters
from reprocheck.report.html.text import Limits
from reprocheck.report.levels import factor_rows, level_head, level_rows, moved, told

__all__ = ["levels_view"]

MOST_MOVED = 8


def levels_view(study: Study, letters: Letters, limits: Limits) -> dict[str, Any] | None:
    """Factors, levels and the outputs a factor changes; None where nothing but the order was varied."""
    factors = study.factors
    if factors is None:
        return None
    shown = [(factor.name, moved(factor)) for factor in factors.factors if factor.outputs]
    return {
        "sentence": factors.sentence,
        "factors": factor_rows(factors),
        "head": level_head(factors),
        "rows": level_rows(factors)[: limits.orders],
        "told": told(factors),
        "shade": letters.shade,
        "moved": [(name, rows[:MOST_MOVED], max(0, len(rows) - MOST_MOVED)) for name, rows in shown],
    }

"""What was varied besides the order, as rows that every report shows in its own way."""

from __future__ import annotations

from reprocheck.compare.outputs import rank
from reprocheck.headline import order_text
from reprocheck.model import Arm, Factor, Factors, OutputDifference

__all__ = ["factor_rows", "level_head", "level_rows", "moved", "told"]

MOST_ORDERS = 6
MOST_GROUPS = 4


def told(factors: Factors) -> str:
    """Which level the rest of a report is about, in a sentence."""
    level = factors.levels[factors.told]
    alike = sum(other.order_matters is True for other in factors.levels)
    text = f"all that follows is told of {level.text}"
    if level.order_matters and alike > 1:
        text += f", one of {alike} levels under which the order matters: place, cause and remedy were looked for there"
    return text


def factor_rows(factors: Factors) -> list[tuple[str, str, str]]:
    """(name, values, what it does) of each factor."""
    return [
        (
            factor.name,
            ", ".join("unset" if value is None else value for value in factor.values),
            factor.sentence + (f" (p = {factor.p_value:.2g})" if factor.p_value is not None else ""),
        )
        for factor in factors.factors
    ]


def level_head(factors: Factors) -> tuple[str, ...]:
    """The titles over `level_rows`."""
    orders = [order_text(arm.order) for arm in factors.levels[0].orders[:MOST_ORDERS]]
    return ("level", "verdict", "runs", *orders)


def level_rows(factors: Factors) -> list[tuple[str, ...]]:
    """Level, verdict, runs, and the group of each order."""
    return [
        (
            level.text.replace("`", ""),
            level.verdict,
            str(level.noise.trials),
            *(_group(arm) for arm in level.orders[:MOST_ORDERS]),
        )
        for level in factors.levels
    ]


def _group(arm: Arm) -> str:
    if arm.group is not None:
        return arm.group
    found = sorted(set(arm.groups), key=lambda name: (len(name), name))
    return "/".join(found[:MOST_GROUPS]) + ("/…" if len(found) > MOST_GROUPS else "")


def moved(factor: Factor) -> tuple[OutputDifference, ...]:
    """The outputs a factor changes, the most serious difference first."""
    found = [row for row in factor.outputs if row.detail is not None]
    return tuple(sorted(found, key=lambda row: rank(row.detail), reverse=True))  # type: ignore[arg-type]

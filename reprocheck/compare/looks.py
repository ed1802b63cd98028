"""When a test may be looked at, and what each look may spend.

Repeating until a test is convinced convinces it too often: with ten looks at 1 %, noise passes for an order effect in
nearly 10 % of studies. So the looks are fixed before any outcome is known, and they share one threshold: the
probability that one of them errs is at most the sum of what they may spend (the union bound), which is `ALPHA`. At
every look the test is exact, over as many trials of each order as the plan says, whatever else has run meanwhile;
ending before a planned look, because outcomes agree or because they vary too much, can only make errors rarer.
"""

from __future__ import annotations

from typing import NamedTuple

from reprocheck.compare.noise import repeats_needed

__all__ = ["ALPHA", "EARLY", "FULL", "Look", "planned_looks"]

ALPHA = 0.01
"""The probability with which a study may call the order a reason where it is none."""
EARLY = 0.3
"""Share of `ALPHA` that each of the two early looks of `--fail-fast` spends; what is left is the full plan's."""
FULL = 1 - 2 * EARLY

_FIRST = 0.8
"""Share of the first look. Stable outcomes are told apart there; the second is for those that vary."""


class Look(NamedTuple):
    """After so many trials of each order, the orders are told apart if p is below `alpha`."""

    repeats: int
    alpha: float


def planned_looks(orders: int, planned: int, most: int, alpha: float = ALPHA) -> tuple[Look, ...]:
    """The looks of a study with `planned` to `most` trials of each of `orders` orders; their alphas sum to `alpha`.

    The first comes as soon as it can tell any stable split of the orders in two, the second at the end. Where these
    are the same there is only one.
    """
    most = max(most, planned)
    if orders < 2:
        return (Look(most, alpha),)
    first = max(planned, repeats_needed(orders, _FIRST * alpha))
    if first >= most:
        return (Look(most, alpha),)
    return (Look(first, _FIRST * alpha), Look(most, (1 - _FIRST) * alpha))

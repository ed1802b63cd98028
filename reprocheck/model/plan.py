"""What was meant to run and what of it ran: coverage, orders left out, orders taken to be alike."""

from __future__ import annotations

from reprocheck.model.base import Struct

__all__ = ["Audit", "Coverage", "Covered", "NotRun", "Reduction", "Share"]


class Share(Struct, frozen=True, kw_only=True):
    """So many of so many."""

    covered: int
    total: int

    @property
    def complete(self) -> bool:
        """True when nothing is missing."""
        return self.covered == self.total


class Coverage(Struct, frozen=True, kw_only=True):
    """What a list of orders covers."""

    pairs: Share
    """Ordered pairs: `a` somewhere before `b`."""
    triples: Share
    """Ordered triples: `a` somewhere before `b` somewhere before `c`."""
    firsts: Share
    """Subjects that come first in some order."""
    adjacencies: Share
    """Ordered pairs with nothing in between: `a` directly before `b`."""


class Covered(Struct, frozen=True, kw_only=True):
    """What the plan promised, and what its trials came to."""

    stated: Coverage
    """If every planned order comes back, as it was asked for."""
    achieved: Coverage
    """By the trials that ran the workload or died on the way to it: orders as they really loaded, up to and with the
    subject whose import failed."""
    planned: int
    """Orders in the plan."""
    run: int
    """Of them, those that were tried; one that loads like another counts once."""
    cut_short: tuple[tuple[str, ...], ...] = ()
    """Orders none of whose trials got all subjects imported."""


class NotRun(Struct, frozen=True, kw_only=True):
    """What `--fail-fast` left out."""

    orders: tuple[tuple[str, ...], ...]
    """Planned orders without any trial."""
    trials: int
    """Trials of the plan that were saved, over all orders."""
    why: str
    """In one sentence."""


class Audit(Struct, frozen=True, kw_only=True):
    """An order that was run although another stood for it, to see that the two agree."""

    order: tuple[str, ...]
    stands_for_it: tuple[str, ...]
    agrees: bool


class Reduction(Struct, frozen=True, kw_only=True):
    """Orders whose imports left the same load trace, run as one (`--reduce trace`)."""

    probes: int
    """Import-only trials."""
    classes: int
    """Distinct load traces."""
    left_out: int
    """Orders whose workload was not run because another order stood for them."""
    saved: int
    """Trials of the workload that were saved."""
    audits: tuple[Audit, ...] = ()
    abandoned: str = ""
    """Why all orders were run after all, in one sentence; empty when the reduction stands."""

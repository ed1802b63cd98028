"""Which verdicts have something to explain."""

from __future__ import annotations

from reprocheck.model import Study

__all__ = ["EXPLAINED", "only_presence", "worth_explaining"]

EXPLAINED = ("order-dependent", "order-dependent-with-noise", "fails-in-some-orders")


def worth_explaining(study: Study) -> bool:
    """Whether orders, or identical runs, or the presence of a subject make a difference."""
    return study.verdict in (*EXPLAINED, "noisy") or only_presence(study)


def only_presence(study: Study) -> bool:
    """Whether all orders agree, and leaving subjects out does not."""
    return study.exit_code != 0 and study.verdict in ("identical", "within-tolerance")

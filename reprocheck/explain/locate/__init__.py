"""Where a divergence starts: the first line and the first operator that part, from traced trials of two orders."""

from __future__ import annotations

from reprocheck.explain.locate.deciding import TRACES, locate

__all__ = ["TRACES", "locate"]

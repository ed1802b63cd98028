"""What all records stand on: the closed base class, verdicts and tolerances."""

from __future__ import annotations

from typing import Literal

import msgspec

__all__ = ["PassesAt", "Struct", "Tolerance", "Verdict"]


Verdict = Literal[
    "fails-everywhere",
    "fails-in-some-orders",
    "order-dependent",
    "order-dependent-with-noise",
    "noisy",
    "within-tolerance",
    "identical",
    "inconclusive",
]


class Struct(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What all records have in common: frozen and closed.

    `frozen` and `kw_only` stand at every record all the same: `kw_only` is not inherited, and mypy asks for `frozen`.
    """


class Tolerance(Struct, frozen=True, kw_only=True):
    """How far two outputs may be apart and still agree. All zero means bit for bit."""

    rtol: float = 0.0
    atol: float = 0.0
    ulp: int = 0

    @property
    def exact(self) -> bool:
        """True when nothing but equal bits passes."""
        return self.rtol == 0 and self.atol == 0 and self.ulp == 0


class PassesAt(Struct, frozen=True, kw_only=True):
    """The smallest tolerances that would pass, each knob for itself; None for a knob that can't."""

    rtol: float | None = None
    atol: float | None = None
    ulp: int | None = None

"""One question, fully decided."""

from __future__ import annotations

from typing import Literal

from reprocheck.compare.looks import ALPHA
from reprocheck.model import Coverage, Struct, Target, Varied

__all__ = ["Order", "Request"]

Order = tuple[str, ...]


class Request(Struct, frozen=True, kw_only=True):
    """One question, fully decided: nothing is looked up after this."""

    target: Target
    subjects: Order
    subjects_from: str
    orders: tuple[Order, ...]
    plan: str
    """The plan in words, with its coverage."""
    stated: Coverage | None = None
    """What the plan covers if every order comes back."""
    repeat: int = 3
    max_repeat: int = 10
    fail_fast: bool = False
    """Begin with two orders, and end as soon as a divergence is established."""
    reduce: Literal["none", "trace"] = "none"
    presence: bool = False
    observer: bool = True
    outputs: tuple[str, ...] = ()
    dependencies: tuple[str, ...] = ()
    """What the workload's metadata says must be installed."""
    cwd: str = "."
    environment: dict[str, object] = {}
    command: tuple[str, ...] = ()
    version: str = ""
    notes: tuple[str, ...] = ()
    blame: bool = True
    """Find the code behind state that differs and that no event explains (a few import-only trials)."""
    varied: tuple[Varied, ...] = ()
    """Settings that are varied too, each over all of its values."""
    alpha: float = ALPHA
    """Below this, a p-value convinces. A share of it where several studies answer one question."""

    @property
    def planned(self) -> int:
        """Trials of each order to begin with: the observer arm takes one of them, and is not all there is."""
        return 2 if self.observer and self.repeat == 1 else self.repeat

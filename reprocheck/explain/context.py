"""What explaining and locating need besides the study."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from reprocheck.engine.runner import Runner
from reprocheck.model import Record, Tolerance

__all__ = ["Context"]


@dataclass(frozen=True)
class Context:
    """What explaining needs besides the study."""

    runner: Runner
    records: tuple[Record, ...]
    """All records of the run."""
    tolerance_for: Callable[[str], Tolerance]
    outputs: tuple[str, ...] = ()
    """Patterns of the outputs that count."""
    budget: int | None = None
    """Trials that may be run; `default_budget` when not given."""
    stored: bool = False
    """The records are from an earlier day: check first that the orders still give what they gave."""

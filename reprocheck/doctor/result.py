"""What `reprocheck doctor` finds, as one record. Its JSON is what `--format json` prints."""

from __future__ import annotations

from typing import Any

from reprocheck.engine.abilities import Ability
from reprocheck.model import Struct

__all__ = ["Changed", "Examination", "Split", "Varying"]


class Varying(Struct, frozen=True, kw_only=True):
    """Something that is not the same in identical trials."""

    what: str
    """`output` or `state`."""
    name: str
    values: tuple[str, ...]
    """The different values seen, or how the outputs differ, shortened."""
    why: str = ""
    """Why it matters, for a state key."""
    expected: bool = False
    """True for generators of random numbers, which start anew in every process, with or without reprocheck."""


class Changed(Struct, frozen=True, kw_only=True):
    """A variable or a state key that is another in the engine's trials than in a plainly started interpreter."""

    key: str
    plain: Any
    engine: Any
    intended: bool
    """True for what reprocheck does to every trial: pinned and dropped variables, its own session, closed stdin."""
    why: str


class Split(Struct, frozen=True, kw_only=True):
    """Where a trial's time goes: medians over the trials, in seconds."""

    total: float
    start: float
    """The interpreter's start and end, and the engine's own work around them."""
    imports: float
    snapshots: float
    workload: float
    save: float
    rest: float


class Examination(Struct, frozen=True, kw_only=True):
    """The whole examination."""

    schema: str = "reprocheck/doctor"
    schema_version: int = 1
    reprocheck_version: str
    engine: str
    python: str
    python_version: str
    subjects: tuple[str, ...]
    trials: int
    outputs: int
    """Outputs compared in each trial."""
    state_keys: int
    """State keys compared in each trial."""
    varying: tuple[Varying, ...]
    """What differed between identical trials; on a sound machine, nothing but what is expected."""
    changed: tuple[Changed, ...]
    abilities: tuple[Ability, ...]
    time: Split
    notes: tuple[str, ...] = ()

    @property
    def healthy(self) -> bool:
        """True when identical trials were identical."""
        return not self.unsound

    @property
    def unsound(self) -> tuple[Varying, ...]:
        """What must not vary, and does."""
        return tuple(item for item in self.varying if not item.expected)

    @property
    def disturbed(self) -> tuple[Changed, ...]:
        """What the engine changed beyond what is meant to be changed."""
        return tuple(item for item in self.changed if not item.intended)

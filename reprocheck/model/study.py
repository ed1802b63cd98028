"""The study: all trials of one question and its verdict. Its JSON is the published document."""

from __future__ import annotations

from typing import Any

from reprocheck.model.base import Struct, Tolerance, Verdict
from reprocheck.model.explanation import (
    Cause,
    Consequence,
    FirstLine,
    KernelDifference,
    OperatorOrigin,
    Remedy,
    Reproducer,
    Rule,
    Spent,
    Traced,
    Unaligned,
)
from reprocheck.model.factors import Factors, Setting
from reprocheck.model.outcome import Arm, Group, Noise, OutputDifference, StateDifference, Suite
from reprocheck.model.plan import Covered, NotRun, Reduction
from reprocheck.model.trial import Machine, NotCompared, Target

__all__ = ["Study"]


class Study(Struct, frozen=True, kw_only=True):
    """All trials of one question, and its verdict. Its JSON is the published document."""

    schema: str = "reprocheck/study"
    schema_version: int = 1
    reprocheck_version: str
    verdict: Verdict
    exit_code: int
    headline: str
    """One line that makes sense alone."""
    reason: str
    """Why this verdict, in one sentence."""
    workload: str
    target: Target
    subjects: tuple[str, ...]
    subjects_from: str
    orders: tuple[Arm, ...]
    plan: str
    isolation: str = "fresh"
    """`shared-prefix` when trials were to be forked from processes that share imports; see `Arm.forked`."""
    coverage: Covered | None = None
    """What the plan promised and what its trials came to; None in documents of before this was told."""
    not_run: NotRun | None = None
    reduction: Reduction | None = None
    groups: tuple[Group, ...]
    outputs: tuple[OutputDifference, ...]
    selected: tuple[str, ...] = ()
    """Patterns of the outputs that were compared; empty: all."""
    tolerance: dict[str, Tolerance] = {}
    """Output pattern -> how far it may be apart."""
    state_differences: tuple[StateDifference, ...] = ()
    hazards: tuple[StateDifference, ...] = ()
    first_line: FirstLine | None = None
    origin: OperatorOrigin | None = None
    inherited: int = 0
    """Operators after the origin that were given different inputs and gave different outputs."""
    unaligned: tuple[Unaligned, ...] = ()
    kernels: tuple[KernelDifference, ...] = ()
    traced: Traced | None = None
    rule: Rule | None = None
    causes: tuple[Cause, ...] = ()
    consequences: tuple[Consequence, ...] = ()
    remedy: Remedy | None = None
    reproducer: Reproducer | None = None
    budget: Spent | None = None
    not_compared: tuple[NotCompared, ...] = ()
    suite: Suite | None = None
    """Test by test, when the workload is a test suite."""
    factors: Factors | None = None
    """What was varied besides the order. Everything else here is of one of its levels, the one that is told."""
    noise: Noise
    notes: tuple[str, ...] = ()
    environment: dict[str, Any] = {}
    """Interpreter, machine, pinned and dropped variables."""
    machines: tuple[Machine, ...] = ()
    """Where the trials that were judged ran."""
    command: tuple[str, ...] = ()
    """The command that repeats it."""
    seconds: float = 0.0
    started: str = ""
    run_dir: str = ""

    @property
    def level(self) -> Setting:
        """The variables of the level this study tells of; none where nothing but the order was varied."""
        return {} if self.factors is None else self.factors.levels[self.factors.told].setting

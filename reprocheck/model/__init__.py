"""Frozen records shared by every room of the house.

All of them are `msgspec.Struct`s: immutable, typed, and with one JSON form (`msgspec.json`), which is what the store
writes and the reports publish. Words are those of the README's glossary.
"""

from __future__ import annotations

from reprocheck.model.base import PassesAt, Struct, Tolerance, Verdict
from reprocheck.model.explanation import (
    Cause,
    Consequence,
    FirstLine,
    KernelDifference,
    OperatorOrigin,
    OperatorOutput,
    Origin,
    Remedy,
    Reproducer,
    Rule,
    Spent,
    Traced,
    Unaligned,
)
from reprocheck.model.factors import Factor, Factors, Level, Setting, Varied
from reprocheck.model.outcome import (
    Arm,
    Change,
    Difference,
    DifferingTest,
    Group,
    Noise,
    OutputDifference,
    StateDifference,
    Suite,
)
from reprocheck.model.plan import Audit, Coverage, Covered, NotRun, Reduction, Share
from reprocheck.model.study import Study
from reprocheck.model.trial import (
    Event,
    Failure,
    Machine,
    NotCompared,
    Output,
    Record,
    Snapshot,
    Stream,
    Target,
    Trial,
)

__all__ = [
    "Arm",
    "Audit",
    "Cause",
    "Change",
    "Consequence",
    "Coverage",
    "Covered",
    "Difference",
    "DifferingTest",
    "Event",
    "Factor",
    "Factors",
    "Failure",
    "FirstLine",
    "Group",
    "KernelDifference",
    "Level",
    "Machine",
    "Noise",
    "NotCompared",
    "NotRun",
    "OperatorOrigin",
    "OperatorOutput",
    "Origin",
    "Output",
    "OutputDifference",
    "PassesAt",
    "Record",
    "Reduction",
    "Remedy",
    "Reproducer",
    "Rule",
    "Setting",
    "Share",
    "Snapshot",
    "Spent",
    "StateDifference",
    "Stream",
    "Struct",
    "Study",
    "Suite",
    "Target",
    "Tolerance",
    "Traced",
    "Trial",
    "Unaligned",
    "Varied",
    "Verdict",
]

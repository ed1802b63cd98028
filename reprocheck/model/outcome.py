"""What the trials say together: differences, groups, arms, state, noise."""

from __future__ import annotations

from typing import Any, Literal

from reprocheck.model.base import PassesAt, Struct, Verdict
from reprocheck.model.trial import Event, Failure

__all__ = [
    "Arm",
    "Change",
    "Difference",
    "DifferingTest",
    "Group",
    "Noise",
    "OutputDifference",
    "StateDifference",
    "Suite",
]


class Difference(Struct, frozen=True, kw_only=True):
    """How two arrays of one output differ. Counts are over all elements; NaN, inf and zero signs apart.

    All numbers are finite, since JSON knows no others: a difference that overflows is the largest double.
    """

    kind: Literal["equal", "values", "shape", "dtype", "missing"]
    dtype: str
    shape: tuple[int, ...]
    other_dtype: str
    other_shape: tuple[int, ...]
    size: int = 0
    """Elements compared."""
    differing: int = 0
    """Elements whose bits differ."""
    max_ulp: int | None = None
    """Largest distance in units in the last place, over elements finite on both sides; None for non-floats."""
    ulp_histogram: dict[str, int] = {}
    """Bucket (`1`, `2`, `3-4`, `5-8`, …, powers of two) -> elements."""
    max_abs: float | None = None
    max_rel: float | None = None
    """Largest |a-b|/|b| over elements finite on both sides with b != 0 (b: the reference)."""
    mean_abs: float | None = None
    """Mean of |a-b| over the differing finite elements."""
    first_index: tuple[int, ...] | None = None
    """First differing element in C order."""
    first_values: tuple[str, str] | None = None
    """Decimal, shortest round-trip."""
    first_hex: tuple[str, str] | None = None
    worst_index: tuple[int, ...] | None = None
    """Element with the largest ULP distance (largest absolute difference for non-floats)."""
    worst_values: tuple[str, str] | None = None
    nan_changed: int = 0
    """Elements NaN on exactly one side."""
    nan_payload: int = 0
    """Elements NaN on both sides with different bits."""
    inf_changed: int = 0
    """Elements infinite on exactly one side, or with the other sign."""
    signed_zero: int = 0
    """Elements that differ only in the sign of zero."""
    passes_at: PassesAt | None = None
    """None if no tolerance would pass (NaN, infinity, shape, dtype)."""
    within: bool = False
    """True when the tolerance asked for accepts it."""


class Arm(Struct, frozen=True, kw_only=True):
    """All trials that differ only in their repeat number, with the group each landed in."""

    order: tuple[str, ...]
    effective_order: tuple[str, ...]
    same_as: tuple[str, ...] | None = None
    """The order this one turned out to equal (same effective order); its trials count there."""
    group: str | None = None
    """Its group when all its trials landed in one, else None."""
    groups: tuple[str, ...] = ()
    """Group id of each trial, in order of repeat."""
    trials: int = 0
    forked: int = 0
    """How many of its trials were forked from a process that shares imports: the verdict does not stand on these."""
    failures: int = 0
    presence: bool = False
    preloaded: tuple[str, ...] = ()
    pulled_in: dict[str, str] = {}


class Group(Struct, frozen=True, kw_only=True):
    """Trials with bit-equal outputs, or with the same failure."""

    id: str
    orders: tuple[tuple[str, ...], ...]
    """Orders with at least one trial in it, the reference order first."""
    trials: int
    outcome: str
    """`ok`, or the failure in one sentence."""
    failure: Failure | None = None
    within_tolerance: bool = True
    """True when every output agrees with the reference group's under the tolerances asked for."""


class OutputDifference(Struct, frozen=True, kw_only=True):
    """One output over the whole study: whether, and how, it differs between the groups."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    differs: bool
    groups: tuple[str, ...] = ()
    """The two groups compared: the reference, and the one farthest from it."""
    kind: str = "equal"
    size: int = 0
    differing: int = 0
    max_ulp: int | None = None
    max_abs: float | None = None
    max_rel: float | None = None
    first_index: tuple[int, ...] | None = None
    passes_at: PassesAt | None = None
    within: bool = True
    detail: Difference | None = None


class Change(Struct, frozen=True, kw_only=True):
    """How a state key came to its value in one group: when, and by whom as far as it was seen."""

    group: str
    order: tuple[str, ...]
    value: Any
    phase: str
    """First phase at which the key had this value."""
    event: Event | None = None


class StateDifference(Struct, frozen=True, kw_only=True):
    """A captured key that is constant inside each group and differs between two."""

    key: str
    """`kind.key`, e.g. `environ.now.OMP_NUM_THREADS`."""
    phase: str
    """The phase of the comparison: `t2`, or an earlier one when the end states are alike."""
    severity: str
    why: str
    """Why this key matters, in one sentence."""
    changes: tuple[Change, ...]


class DifferingTest(Struct, frozen=True, kw_only=True):
    """One test of a suite whose outcome, failure text or recorded values are not the same in all trials."""

    test: str
    """Node id."""
    verdict: Verdict
    reason: str
    p_value: float | None = None
    orders: dict[str, dict[str, int]] = {}
    """Order -> outcome (`passed`, `failed`, …) -> in how many of its trials."""
    failure: str = ""
    """What pytest says about one failure or skip, where there was one."""
    outputs: tuple[str, ...] = ()
    """Recorded values that differ."""


class Suite(Struct, frozen=True, kw_only=True):
    """A test suite's trials, told test by test."""

    tests: int
    differing: tuple[DifferingTest, ...] = ()
    failing: tuple[str, ...] = ()
    """Tests that fail alike in every order."""


class Noise(Struct, frozen=True, kw_only=True):
    """What the repeats say about chance."""

    p_value: float | None
    """Exact permutation test that the outcome depends on the order; None when nothing differed."""
    alpha: float | None = None
    """What p was held against at the last look; looks share one threshold, so that several may be taken."""
    tested: int | None = None
    """Trials the test counts, where these are not all of them: fresh ones of two orders, picked because they differ."""
    method: str = "exact"
    repeats: int
    """Trials per order (the smallest)."""
    trials: int
    bound: float | None = None
    """With no difference seen: the rate of differing runs is below this at 95 % confidence."""
    stable: bool = True
    """True when every order gave one outcome in all its repeats."""
    observer: str = "not run"
    """`agrees`, `differs`, `unclear` or `not run`: the arm without capture against the arm with it."""

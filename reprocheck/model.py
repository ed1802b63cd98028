"""Frozen records shared by every room of the house.

All of them are `msgspec.Struct`s: immutable, typed, and with one JSON form (`msgspec.json`), which is
what the store writes and the reports publish. Words are those of the README's glossary.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

__all__ = [
    "Arm",
    "Cause",
    "Change",
    "Consequence",
    "Difference",
    "Event",
    "Failure",
    "FirstLine",
    "Group",
    "KernelDifference",
    "Noise",
    "NotCompared",
    "OperatorOrigin",
    "OperatorOutput",
    "Origin",
    "Output",
    "OutputDifference",
    "PassesAt",
    "Record",
    "Remedy",
    "Reproducer",
    "Rule",
    "Snapshot",
    "Spent",
    "StateDifference",
    "Stream",
    "Study",
    "Suite",
    "Target",
    "DifferingTest",
    "Tolerance",
    "Traced",
    "Trial",
    "Unaligned",
    "Verdict",
]

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


class Target(Struct, frozen=True, kw_only=True):
    """The workload: where it is and how the worker gets at it."""

    text: str
    """As the user wrote it, e.g. `train.py::step`."""
    kind: Literal["function", "module", "nothing", "pytest", "script"]
    path: str | None = None
    """Absolute path of the file (kinds `function` and `script`, and `pytest` with a `name`)."""
    module: str | None = None
    """Dotted name (kind `module`, i.e. `pkg.mod:name`)."""
    name: str | None = None
    """Function to call (kinds `function` and `module`); the only test to run, as `Class::test[id]` (kind `pytest`)."""
    args: tuple[str, ...] = ()
    """What pytest is told (kind `pytest`)."""

    @property
    def suite(self) -> bool:
        """True for many tests at once: their outcomes are compared one by one."""
        return self.kind == "pytest" and self.name is None


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


class Output(Struct, frozen=True, kw_only=True):
    """One named value a workload produced, as stored."""

    name: str
    dtype: str
    """Logical dtype in numpy's spelling (`float32`, `bfloat16`, `complex64`, `float8_e4m3fn`, `str`, …)."""
    shape: tuple[int, ...]
    nbytes: int
    digest: str
    """`sha256:<hex>` of the stored object (header and bytes), so equal digests mean equal dtype, shape and bits."""
    python: str = ""
    """Type that held it, e.g. `torch.Tensor[cuda:0]`, `numpy.ndarray`, `float`."""


class NotCompared(Struct, frozen=True, kw_only=True):
    """Something the workload left that reprocheck did not compare, and why."""

    name: str
    reason: str


class Snapshot(Struct, frozen=True, kw_only=True):
    """The captured state at one phase: kind -> key -> value."""

    phase: str
    """`t0`, `t1:<module>`, `t2` or `t3`."""
    at: float
    """Seconds since the worker's first statement."""
    ms: float
    """What reading it cost."""
    kinds: dict[str, dict[str, Any]]


class Event(Struct, frozen=True, kw_only=True):
    """One import, dlopen, environment write or setter call, with the code that did it."""

    kind: str
    at: float
    phase: str
    name: str
    value: str | None = None
    file: str | None = None
    line: int | None = None
    module: str | None = None
    """Module whose body was executing."""


class Failure(Struct, frozen=True, kw_only=True):
    """Why a trial did not finish."""

    kind: Literal["exception", "exit", "nothing", "signal", "target", "timeout", "unsupported"]
    phase: str
    """What was going on, in words: `importing torch (2nd of 2)`, `running the workload`, …"""
    signature: str
    """Equal signatures make one group: kind, type and message without addresses, at this phase."""
    message: str
    """One sentence for a person."""
    subject: str | None = None
    """The subject being imported, if one was."""
    exception: str | None = None
    missing_module: str | None = None
    traceback: str | None = None
    after_s: float | None = None


class Stream(Struct, frozen=True, kw_only=True):
    """What a trial printed: the first and last part, and how much there was."""

    text: str
    nbytes: int
    truncated: bool = False


class Trial(Struct, frozen=True, kw_only=True):
    """One run of the workload in one fresh interpreter."""

    order: tuple[str, ...]
    repeat: int
    capture: bool = True
    """False in the observer arm: no snapshots, no audit hook."""
    presence: bool = False
    """True when only some of the subjects are imported, to see whether merely importing one matters."""
    env: dict[str, str | None] = {}
    """Environment changes of this trial (None removes)."""
    actions: tuple[dict[str, Any], ...] = ()
    """Interventions the worker carries out (see `explain`)."""
    trace: dict[str, Any] | None = None
    """Trace request, for the passes that locate (never part of a verdict)."""
    blame: dict[str, Any] | None = None
    """`{"keys": […], "modules": […]}`: find who changes these state keys during the imports; no workload is run."""


class Record(Struct, frozen=True, kw_only=True):
    """What a trial leaves."""

    trial: Trial
    effective_order: tuple[str, ...]
    """Subjects in the order in which their import really began."""
    preloaded: tuple[str, ...] = ()
    """Subjects that were loaded before the worker's first import (a `.pth` file, `sitecustomize`)."""
    pulled_in: dict[str, str] = {}
    """Subject -> the earlier subject that imported it before its turn."""
    ok: bool
    failure: Failure | None = None
    outputs: tuple[Output, ...] = ()
    not_compared: tuple[NotCompared, ...] = ()
    snapshots: tuple[Snapshot, ...] = ()
    events: tuple[Event, ...] = ()
    actions: tuple[dict[str, Any], ...] = ()
    """What each intervention reported back."""
    exit_status: int = 0
    """As from `wait`: negative for a signal."""
    seconds: float = 0.0
    timeline: dict[str, float] = {}
    """Phase -> seconds since start at which it ended."""
    python: dict[str, str] = {}
    stdout: Stream = Stream(text="", nbytes=0)
    stderr: Stream = Stream(text="", nbytes=0)
    trace: str | None = None
    """Digest of the stored trace, if one was asked for."""


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


class Rule(Struct, frozen=True, kw_only=True):
    """Which order gives which group, in one sentence, and how far that is checked."""

    sentence: str
    kind: Literal["order", "presence", "list"]
    """`list` when no simple rule fits: the smallest decision list found."""
    pair: tuple[str, str] | None = None
    """The two subjects whose adjacent swap alone flips the outcome."""
    swap: tuple[tuple[str, ...], tuple[str, ...]] | None = None
    """The two orders that differ by this swap."""
    context: tuple[str, ...] = ()
    """Other subjects without which the swap changes nothing."""
    explained: int
    total: int
    """Orders whose group is known; `held_back` of them were run to check the rule, not to find it."""
    held_back: int = 0


class Origin(Struct, frozen=True, kw_only=True, rename={"by": "import"}):
    """The code that brought a state about: during which import, in which file and line."""

    by: str | None = None
    file: str | None = None
    line: int | None = None


class Cause(Struct, frozen=True, kw_only=True):
    """A setting, library copy, patch, … whose change flips the outcome."""

    key: str
    kind: str
    """`environment`, `library copy`, `floating point`, …; `unknown` when no captured state explains the outcome."""
    status: Literal["confirmed", "correlated", "unknown"]
    """`confirmed`: the good value in the bad order gives the good bits, and the bad one in the good order the bad bits."""
    text: str
    """What it is and what was shown, in one sentence."""
    good: Any = None
    bad: Any = None
    groups: tuple[str, str] = ("", "")
    orders: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    """The good and the bad order it was shown on."""
    event: Origin | None = None
    needs: tuple[str, ...] = ()
    """Keys of the other causes without which this one changes nothing."""
    tried: tuple[str, ...] = ()
    """Interventions that were made, with what each gave."""
    trials: int = 0


class Consequence(Struct, frozen=True, kw_only=True):
    """A state difference that follows from a cause: with the cause alone changed, it changed too."""

    key: str
    cause: str
    good: Any = None
    bad: Any = None


class Remedy(Struct, frozen=True, kw_only=True):
    """A change under which all orders agree; run over all of them before it is named."""

    text: str
    agrees: bool
    """False when nothing that was tried helped; then `failed` says what."""
    kind: str = ""
    group: str | None = None
    """The group all orders land in, None for a new one."""
    orders: int = 0
    tried_trials: int = 0
    snippets: dict[str, str] = {}
    """`shell`, `conftest.py`, `Dockerfile`, … -> lines to paste."""
    failed: tuple[str, ...] = ()


class Reproducer(Struct, frozen=True, kw_only=True):
    """A plain script without reprocheck that shows the difference."""

    path: str
    reproduces: bool
    text: str


class Spent(Struct, frozen=True, kw_only=True):
    """Trials that explaining cost, out of what it was allowed."""

    trials: int
    limit: int
    complete: bool = True
    """False when the budget ended before the search did."""


class FirstLine(Struct, frozen=True, kw_only=True):
    """The first executed line of the workload after which a variable holds different bits in the two orders."""

    kind: Literal["set", "changed", "met", "path"]
    """`set` or `changed` in place by the line; `met` by it, different already; `path`: other lines ran from here on."""
    text: str
    """In one sentence."""
    file: str
    line: int
    function: str = ""
    source: str = ""
    variable: str = ""
    iteration: int | None = None
    loop_line: int | None = None
    """The innermost loop around it, and its iteration."""
    call: int = 1
    """Which call of the function."""
    dtype: str = ""
    shape: tuple[int, ...] = ()
    difference: Difference | None = None
    """How the variable differs, from trials of its own."""


class OperatorOutput(Struct, frozen=True, kw_only=True):
    """The array in which two runs of an operator differ."""

    name: str
    """`output 0`, or `input 1` where what it was given differs."""
    dtype: str
    shape: tuple[int, ...]
    difference: Difference | None = None


class OperatorOrigin(Struct, frozen=True, kw_only=True):
    """The earliest operator at which the two orders part."""

    kind: Literal["operator", "replaced", "random", "initialisation", "data", "input"]
    """`operator`: equal inputs, unequal outputs. `replaced`: the orders ran other operators here. `random`: its
    generator's state differed before it drew; `initialisation`: while a module was set up. `data`: it made an array from
    nothing the trace sees. `input`: what it was given differed, and nothing that was traced had made it."""
    text: str
    """In one sentence."""
    operator: str
    other_operator: str | None = None
    """What ran instead in the second order (kind `replaced`)."""
    index: int
    """Its number in the first order's trace."""
    module: str | None = None
    phase: str = "forward"
    """`forward`, `backward`, `optimiser` or `initialisation`."""
    file: str | None = None
    line: int | None = None
    source: str = ""
    forward_line: int | None = None
    """Of a backward operator: the line whose gradient it computes."""
    through: str | None = None
    """The line of a toolbox that the call went through."""
    inputs_equal: bool
    inputs: tuple[str, ...] = ()
    """Their dtypes and shapes."""
    arguments: str = ""
    output: OperatorOutput | None = None
    repeated: int = 0
    """Later operators that also had equal inputs and unequal outputs: they part there by themselves."""


class Unaligned(Struct, frozen=True, kw_only=True):
    """Operators that ran in one order only, or in another place or form."""

    kind: Literal["inserted", "missing", "replaced", "reordered"]
    """As seen from the first order."""
    operator: str
    other: str | None = None
    file: str | None = None
    line: int | None = None
    module: str | None = None
    count: int = 1
    text: str = ""


class KernelDifference(Struct, frozen=True, kw_only=True):
    """An operator for which the two orders ran other kernels, or the same ones of another library."""

    operator: str
    index: int
    module: str | None = None
    file: str | None = None
    line: int | None = None
    kernels: tuple[tuple[str, ...], tuple[str, ...]]
    """What each order ran: library, version, routine or implementation, problem."""
    text: str = ""


class Traced(Struct, frozen=True, kw_only=True):
    """The passes that locate: on which orders, how much they saw, and whether looking changed what was looked at."""

    orders: tuple[tuple[str, ...], tuple[str, ...]]
    modes: tuple[str, ...]
    observer: Literal["agrees", "moved", "vanished", "failed"]
    """Final outputs of traced runs against untraced ones: equal; other, but still apart; no longer apart; no outputs."""
    operators: int = 0
    lines: int = 0
    trials: int = 0
    noisy: int = 0
    """Operators whose values differ between two traced runs of one order; they are no evidence."""
    notes: tuple[str, ...] = ()


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
    noise: Noise
    notes: tuple[str, ...] = ()
    environment: dict[str, Any] = {}
    """Interpreter, machine, pinned and dropped variables."""
    command: tuple[str, ...] = ()
    """The command that repeats it."""
    seconds: float = 0.0
    started: str = ""
    run_dir: str = ""

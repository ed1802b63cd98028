"""What is run and what it leaves: targets, trials, outputs, snapshots, events, failures, records."""

from __future__ import annotations

from typing import Any, Literal

from reprocheck.model.base import Struct

__all__ = ["Event", "Failure", "Machine", "NotCompared", "Output", "Record", "Snapshot", "Stream", "Target", "Trial"]


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
    """The stack; for kind `exit` the last lines of stderr, where programs say why they leave."""
    after_s: float | None = None


class Stream(Struct, frozen=True, kw_only=True):
    """What a trial printed: the first and last part, and how much there was."""

    text: str
    nbytes: int
    truncated: bool = False


class Trial(Struct, frozen=True, kw_only=True):
    """One run of the workload, in a fresh interpreter unless it is `forked`."""

    order: tuple[str, ...]
    repeat: int
    capture: bool = True
    """False in the observer arm: no snapshots, no audit hook."""
    presence: bool = False
    """True when only some of the subjects are imported, to see whether merely importing one matters."""
    level: dict[str, str | None] = {}
    """The level of the varied settings (None: not set): an arm of its own, never noise of another."""
    env: dict[str, str | None] = {}
    """Environment changes of this trial (None removes)."""
    actions: tuple[dict[str, Any], ...] = ()
    """Interventions the worker carries out (see `explain`)."""
    trace: dict[str, Any] | None = None
    """Trace request, for the passes that locate (never part of a verdict)."""
    blame: dict[str, Any] | None = None
    """`{"keys": […], "modules": […]}`: find who changes these state keys during the imports; no workload is run."""
    forked: bool = False
    """True for a trial that may be forked from a process which imported what its order shares with others. Such trials
    say which orders to look at; no verdict stands on them."""
    imports_only: bool = False
    """True for a probe: the subjects are imported and their load trace captured; no workload is run."""

    @property
    def variables(self) -> dict[str, str | None]:
        """All environment changes: those of its level, then its own."""
        return {**self.level, **self.env}

    @property
    def whole(self) -> bool:
        """True when the whole workload is run as it is: with all subjects or only some, forked or fresh."""
        return not self.env and not self.actions and self.trace is None and self.blame is None and not self.imports_only

    @property
    def judged(self) -> bool:
        """True for a trial that a verdict may stand on: the whole workload, with all subjects, started afresh."""
        return self.whole and not self.presence and not self.forked


class Machine(Struct, frozen=True, kw_only=True):
    """Where a trial ran, as far as a result can depend on it; empty strings are facts that could not be read."""

    host: str
    cpu: str
    """The CPU's model name."""
    features: str
    """Digest of the instruction sets the CPU offers: libraries choose their kernels by them."""
    cores: int
    """CPUs the trial may use: thread pools are sized by them."""
    kernel: str
    libc: str
    python: str
    """The trial's interpreter: implementation and version."""
    gpus: tuple[str, ...] = ()
    """UUIDs (or numbers) of the devices a trial can see."""
    gpu_models: tuple[str, ...] = ()
    """Models of all devices of the machine, each named once."""
    driver: str = ""
    """Version of the NVIDIA driver."""


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
    machine: Machine | None = None
    stdout: Stream = Stream(text="", nbytes=0)
    stderr: Stream = Stream(text="", nbytes=0)
    trace: str | None = None
    """Digest of the stored trace, if one was asked for."""
    isolation: Literal["fresh", "forked"] = "fresh"
    """Whether it had an interpreter of its own from the start, or was forked after a part of its imports."""
    not_forked: str | None = None
    """Why a trial that was to be forked got a fresh interpreter."""

"""Where it starts, why, and what helps: rule, causes, remedy, reproducer, first line and operator."""

from __future__ import annotations

from typing import Any, Literal

from reprocheck.model.base import Struct
from reprocheck.model.outcome import Difference

__all__ = [
    "Cause",
    "Consequence",
    "FirstLine",
    "KernelDifference",
    "OperatorOrigin",
    "OperatorOutput",
    "Origin",
    "Remedy",
    "Reproducer",
    "Rule",
    "Spent",
    "Traced",
    "Unaligned",
]


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
    """`confirmed`: the good value in the bad order gives the good bits, and the other way round."""
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
    untried: tuple[str, ...] = ()
    """What may help as well and was not tried, with the command that tries it."""


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
    generator's state differed before it drew; `initialisation`: while a module was set up. `data`: it made an array
    from nothing the trace sees. `input`: what it was given differed, and nothing that was traced had made it."""
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
    """Final outputs of traced runs against untraced ones: equal; other but still apart; not apart any more; none."""
    operators: int = 0
    lines: int = 0
    trials: int = 0
    noisy: int = 0
    """Operators whose values differ between two traced runs of one order; they are no evidence."""
    notes: tuple[str, ...] = ()

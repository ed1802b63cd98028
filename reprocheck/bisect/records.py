"""Frozen records of a bisection: what is asked, what a version is, what was seen of it, and the report."""

from __future__ import annotations

from typing import Any, Literal

from reprocheck.model import StateDifference, Struct

__all__ = [
    "AlsoChanged",
    "Blame",
    "Candidate",
    "Cell",
    "Culprits",
    "Factorial",
    "FileChange",
    "Place",
    "Posterior",
    "Report",
    "Seen",
    "Transition",
    "Unavailable",
    "Untestable",
    "VersionRow",
]

UnavailableKind = Literal[
    "no-such-version", "python", "platform", "dependency", "yanked", "build", "other-version", "skipped", "other"
]
Outcome = Literal["found", "same-ends", "end-untestable", "ends-too-noisy", "not-settled"]


class Candidate(Struct, frozen=True, kw_only=True):
    """One point of the history: a version, or a commit."""

    name: str
    """What people call it: `1.7.0`, or an abbreviated commit."""
    requirement: str = ""
    """What an installer is asked for, e.g. `toolbox==1.7.0`."""
    commit: str = ""
    """Full object name (git)."""
    title: str = ""
    """Subject line of the commit, or what else says in a line what this is."""
    wheels: tuple[str, ...] = ()
    """Files in wheel folders that hold this version."""
    content: str = ""
    """Digest of what it installs, where that is known without installing; equal contents share a result."""


class Unavailable(Struct, frozen=True, kw_only=True):
    """Why a version can't be had here."""

    kind: UnavailableKind
    reason: str
    """One line for a person."""


class Place(Struct, frozen=True, kw_only=True):
    """An environment in which one version is installed."""

    python: str
    """Absolute path of its interpreter."""
    folder: str
    """Root of the environment; paths below it read the same for all versions when it is left out."""
    content: str
    """Digest of what is installed; versions with equal contents give equal results."""
    installed: dict[str, str]
    """Distribution -> version, of what was installed for this version."""
    inherited: dict[str, str] = {}
    """Distribution -> version, of what comes from the interpreter the environment was made from."""
    files: dict[str, str] = {}
    """File of the package itself, relative to where packages lie -> its hash."""
    root: str = ""
    """The folder in which those files lie."""
    modules: tuple[str, ...] = ()
    """Top-level modules of the package."""
    env: dict[str, str] = {}
    """Variables its processes need (git: where the checkout is)."""
    notes: tuple[str, ...] = ()


class Seen(Struct, frozen=True, kw_only=True):
    """What one run of a version showed."""

    bad: bool | None
    """Whether the condition holds; None when that can't be said."""
    reason: str
    """What was seen, or why nothing can be said, in one line."""
    group: str = ""
    """Equal for runs with equal outcomes."""
    seconds: float = 0.0
    run_dir: str = ""


class VersionRow(Struct, frozen=True, kw_only=True):
    """One version in the report."""

    name: str
    title: str = ""
    bad: bool | None
    """Whether the condition holds; None when it can't be judged or its runs disagree."""
    runs: int
    bad_runs: int
    seen: str
    """What was seen, or why it can't be judged."""
    group: str = ""
    """Letter of its outcome; equal letters are equal outcomes."""
    same_as: str | None = None
    """The version with equal content whose result this is."""
    seconds: float = 0.0
    run_dir: str = ""


class Transition(Struct, frozen=True, kw_only=True):
    """Two neighbouring versions that differ in the condition, and the untestable ones between them."""

    before: str
    after: str
    before_bad: bool
    after_bad: bool
    between: tuple[str, ...] = ()


class Untestable(Struct, frozen=True, kw_only=True):
    """Versions that can't be judged, for one reason."""

    reason: str
    versions: tuple[str, ...]
    kind: str = "run"
    """`run` when its run said nothing, else why it could not be installed (as in `Unavailable`)."""


class Posterior(Struct, frozen=True, kw_only=True):
    """How sure the boundary is, when single runs can't be trusted."""

    probability: float
    """That the change lies exactly at the boundary named."""
    first: str
    last: str
    """First and last version of the range that holds the first bad one with 90 %."""
    good_rate: float
    bad_rate: float
    """Share of runs that show the condition before and after the boundary."""
    runs: int
    flaky: bool
    """True when versions were seen with and without the condition."""


class Cell(Struct, frozen=True, kw_only=True):
    """One version under one order."""

    version: str
    order: tuple[str, ...] | None
    """None: nothing forced, the workload's own imports."""
    effective_order: tuple[str, ...]
    groups: tuple[str, ...]
    """Letter of each run's outcome."""
    outcome: str = "ok"


class Factorial(Struct, frozen=True, kw_only=True):
    """Order against version at the boundary."""

    verdict: Literal["order", "order-sensitive", "imports", "interaction", "not-order", "no-difference", "unclear"]
    sentence: str
    old_order: tuple[str, ...]
    """Order in which the older version itself imports the watched modules."""
    new_order: tuple[str, ...]
    cells: tuple[Cell, ...]


class FileChange(Struct, frozen=True, kw_only=True):
    """A file of the package that differs across the boundary."""

    path: str
    kind: Literal["added", "removed", "changed"]
    blamed: tuple[int, ...] = ()
    """Lines in it (of the bad version) that set state which differs."""
    lines: tuple[str, ...] = ()
    """The change around a blamed line, as a unified diff."""


class AlsoChanged(Struct, frozen=True, kw_only=True):
    """Another distribution that differs between the two environments at the boundary."""

    name: str
    before: str
    after: str


class Blame(Struct, frozen=True, kw_only=True):
    """What differs between the two versions at the boundary, besides the outcome."""

    files: tuple[FileChange, ...] = ()
    file_count: int = 0
    also_changed: tuple[AlsoChanged, ...] = ()
    state: tuple[StateDifference, ...] = ()


class Culprits(Struct, frozen=True, kw_only=True):
    """Smallest sets of changed packages that flip the outcome."""

    sets: tuple[tuple[AlsoChanged, ...], ...]
    minimal: bool
    """True when every smaller set was tried and does not flip it."""
    changed: int
    unresolved: int = 0
    """Mixtures that could not be installed or judged."""


class Report(Struct, frozen=True, kw_only=True):
    """The answer. Its JSON is the published document."""

    schema: str = "reprocheck/bisect"
    schema_version: int = 1
    reprocheck_version: str
    outcome: Outcome
    exit_code: int
    headline: str
    reason: str
    kind: Literal["versions", "locks", "git"]
    workload: str
    package: str = ""
    condition: str
    find_fix: bool = False
    first_bad: str | None = None
    """First version with the condition, after the boundary (before it with find_fix: the last one)."""
    last_good: str | None = None
    transitions: tuple[Transition, ...] = ()
    versions: tuple[VersionRow, ...] = ()
    versions_total: int = 0
    versions_run: int = 0
    runs: int = 0
    untestable: tuple[Untestable, ...] = ()
    factorial: Factorial | None = None
    posterior: Posterior | None = None
    blame: Blame | None = None
    culprits: Culprits | None = None
    explanation: tuple[tuple[str, str], ...] = ()
    """Why the first bad version does it, as `reprocheck explain` says: (what, text)."""
    plan: str = ""
    notes: tuple[str, ...] = ()
    environment: dict[str, Any] = {}
    command: tuple[str, ...] = ()
    next_command: tuple[str, ...] = ()
    """What to run next, if something follows."""
    seconds: float = 0.0
    """Time it took; for one that was gone on with, at least that of all its runs."""
    started: str = ""
    folder: str = ""

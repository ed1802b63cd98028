"""A stored trace as records: what the worker's `trace` package wrote, decoded and checked."""

from __future__ import annotations

from pathlib import Path

import msgspec

from reprocheck.errors import StoreError
from reprocheck.model import Struct

__all__ = ["KEPT", "Fact", "KernelLines", "LineStep", "Operator", "Place", "Trace", "read_trace"]

KEPT = "@trace/"
"""How the names of values begin that a traced trial kept in full (see `worker/trace`)."""
NO_VALUES = "no values"


class Fact(msgspec.Struct, frozen=True, array_like=True):
    """One array or number: its dtype, shape and digest (of a number, the number)."""

    dtype: str
    shape: tuple[int, ...]
    digest: str | None = None
    """None where nothing was computed: views, and memory that was not filled."""
    strides: tuple[int, ...] | None = None
    """None when contiguous."""
    device: str | None = None
    """None on a CPU."""

    @property
    def text(self) -> str:
        """`float32[2, 3]`, with the device where it is none of the CPU's."""
        return f"{self.dtype}{list(self.shape)}" + (f" on {self.device}" if self.device else "")


class Place(Struct, frozen=True, kw_only=True):
    """A line of a function."""

    file: str
    line: int
    function: str = ""


class Operator(Struct, frozen=True, kw_only=True):
    """One operator that ran."""

    number: int
    name: str
    inputs: tuple[Fact, ...]
    outputs: tuple[Fact, ...]
    arguments: str = ""
    """What was passed that is no array."""
    random: str | None = None
    """Digest of the generator's state before it drew, if it draws."""
    view: bool = False
    place: Place | None = None
    """The line of the workload that led to it."""
    through: Place | None = None
    """The line of a toolbox that the call went through on the way."""
    module: str | None = None
    phase: str = ""
    node: str | None = None
    forward: Place | None = None
    """For a backward operator, the line whose gradient it computes."""
    note: str | None = None

    @property
    def key(self) -> tuple[object, ...]:
        """What has to be equal for two operators to be the same step: all but the values."""
        shapes = tuple((fact.dtype, fact.shape) for fact in (*self.inputs, *self.outputs))
        place = (self.place.file, self.place.line) if self.place else None
        return (self.name, len(self.inputs), shapes, place, self.module, self.phase)


class LineStep(Struct, frozen=True, kw_only=True):
    """One executed statement, with what it set, changed or met for the first time."""

    number: int
    place: Place
    call: int
    loops: tuple[tuple[Place, int], ...] = ()
    """Loops around it, outermost first, each with its iteration."""
    first: dict[str, Fact] = {}
    """Met by it for the first time, before it ran."""
    after: dict[str, Fact] = {}
    """Set by it."""
    changed: dict[str, Fact] = {}
    """Changed by it in place."""

    @property
    def key(self) -> tuple[object, ...]:
        """What has to be equal for two steps to be the same one."""
        return (self.place.file, self.place.line, self.call, tuple(count for _, count in self.loops))


class KernelLines(Struct, frozen=True, kw_only=True):
    """What a library printed about its kernels, or what a profiler saw, while one operator ran."""

    number: int
    """Of the operator; -1 for what came outside any."""
    lines: tuple[str, ...]


class Trace(Struct, frozen=True, kw_only=True):
    """One trial's trace."""

    modes: tuple[str, ...]
    libraries: dict[str, str | None]
    operators: tuple[Operator, ...] = ()
    lines: tuple[LineStep, ...] = ()
    kernels: tuple[KernelLines, ...] = ()
    notes: tuple[str, ...] = ()
    cut: bool = False
    """True when the workload went on after the trace had ended: what is missing at the end says nothing."""


class _Head(msgspec.Struct, tag_field="k", tag="trace"):
    version: int
    modes: tuple[str, ...]
    libraries: dict[str, str | None] = {}


class _Site(msgspec.Struct, tag_field="k", tag="site"):
    id: int
    file: str
    line: int
    function: str


class _Note(msgspec.Struct, tag_field="k", tag="note"):
    text: str
    cut: int = 0


class _Line(msgspec.Struct, tag_field="k", tag="line"):
    s: int
    n: int
    call: int
    it: tuple[tuple[int, int], ...] = ()
    r: dict[str, Fact] = {}
    v: dict[str, Fact] = {}
    c: dict[str, Fact] = {}


class _Op(msgspec.Struct, tag_field="k", tag="op", rename={"ins": "in"}):
    n: int
    op: str
    ins: tuple[Fact, ...] = ()
    out: tuple[Fact, ...] = ()
    a: str = ""
    s: int | None = None
    via: int | None = None
    m: str | None = None
    ph: str = ""
    node: str | None = None
    fs: int | None = None
    view: int = 0
    rng: str | None = None
    note: str | None = None


class _Kernel(msgspec.Struct, tag_field="k", tag="kernel"):
    n: int
    lines: tuple[str, ...]


_DECODER = msgspec.json.Decoder(_Head | _Site | _Note | _Line | _Op | _Kernel)


def read_trace(path: Path) -> Trace:
    """The trace in a stored file; a last line cut short by a crash is left out.

    Raises:
        StoreError: the file is gone, or is no trace that this version reads.
    """
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise StoreError(f"`{path}` cannot be read: {error.strerror}") from error
    head = _Head(version=0, modes=())
    sites: dict[int, Place] = {}
    operators: list[Operator] = []
    steps: list[LineStep] = []
    kernels: list[KernelLines] = []
    notes: list[str] = []
    cut = False
    for index, raw in enumerate(lines):
        try:
            item = _DECODER.decode(raw)
        except msgspec.DecodeError as error:
            if index == len(lines) - 1:
                break
            raise StoreError(f"`{path}` is no trace: line {index + 1}: {error}") from error
        match item:
            case _Site():
                sites[item.id] = Place(file=item.file, line=item.line, function=item.function)
            case _Op():
                operators.append(_operator(item, sites))
            case _Line():
                steps.append(_step(item, sites))
            case _Kernel():
                kernels.append(KernelLines(number=item.n, lines=item.lines))
            case _Note():
                notes.append(item.text)
                cut = cut or bool(item.cut)
            case _Head():
                head = item
    if head.version != 1:
        raise StoreError(f"`{path}` is a trace of version {head.version}, but 1 is read here; run the study again")
    return Trace(
        modes=head.modes,
        libraries=head.libraries,
        operators=tuple(operators),
        lines=tuple(steps),
        kernels=tuple(kernels),
        notes=tuple(dict.fromkeys(notes)),
        cut=cut,
    )


def _operator(item: _Op, sites: dict[int, Place]) -> Operator:
    return Operator(
        number=item.n,
        name=item.op,
        inputs=item.ins,
        outputs=item.out,
        arguments=item.a,
        random=item.rng,
        view=bool(item.view),
        place=_place(item.s, sites),
        through=_place(item.via, sites),
        module=item.m,
        phase=item.ph,
        node=item.node,
        forward=_place(item.fs, sites),
        note=item.note,
    )


def _step(item: _Line, sites: dict[int, Place]) -> LineStep:
    return LineStep(
        number=item.n,
        place=sites.get(item.s) or Place(file="?", line=0),
        call=item.call,
        loops=tuple((sites.get(site) or Place(file="?", line=0), count) for site, count in item.it),
        first=item.r,
        after=item.v,
        changed=item.c,
    )


def _place(site: int | None, sites: dict[int, Place]) -> Place | None:
    return None if site is None else sites.get(site)

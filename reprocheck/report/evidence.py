"""A study together with what its run folder still holds: records, traces, and which output had which bits where."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

import msgspec

from reprocheck.compare.groups import group_id
from reprocheck.errors import StoreError
from reprocheck.explain.locate.reading import Trace, read_trace
from reprocheck.model import Arm, Failure, Output, Record, Struct, Study, Trial
from reprocheck.report.redact import Redaction
from reprocheck.report.source import Excerpt, excerpt
from reprocheck.store.objects import TRACE, ObjectStore
from reprocheck.store.run import JournalLine, Run

__all__ = ["MIXED", "NONE", "Evidence", "Matrix"]

Order = tuple[str, ...]
LARGEST_TRACE = 64 << 20
MIXED = "~"
"""Identical runs of one order gave different bits."""
NONE = "–"
"""The output is not there: the trial failed, or did not produce it."""


class Matrix(Struct, frozen=True, kw_only=True):
    """Which bits each output had in each order."""

    orders: tuple[Order, ...]
    rows: dict[str, tuple[str, ...]]
    """Output -> per order the letter of the first group with these bits, `MIXED`, or `NONE`."""


class _Seen(Struct, frozen=True, kw_only=True):
    """One counted trial, without the record's weight."""

    line: JournalLine
    order: Order
    capture: bool
    ok: bool
    bits: bytes
    """Per output the number of its bits among those seen (-1: absent); the failure's signature in a failed trial."""


class _Named(msgspec.Struct):
    name: str
    digest: str


class _Outcome(msgspec.Struct):
    """Of a record, what groups are made of: the rest, its greater part, is skipped."""

    trial: Trial
    ok: bool
    failure: Failure | None = None
    outputs: tuple[_Named, ...] = ()


class Evidence:
    """What a report draws from. Everything but `study` may be missing: a study can be all that is left of a run.

    With a redaction, everything that comes out of here is redacted: orders and names are asked for as `study` has them.
    """

    def __init__(
        self, study: Study, run: Run | None = None, *, missing: str = "", redaction: Redaction | None = None
    ) -> None:
        """`missing` says in one sentence why there is no `run`."""
        self._raw = study
        self._redaction = redaction
        self.study = redaction.study(study) if redaction is not None else study
        self.run = run
        self.missing = missing
        self._records: dict[str, Record] = {}

    @classmethod
    def of(cls, study: Study, folder: Path | None = None, *, redaction: Redaction | None = None) -> Evidence:
        """The study with its run folder: `folder`, or where the study says it was written, if it is still there."""
        place = folder or (Path(study.run_dir) if study.run_dir else None)
        if place is None or not (place / "spec.json").is_file():
            missing = "the run folder is not at hand, so what only records hold is left out"
            return cls(study, missing=missing, redaction=redaction)
        try:
            evidence = cls(study, Run(place), redaction=redaction)
            _ = evidence._seen
        except StoreError as error:
            text = str(error) if redaction is None else redaction.text(str(error))
            missing = f"the run folder can't be read, so what only records hold is left out: {text}"
            return cls(study, missing=missing, redaction=redaction)
        return evidence

    @property
    def redacted(self) -> bool:
        """Whether this may leave the company."""
        return self._redaction is not None

    @property
    def objects(self) -> ObjectStore | None:
        """The stored arrays."""
        return self.run.objects if self.run is not None else None

    @cached_property
    def arms(self) -> tuple[Arm, ...]:
        """The arms that were run for the verdict: no presence arms, no order that stands for another."""
        return _arms(self.study)

    @cached_property
    def reference(self) -> str | None:
        """The group others are compared with."""
        return next((group.id for group in self.study.groups if group.failure is None), None)

    def record(self, order: Order) -> Record | None:
        """The record of an order that tells most: with its state captured and finished, as far as there is one."""
        seen = [item for item in self._seen if item.order == self._raw_orders.get(order)]
        seen.sort(key=lambda item: (not (item.capture and item.ok), not item.capture))
        return self._load(seen[0]) if seen else None

    def outputs(self, group: str) -> dict[str, Output]:
        """Output by name in an example of the group; empty where there is none."""
        found = next((item for item, letter in self._letters if letter == group), None)
        if self.run is None or found is None:
            return {}
        raw = self.run.read(found.line.record, Record).outputs
        return {self._shown[output.name]: output for output in raw if output.name in self._shown}

    def excerpt(self, file: str | None, line: int | None) -> Excerpt | None:
        """The source around a line, as it is on this machine now; None where it may not or cannot be shown."""
        if self._redaction is not None or not file or not line:
            return None
        digest = self.run.spec.workload_digest if self.run is not None else ""
        return excerpt(file, line, workload=self._raw.target.path, digest=digest)

    def shown(self, text: str) -> str:
        """A text from a record's depth as it may be shown."""
        return text if self._redaction is None else self._redaction.text(text)

    def module(self, name: str) -> str:
        """The same for a dotted name."""
        return name if self._redaction is None else self._redaction.module(name)

    def traces(self) -> Iterator[tuple[Trace, Trace]]:
        """Pairs of operator traces of the two orders that were traced, the likeliest first.

        Raises `StoreError` for a trace that can't be read.
        """
        traced = self._raw.traced
        if self.run is None or traced is None:
            return
        sides: list[list[Path]] = [[], []]
        for line in self.run.journal():
            # A traced trial says so in its key; the others need not be read.
            if '"trace":{' not in line.key:
                continue
            record = self.run.read(line.record, Record)
            request = record.trial.trace
            other = record.trial.level != self._raw.level
            if other or record.trace is None or request is None or "ops" not in request.get("modes", ()):
                continue
            path = self.run.objects.path(record.trace, TRACE)
            if path.is_file() and path.stat().st_size <= LARGEST_TRACE:
                for side, order in zip(sides, traced.orders, strict=True):
                    if record.trial.order == order:
                        side.append(path)
        pairs = [(a, b) for a in sides[0][:3] for b in sides[1][:3] if a != b]
        for a, b in pairs:
            yield read_trace(a), read_trace(b)

    @cached_property
    def matrix(self) -> Matrix | None:
        """Which order gave which bits, output by output; None without records."""
        if not self._letters:
            return None
        # Repeats give the same row again and again: each is looked at once, the first groups first.
        distinct = dict.fromkeys(item.bits for item, _ in sorted(self._letters, key=lambda pair: _age(pair[1])))
        group_of = {item.bits: letter for item, letter in self._letters}
        decoded = {bits: _row(bits, len(self._names)) for bits in distinct}
        runs = {order: dict.fromkeys(item.bits for item in self._seen if item.order == order) for order in self._orders}
        rows = {}
        for number, name in enumerate(self._names):
            letters: dict[int, str] = {}
            for bits, row in decoded.items():
                letters.setdefault(row[number], group_of[bits])
            rows[self._shown[name]] = tuple(
                _cell({decoded[bits][number] for bits in seen}, letters) for seen in runs.values()
            )
        return Matrix(orders=tuple(arm.order for arm in self.arms), rows=rows)

    @cached_property
    def _orders(self) -> list[Order]:
        return [arm.order for arm in _arms(self._raw)]

    @cached_property
    def _names(self) -> tuple[str, ...]:
        return tuple(output.name for output in self._raw.outputs)

    @cached_property
    def _shown(self) -> dict[str, str]:
        """Output's name -> how it is shown."""
        return dict(zip(self._names, (output.name for output in self.study.outputs), strict=True))

    @cached_property
    def _raw_orders(self) -> dict[Order, Order]:
        return dict(zip((arm.order for arm in self.arms), self._orders, strict=True))

    @cached_property
    def _seen(self) -> tuple[_Seen, ...]:
        """The trials the verdict was judged by, in the order of the study's arms."""
        if self.run is None:
            return ()
        bare_only = self.study.noise.observer == "differs"
        forks = {order for arm, order in zip(self.arms, self._orders, strict=True) if arm.forked}
        positions = {name: number for number, name in enumerate(self._names)}
        numbers: list[dict[str, int]] = [{} for _ in positions]
        orders = self._orders
        seen = []
        for line in self.run.journal():
            record = self.run.read(line.record, _Outcome)
            trial = record.trial
            plain = trial.whole and not trial.presence and trial.level == self._raw.level
            plain = plain and trial.forked is (trial.order in forks)
            if not plain or trial.order not in orders or (bare_only and trial.capture):
                continue
            seen.append(
                _Seen(
                    line=line,
                    order=trial.order,
                    capture=trial.capture,
                    ok=record.ok,
                    bits=_bits(record, positions, numbers),
                )
            )
        seen.sort(key=lambda item: orders.index(item.order))
        return tuple(seen)

    @cached_property
    def _letters(self) -> tuple[tuple[_Seen, str], ...]:
        """Each counted trial with its group, lettered as the study does: in order of first appearance."""
        known: dict[bytes, str] = {}
        return tuple((item, known.setdefault(item.bits, group_id(len(known)))) for item in self._seen)

    def _load(self, seen: _Seen) -> Record:
        assert self.run is not None  # noqa: S101 - nothing is seen without a run
        name = seen.line.record
        if name not in self._records:
            record = self.run.read(name, Record)
            self._records[name] = record if self._redaction is None else self._redaction.record(record)
        return self._records[name]


def _arms(study: Study) -> tuple[Arm, ...]:
    return tuple(arm for arm in study.orders if not arm.presence and arm.same_as is None)


def _bits(record: _Outcome, positions: dict[str, int], numbers: Sequence[dict[str, int]]) -> bytes:
    if record.failure is not None:
        return b"failure:" + record.failure.signature.encode("utf-8", "surrogatepass")
    row = array("i", [-1]) * len(positions)
    for output in record.outputs:
        position = positions.get(output.name)
        if position is not None:
            known = numbers[position]
            row[position] = known.setdefault(output.digest, len(known))
    return b"outputs:" + row.tobytes()


def _row(bits: bytes, length: int) -> Sequence[int]:
    if bits.startswith(b"failure:"):
        return array("i", [-1]) * length
    row = array("i")
    row.frombytes(bits.removeprefix(b"outputs:"))
    return row


def _age(letter: str) -> tuple[int, str]:
    """A before B, Z before AA."""
    return len(letter), letter


def _cell(found: set[int], letters: dict[int, str]) -> str:
    if len(found) > 1:
        return MIXED
    number = next(iter(found), -1)
    return letters[number] if number >= 0 else NONE

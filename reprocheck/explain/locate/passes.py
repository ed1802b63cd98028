"""The traced trials: which orders, how often, and whether looking changed what was looked at.

They are trials of their own, with the state's capture off, and never feed the verdict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from reprocheck.compare.arrays import compare
from reprocheck.compare.groups import outcome_key, select_outputs
from reprocheck.compare.source import Source
from reprocheck.errors import StoreError
from reprocheck.explain.context import Context
from reprocheck.explain.locate.reading import KEPT, Trace, read_trace
from reprocheck.model import Difference, Output, Record, Tolerance, Trial
from reprocheck.store.objects import TRACE

__all__ = ["Kept", "Pass", "Passes"]

Order = tuple[str, ...]
REPEATS = 2
"""Traced runs of each order: one to compare, one to see what varies anyway."""
LEAST_SECONDS, TIMES_AS_LONG = 64, 16
"""A trace may go on for so many seconds, or so many times as long as an untraced trial takes, before it is cut."""
REPEATS_OF_NOISE = 4
"""Traced runs of one order whose identical runs differ: enough that two of them do, most of the time."""


@dataclass(frozen=True, eq=False)
class Pass:
    """A traced run of each of the two orders, and a second one of each."""

    traces: tuple[Trace, Trace]
    again: tuple[Trace, Trace] | None
    """Second runs of the same orders with the same outcome, to see what varies anyway; None for a noisy study."""
    observer: Literal["agrees", "moved", "vanished", "failed"]
    modes: tuple[str, ...]
    changed: tuple[str, ...] = ()
    """Outputs whose bits tracing changed."""
    message: str = ""
    """Why it failed."""

    @property
    def shows(self) -> bool:
        """Whether the divergence is there while it is looked at."""
        return self.observer in ("agrees", "moved")


@dataclass(frozen=True)
class Kept:
    """Values that two trials kept in full."""

    records: tuple[Record, Record]
    context: Context

    def names(self, side: int) -> dict[str, Output]:
        """What was kept in the first (0) or second order, by name."""
        return {
            output.name.removeprefix(KEPT): output
            for output in self.records[side].outputs
            if output.name.startswith(KEPT)
        }

    def difference(self, name: str, other: str | None = None) -> Difference | None:
        """How the value of the second order differs from the first's; None where one of them is not there."""
        first, second = self.names(0).get(name), self.names(1).get(other or name)
        if first is None or second is None:
            return None
        objects = self.context.runner.writer.objects
        left, right = (Source.from_object(objects.path(item.digest)) for item in (second, first))
        return compare(left, right, Tolerance())

    def equal(self, prefix: str) -> bool:
        """Whether all kept values whose names begin so are the same bits in both orders."""
        first, second = (
            {name: item.digest for name, item in self.names(side).items() if name.startswith(prefix)} for side in (0, 1)
        )
        return first == second


class Passes:
    """Runs traced trials of two orders."""

    def __init__(self, orders: tuple[Order, Order], context: Context) -> None:
        """`context` as for explaining; its records show what untraced runs gave."""
        self.orders = orders
        self.context = context
        self.trials = 0

    def run(self, modes: Sequence[str], *, exact: bool = False) -> Pass:
        """Trace both orders in `modes`, with repeats. `exact`: no digest is used for two operators."""
        request = self._request(modes, exact=exact)
        noisy = self.orders[0] == self.orders[1]
        repeats = REPEATS_OF_NOISE if noisy else REPEATS
        orders = self.orders[:1] if noisy else self.orders
        records = self._records([self._trial(order, repeat, request) for repeat in range(repeats) for order in orders])
        failed = next((record for record in records if not record.ok or record.trace is None), None)
        if failed is not None:
            reason = failed.failure.message if failed.failure is not None else "it left no trace"
            empty = Trace(modes=(), libraries={})
            return Pass((empty, empty), None, "failed", tuple(modes), message=reason)
        return self._noisy(records, modes) if noisy else self._judged(records, modes)

    def keep(
        self, modes: Sequence[str], keep: tuple[Mapping[str, Any], Mapping[str, Any]], *, exact: bool
    ) -> Kept | None:
        """One more run of each order that keeps values in full; None if one of them failed."""
        trials = []
        for index, (order, wanted) in enumerate(zip(self.orders, keep, strict=True)):
            request = {**self._request(modes, exact=exact), "keep": dict(wanted)}
            trials.append(self._trial(order, index if self.orders[0] == self.orders[1] else 0, request))
        records = self._records(trials)
        if not all(record.ok for record in records):
            return None
        return Kept((records[0], records[1]), self.context)

    def records_with(self, request: Mapping[str, Any], env: Mapping[str, str]) -> list[Record]:
        """One run of each order with another kind of trace, and variables set."""
        return self._records([self._trial(order, 0, request, env) for order in self.orders])

    def trace_of(self, record: Record) -> Trace:
        """The trace a record has. Raises `StoreError` if it has none."""
        if record.trace is None:
            raise StoreError(f"the trial of `{','.join(record.trial.order)}` left no trace")
        return read_trace(self.context.runner.writer.objects.path(record.trace, TRACE))

    def _trial(
        self, order: Order, repeat: int, request: Mapping[str, Any], env: Mapping[str, str] | None = None
    ) -> Trial:
        presence = self._presence(order)
        return Trial(
            order=order, repeat=repeat, capture=False, presence=presence, trace=dict(request), env=dict(env or {})
        )

    def _presence(self, order: Order) -> bool:
        return len(order) < max(len(record.trial.order) for record in self.context.records)

    def _request(self, modes: Sequence[str], *, exact: bool) -> dict[str, Any]:
        seconds = LEAST_SECONDS
        longest = max((record.seconds for record in self.context.records if record.ok), default=0.0)
        while seconds < TIMES_AS_LONG * longest:
            # In steps of two, so that a resumed run finds its traced trials again.
            seconds *= 2
        return {"modes": list(modes), "seconds": seconds, **({"exact": True} if exact else {})}

    def _records(self, trials: Sequence[Trial]) -> list[Record]:
        self.trials += len(trials)
        return self.context.runner.run(trials)

    def _judged(self, records: Sequence[Record], modes: Sequence[str]) -> Pass:
        """The pair of runs whose outcomes differ, if any do, and how they stand to untraced runs."""
        sides = [[record for record in records if record.trial.order == order] for order in self.orders]
        pairs = [(a, b) for a in sides[0] for b in sides[1]]
        apart = [(a, b) for a, b in pairs if self._outcome(a) != self._outcome(b)]
        a, b = (apart or pairs)[0]
        again = [
            next((item for item in side if item is not one and self._outcome(item) == self._outcome(one)), None)
            for side, one in zip(sides, (a, b), strict=True)
        ]
        others = None
        if again[0] is not None and again[1] is not None:
            others = (self.trace_of(again[0]), self.trace_of(again[1]))
        changed = tuple(dict.fromkeys(name for record in (a, b) for name in self._changed(record)))
        observer: Literal["agrees", "moved", "vanished"] = "moved" if changed else "agrees"
        if not apart and (changed or self._apart()):
            observer = "vanished"
        return Pass((self.trace_of(a), self.trace_of(b)), others, observer, tuple(modes), changed)

    def _noisy(self, records: Sequence[Record], modes: Sequence[str]) -> Pass:
        first = records[0]
        other = next((record for record in records[1:] if self._outcome(record) != self._outcome(first)), None)
        traces = (self.trace_of(first), self.trace_of(other or records[1]))
        return Pass(traces, None, "vanished" if other is None else "agrees", tuple(modes))

    def _changed(self, record: Record) -> tuple[str, ...]:
        """Outputs of a traced run whose bits no untraced run of its order had."""
        untraced = self.untraced(record.trial.order)
        if any(outcome_key(other, self.context.outputs) == self._outcome(record) for other in untraced):
            return ()
        seen = {(output.name, output.digest) for other in untraced for output in other.outputs}
        return tuple(
            output.name
            for output in select_outputs(record, self.context.outputs)
            if not output.name.startswith(KEPT) and (output.name, output.digest) not in seen
        )

    def _outcome(self, record: Record) -> object:
        plain = tuple(output for output in record.outputs if not output.name.startswith(KEPT))
        return outcome_key(msgspec.structs.replace(record, outputs=plain), self.context.outputs)

    def untraced(self, order: Order) -> list[Record]:
        """Records of the untraced runs of an order that ended well."""
        return [
            record
            for record in self.context.records
            if record.trial.order == order
            and record.ok
            and record.trial.whole
            and record.trial.presence is self._presence(order)
        ]

    def _apart(self) -> bool:
        first, second = (
            {outcome_key(record, self.context.outputs) for record in self.untraced(order)} for order in self.orders
        )
        return first != second

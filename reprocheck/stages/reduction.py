"""`--reduce trace`: the workload runs once for all orders whose imports load alike, and one of each class is audited.

Orders that stand for others are the same mechanism as orders with equal effective orders ("two orders that load alike
are one arm"): both end up as `Arm.same_as`. Only how likeness is seen differs: there by which subject's import began
when, here by what the imports loaded and set, in a probe of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reprocheck.compare.groups import outcome_key
from reprocheck.explain.keys import comparable
from reprocheck.explain.state import flatten
from reprocheck.headline import order_text
from reprocheck.model import Audit, Reduction, Trial
from reprocheck.plan.load_trace import audits, classes
from reprocheck.stages.bench import Bench
from reprocheck.stages.request import Order

__all__ = ["Reduced", "reduce_by_trace"]

# Says which subjects' modules came in which sequence: true of every order, and no effect of it.
_SEQUENCE = ("modules.", "process.path", "process.loaded_modules")


class Reduced:
    """The classes of orders that load alike, and whether their audits agree."""

    def __init__(self, bench: Bench, stands: Mapping[Order, Order]) -> None:
        """`stands` says for every order which one stands for it."""
        self._bench = bench
        self.stands = dict(stands)
        self.audited = audits(stands)
        self._probes = len(stands)
        self._classes = len(set(stands.values()))
        self._results: tuple[Audit, ...] = ()
        self.abandoned = ""

    @property
    def orders(self) -> tuple[Order, ...]:
        """The orders whose workload is run, in the plan's sequence: one of every class, and the audits."""
        if self.abandoned:
            return tuple(self.stands)
        return tuple(order for order, stand in self.stands.items() if order == stand or order in self.audited)

    def holds(self) -> bool:
        """Whether every audit gives what its class gives, trial by trial so far. Once it doesn't, it never does."""
        if self.abandoned:
            return False
        records = [record for record in self._bench.records if record.trial.judged]
        outcomes: dict[Order, set[object]] = {}
        for record in records:
            outcomes.setdefault(record.trial.order, set()).add(outcome_key(record, self._bench.request.outputs))
        self._results = tuple(
            Audit(order=order, stands_for_it=stand, agrees=outcomes[order] == outcomes[stand])
            for order, stand in self.audited.items()
            if order in outcomes and stand in outcomes
        )
        wrong = next((audit for audit in self._results if not audit.agrees), None)
        if wrong is not None:
            self.abandoned = (
                f"`{order_text(wrong.order)}` loads like `{order_text(wrong.stands_for_it)}` as far as it can be seen, "
                "but gives other results: equal load traces mean nothing for this workload, so all orders are run"
            )
            self._bench.runner.progress.note(f"--reduce trace: {self.abandoned}")
        return wrong is None

    def told(self) -> Reduction:
        """What the reduction came to."""
        left = 0 if self.abandoned else len(self.stands) - len(self.orders)
        runs = [sum(1 for r in self._bench.records if r.trial.judged and r.trial.order == o) for o in self.orders]
        return Reduction(
            probes=self._probes,
            classes=self._classes,
            left_out=left,
            saved=left * min(runs, default=0),
            audits=self._results,
            abandoned=self.abandoned,
        )

    def stand(self, order: Order) -> Order:
        """The order whose workload was run for `order`."""
        return order if order in self.orders else self.stands[order]


def reduce_by_trace(bench: Bench) -> Reduced:
    """Probe every order's imports, once, and sort the orders into classes."""
    orders = bench.request.orders
    bench.more([Trial(order=order, repeat=0, imports_only=True) for order in orders])
    probes = {record.trial.order: record for record in bench.records if record.trial.imports_only}
    reduced = Reduced(bench, classes([probes[order] for order in orders], _state))
    bench.runner.progress.note(
        f"{len(orders)} orders load in {len(set(reduced.stands.values()))} ways: {len(reduced.orders)} of them are run"
    )
    return reduced


def _state(kinds: Mapping[str, Any]) -> dict[str, Any]:
    compared = {key: comparable(key, value) for key, value in flatten(kinds).items()}
    return {key: value for key, value in compared.items() if value is not None and not key.startswith(_SEQUENCE)}

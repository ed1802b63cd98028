"""Studies whose trials are drawn, not run: each ends well, or fails, by a rule of the test's."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from reprocheck.engine.runner import Silent
from reprocheck.model import Failure, Output, Record, Target, Tolerance, Trial
from reprocheck.stages.bench import Bench
from reprocheck.stages.request import Order, Request
from reprocheck.store.objects import ObjectStore

__all__ = ["FakeRunner", "bench", "flaky", "request"]

Rule = Callable[[Trial], str]
"""Trial -> the signature of its failure; empty for one that ends well."""


class _Writer:
    objects = ObjectStore(Path("/nonexistent"))


class FakeRunner:
    """What `Bench` asks of a runner."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.trials: list[Trial] = []
        self.progress = Silent()
        self.writer = _Writer()

    def run(self, trials: Sequence[Trial]) -> list[Record]:
        """Their records; what was asked for is kept."""
        self.trials += trials
        return [self._record(trial) for trial in trials]

    def done(self, trial: Trial) -> Record | None:
        """Its record if it was run already."""
        return self._record(trial) if trial in self.trials else None

    def _record(self, trial: Trial) -> Record:
        signature = self.rule(trial)
        failure = Failure(kind="exception", phase="", signature=signature, message=signature) if signature else None
        outputs = () if failure else (Output(name="x", dtype="int64", shape=(), nbytes=8, digest="sha256:" + "0" * 64),)
        return Record(trial=trial, effective_order=trial.order, ok=failure is None, failure=failure, outputs=outputs)


def request(orders: Sequence[Order], **changes: Any) -> Request:
    """A question about these orders."""
    return Request(
        target=Target(text="work.py::run", kind="function", path="/work.py", name="run"),
        subjects=orders[0],
        subjects_from="--imports",
        orders=tuple(orders),
        plan="",
        observer=False,
        **changes,
    )


def bench(asked: Request, rule: Rule) -> tuple[Bench, FakeRunner]:
    """A bench on which that question is answered by the rule."""
    runner = FakeRunner(rule)
    return Bench(asked, runner, lambda _: Tolerance()), runner  # type: ignore[arg-type]


def flaky(seed: int, rate: float) -> Rule:
    """Fails at this rate, whatever the order."""
    rng = random.Random(seed)
    return lambda _: "flaky" if rng.random() < rate else ""

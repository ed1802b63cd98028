"""Asking questions of the machine: a trial with its repeats, within a budget, never the same one twice."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from reprocheck.engine.runner import Runner
from reprocheck.explain.labels import Labels
from reprocheck.explain.search import BudgetSpentError
from reprocheck.model import Record, Trial

__all__ = ["Asker"]


class Asker:
    """Runs trials and says what came out. What the journal has costs nothing."""

    def __init__(self, runner: Runner, labels: Labels, limit: int, *, bare: bool = False) -> None:
        """`limit` is the number of trials that may be run; with `bare`, labels come from trials without capture."""
        self.runner: Runner = _Counted(runner, self)
        """For those who run trials themselves: they count here, too."""
        self.labels = labels
        self.limit = limit
        self.spent = 0
        self.reserve = 0
        """Trials kept back for what comes later."""
        self.refused = False
        """True when a question could not be asked any more."""
        self._bare = bare

    @property
    def left(self) -> int:
        """Trials that may still be run."""
        return self.limit - self.spent

    def pay(self, trials: int) -> None:
        """Take so many trials off the budget. Raises `BudgetSpentError`, taking none, when there are too few left."""
        if trials > self.left - self.reserve:
            self.refused = True
            raise BudgetSpentError
        self.spent += trials

    def records(self, trials: Sequence[Trial]) -> list[Record]:
        """The records of `trials`. Raises `BudgetSpentError`, running none, when there are too few left."""
        return self.runner.run(trials)

    def again(self, trial: Trial, repeats: int | None = None) -> list[Record]:
        """The records of `trial` and its repeats, as many as the measured noise asks for."""
        count = self.labels.repeats if repeats is None else repeats
        numbers = range(trial.repeat, trial.repeat + count)
        capture = trial.capture and not self._bare
        return self.records([msgspec.structs.replace(trial, repeat=number, capture=capture) for number in numbers])

    def label(self, trial: Trial, repeats: int | None = None) -> str:
        """The label of `trial`, as many runs as the measured noise asks for."""
        return self.labels.label(self.again(trial, repeats))


class _Counted(Runner):
    """A runner whose new trials are paid for before they are run."""

    def __init__(self, runner: Runner, asker: Asker) -> None:
        super().__init__(runner.writer, runner.engine, runner.progress, runner.mixed, runner.level, runner.told)
        object.__setattr__(self, "_asker", asker)

    def run(self, trials: Sequence[Trial]) -> list[Record]:
        """As `Runner.run`. Raises `BudgetSpentError`, running none, when there are too few left."""
        asker: Asker = self._asker  # type: ignore[attr-defined]
        asker.pay(sum(self.done(trial) is None for trial in trials))
        return super().run(trials)

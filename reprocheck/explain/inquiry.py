"""The whole of `explain`: rule, causes, remedy, reproducer; each stage takes what the last one found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from reprocheck.engine.runner import Runner
from reprocheck.explain.asking import Asker
from reprocheck.explain.causes import Findings, Question, find_causes
from reprocheck.explain.interventions import Pair
from reprocheck.explain.labels import Labels
from reprocheck.explain.ordering import Ordering, find_presence, find_rule
from reprocheck.explain.search import BudgetSpentError
from reprocheck.explain.swap import Order, Swap
from reprocheck.explain.views import Views, differences
from reprocheck.model import Cause, Record, Spent, Study, Tolerance, Trial

__all__ = ["EXPLAINED", "Context", "default_budget", "explain"]

EXPLAINED = ("order-dependent", "order-dependent-with-noise", "fails-in-some-orders")
RECORDS_OF_A_SIDE = 2
"""Captured records of each order, so that what varies anyway is not taken for a difference."""


@dataclass(frozen=True)
class Context:
    """What explaining needs besides the study."""

    runner: Runner
    records: tuple[Record, ...]
    """All records of the run."""
    tolerance_for: Callable[[str], Tolerance]
    outputs: tuple[str, ...] = ()
    """Patterns of the outputs that count."""
    budget: int | None = None
    """Trials that may be run; `default_budget` when not given."""


def default_budget(study: Study) -> int:
    """Enough for a rule, a cause proved both ways and a remedy run over all orders, of most studies."""
    orders = sum(not arm.presence and arm.same_as is None for arm in study.orders)
    return 40 + 2 * orders


def explain(study: Study, context: Context) -> Study:
    """`study` with its rule, causes, consequences, remedy, reproducer and what that cost.

    A study without a divergence comes back as it is. Nothing is lost when the budget ends: what is known by then is in.
    """
    presence = study.exit_code != 0 and study.verdict in ("identical", "within-tolerance")
    if study.verdict not in EXPLAINED and not presence:
        return study
    judged = tuple(record for record in context.records if _judged(record))
    labels = Labels(
        study,
        judged,
        patterns=context.outputs,
        tolerance_for=context.tolerance_for,
        objects=context.runner.writer.objects,
    )
    limit = default_budget(study) if context.budget is None else context.budget
    asker = Asker(context.runner, labels, limit)
    return _Inquiry(study, context, asker).run(presence=presence)


def _judged(record: Record) -> bool:
    trial = record.trial
    return not trial.env and not trial.actions and trial.trace is None


class _Inquiry:
    def __init__(self, study: Study, context: Context, asker: Asker) -> None:
        self.study = study
        self.context = context
        self.asker = asker
        self.judged = [record for record in context.records if _judged(record)]

    def run(self, *, presence: bool) -> Study:
        note = self.context.runner.progress.note
        note("explaining: which orders give which group")
        try:
            ordering = find_presence(self.study, self.asker) if presence else self._rule()
        except BudgetSpentError:
            ordering = Ordering()
        findings: list[Findings] = []
        for swap in ordering.swaps:
            try:
                question = self._question(swap)
                note(f"explaining: why `{','.join(question.pair.bad.record.trial.order)}` differs")
                findings.append(find_causes(question, self.asker))
            except BudgetSpentError:
                break
        complete = all(item.complete for item in findings) and not self.asker.refused
        return msgspec.structs.replace(
            self.study,
            rule=ordering.rule,
            causes=_merged([cause for item in findings for cause in item.causes]),
            consequences=tuple(item for found in findings for item in found.consequences),
            budget=Spent(trials=self.asker.spent, limit=self.asker.limit, complete=complete),
        )

    def _rule(self) -> Ordering:
        orders = {arm.order for arm in self.study.orders if not arm.presence}
        records = [record for record in self.judged if record.trial.order in orders]
        return find_rule(self.study, records, self.asker)

    def _question(self, swap: Swap) -> Question:
        """The swap as good and bad: what fails is bad, else what is farther from the reference order's group."""
        sides = list(zip((swap.before, swap.after), swap.labels, strict=True))
        sides.sort(key=lambda side: (self.asker.labels.failure(side[1]) is not None, len(side[1]), side[1]))
        (good, good_label), (bad, bad_label) = sides
        records = [self._records(order, label) for order, label in sides]
        del good, bad
        return Question(
            pair=Pair(good=Views(records[0][0]), bad=Views(records[1][0])),
            good=good_label,
            bad=bad_label,
            differences=differences(*records),
        )

    def _records(self, order: Order, label: str) -> Sequence[Record]:
        """Captured records of an order with its label, run where there are too few."""
        presence = len(order) < len(self.study.subjects)
        found = [
            record
            for record in self.judged
            if record.trial.order == order
            and record.trial.presence is presence
            and record.trial.capture
            and self.asker.labels.label([record]) == label
        ]
        repeat = 0
        while len(found) < RECORDS_OF_A_SIDE:
            trial = Trial(order=order, repeat=repeat, presence=presence)
            record = self.asker.records([trial])[0]
            if record not in found and self.asker.labels.label([record]) == label:
                found.append(record)
            repeat += 1
        return found


def _merged(causes: Sequence[Cause]) -> tuple[Cause, ...]:
    """One cause for each key: the best proved one, with the trials of all."""
    found: dict[str, Cause] = {}
    for cause in sorted(causes, key=lambda cause: cause.status != "confirmed"):
        known = found.get(cause.key)
        if known is None:
            found[cause.key] = cause
        else:
            found[cause.key] = msgspec.structs.replace(known, trials=known.trials + cause.trials)
    return tuple(found.values())

"""The whole of `explain`: rule, causes, remedy, reproducer; each stage takes what the last one found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec

from reprocheck.errors import UsageError
from reprocheck.explain.asking import Asker
from reprocheck.explain.causes import Findings, Question, find_causes
from reprocheck.explain.context import Context
from reprocheck.explain.interventions import Pair
from reprocheck.explain.interventions.base import SIDES
from reprocheck.explain.labels import Labels
from reprocheck.explain.looking import look_closer, unknown_cause
from reprocheck.explain.noisy import find_noise
from reprocheck.explain.operator_call import operator_call
from reprocheck.explain.ordering import Ordering, find_presence, find_rule
from reprocheck.explain.releases import other_releases
from reprocheck.explain.remedy import (
    LEAST_REPEATS,
    LEAST_TRIALS,
    Proposal,
    find_absence,
    find_remedy,
    joined,
    proposals,
)
from reprocheck.explain.reproducer import make_reproducer
from reprocheck.explain.search import BudgetSpentError
from reprocheck.explain.swap import Order, Swap
from reprocheck.explain.views import Views, differences
from reprocheck.explain.worth import only_presence, worth_explaining
from reprocheck.model import Cause, Consequence, Record, Remedy, Spent, StateDifference, Study, Trial

__all__ = ["default_budget", "explain"]

VERIFYING = 1_000_000
RECORDS_OF_A_SIDE = 2
"""Captured records of each order, so that what varies anyway is not taken for a difference."""


def default_budget(study: Study) -> int:
    """Enough for a rule, a cause proved both ways and a remedy run over all orders, of most studies."""
    orders = sum(not arm.presence and arm.same_as is None for arm in study.orders)
    return 40 + 2 * orders


def explain(study: Study, context: Context) -> Study:
    """`study` with its rule, causes, consequences, remedy, reproducer and what that cost.

    A study without a divergence comes back as it is. Nothing is lost when the budget ends: what is known by then is in.

    Raises:
        UsageError: the records are stored ones, and the orders do not give those outcomes any more.
    """
    if not worth_explaining(study):
        return study
    presence = only_presence(study)
    bare = study.noise.observer == "differs"
    judged = [record for record in context.records if record.trial.whole]
    labels = Labels(
        study,
        [record for record in judged if not (bare and record.trial.capture)],
        patterns=context.outputs,
        tolerance_for=context.tolerance_for,
        objects=context.runner.writer.objects,
    )
    limit = default_budget(study) if context.budget is None else context.budget
    inquiry = _Inquiry(study, context, Asker(context.runner, labels, limit, bare=bare), judged, bare=bare)
    if study.verdict == "noisy":
        return inquiry.noise()
    if context.stored:
        inquiry.verify()
    return inquiry.run(presence=presence)


class _Inquiry:
    def __init__(self, study: Study, context: Context, asker: Asker, judged: Sequence[Record], *, bare: bool) -> None:
        self.study = study
        self.context = context
        self.asker = asker
        self.judged = judged
        self.bare = bare
        """Capture changes outcomes: labels come from trials without it, and states from those with it."""
        self.counted = [record for record in judged if not (bare and record.trial.capture)]

    def verify(self) -> None:
        """Run one order of each group again: another day, another environment may have other outcomes."""
        seen: set[str] = set()
        unsettled = self.asker.labels.unsettled()
        for arm in self.study.orders:
            records = [record for record in self.counted if record.trial.order == arm.order and not arm.presence]
            label = self.asker.labels.label(records) if records else ""
            if not records or label in seen:
                continue
            seen.add(label)
            # Repeat numbers that no study reaches, so that the journal does not answer; the next time it does. Not part
            # of the budget: without it there is nothing to explain.
            again = range(VERIFYING, VERIFYING + max(self.asker.labels.repeats, unsettled.get(arm.order, 0)))
            trials = [Trial(order=arm.order, repeat=number, capture=not self.bare) for number in again]
            now = self.asker.labels.label(self.context.runner.run(trials))
            if now != label:
                raise UsageError(
                    f"`{','.join(arm.order)}` gave {self.asker.labels.name(label)} when this run was made and does not "
                    "now; the environment has changed, so make a new run with `reprocheck run`"
                )

    def run(self, *, presence: bool) -> Study:
        note = self.context.runner.progress.note
        orders = [arm.order for arm in self.study.orders if arm.presence is presence and arm.same_as is None]
        self.asker.reserve = min(self.asker.limit // 3, max(LEAST_TRIALS, LEAST_REPEATS * len(orders)))
        note("explaining: which orders give which group")
        try:
            self._learn()
            ordering = find_presence(self.study, self.asker) if presence else self._rule()
        except BudgetSpentError:
            ordering = Ordering()
        answers: list[tuple[Question, Findings]] = []
        for swap in ordering.swaps:
            try:
                question = self._question(swap)
            except BudgetSpentError:
                break
            note(f"explaining: why `{','.join(question.pair.bad.record.trial.order) or 'nothing'}` differs")
            answers.append((question, self._answer(question)))
        self.asker.reserve = 0
        remedy, change = self._absence(ordering) if presence else self._remedy(ordering, answers, orders)
        complete = all(findings.complete for _, findings in answers) and not self.asker.refused
        causes = _merged([cause for _, findings in answers for cause in findings.causes])
        if remedy is not None:
            remedy = msgspec.structs.replace(remedy, untried=other_releases(self.study, causes))
        study = msgspec.structs.replace(
            self.study,
            rule=ordering.rule,
            causes=causes,
            consequences=_unique([item for _, findings in answers for item in findings.consequences]),
            remedy=remedy,
            budget=Spent(trials=self.asker.spent, limit=self.asker.limit, complete=complete),
        )
        if not ordering.swaps:
            return study
        note("explaining: writing a reproducer, and running it")
        context = ordering.rule.context if ordering.rule is not None else ()
        runner = self.context.runner
        call = operator_call(study, self.context.records, runner.writer.objects)
        made = make_reproducer(study, ordering.swaps[0], context, runner.job, runner.writer.folder, change, call)
        return msgspec.structs.replace(study, reproducer=made)

    def _learn(self) -> None:
        """Run orders again that, in a study whose runs differ, were run too seldom to know their outcomes."""
        for order, missing in self.asker.labels.unsettled().items():
            fresh = self._fresh()
            trials = [Trial(order=order, repeat=fresh + n, capture=not self.bare) for n in range(missing)]
            self.asker.labels.learn(self.asker.records(trials))

    def _fresh(self) -> int:
        """The first repeat number that no trial of the study has."""
        return 1 + max(record.trial.repeat for record in self.judged if record.trial.repeat < VERIFYING)

    def noise(self) -> Study:
        """The study with what differs between identical runs, and the pin that stops it."""
        note = self.context.runner.progress.note
        note("explaining: what differs between identical runs")
        causes, pins = find_noise(self.study, self.counted, self.asker)
        orders = [arm.order for arm in self.study.orders if not arm.presence and arm.same_as is None]
        remedy = find_remedy(orders, [joined([pin.proposal() for pin in pins])], self.asker) if pins else None
        return msgspec.structs.replace(
            self.study,
            causes=tuple(causes),
            remedy=remedy,
            budget=Spent(trials=self.asker.spent, limit=self.asker.limit, complete=not self.asker.refused),
        )

    def _answer(self, question: Question) -> Findings:
        """Causes of one difference: from the snapshots, else from a closer look, else the narrowest import."""
        findings = find_causes(question, self.asker)
        try:
            if not findings.causes and findings.complete:
                closer = self._once_more(question) or look_closer(question, self.asker)
                if closer is not None:
                    found = find_causes(closer, self.asker)
                    found.tried[:0] = findings.tried
                    findings = found
            if not findings.causes:
                unknown = unknown_cause(question, self.asker, findings.tried)
                if unknown is not None:
                    findings.causes.append(unknown)
        except BudgetSpentError:
            findings.complete = False
        return findings

    def _remedy(
        self, ordering: Ordering, answers: Sequence[tuple[Question, Findings]], orders: Sequence[Order]
    ) -> tuple[Remedy | None, Proposal | None]:
        """The remedy, and the change it is."""
        proposed: dict[str, Proposal] = {}
        for question, findings in answers:
            for proposal in proposals(question, findings, first=_firsts(ordering, question, orders)):
                proposed.setdefault(proposal.text, proposal)
        self.context.runner.progress.note("explaining: trying a remedy over all orders")
        remedy = find_remedy(orders, list(proposed.values()), self.asker)
        return remedy, proposed.get(remedy.text) if remedy is not None else None

    def _absence(self, ordering: Ordering) -> tuple[Remedy | None, None]:
        """The remedy where the mere import of some subjects changes the result: to do without them."""
        if ordering.rule is None or not ordering.rule.context:
            return None, None
        self.context.runner.progress.note("explaining: trying a remedy over all orders")
        orders = [arm.order for arm in self.study.orders if not arm.presence and arm.same_as is None]
        return find_absence(orders, ordering.rule.context, self.asker), None

    def _rule(self) -> Ordering:
        orders = {arm.order for arm in self.study.orders if not arm.presence}
        records = [record for record in self.counted if record.trial.order in orders]
        return find_rule(self.study, records, self.asker)

    def _question(self, swap: Swap) -> Question:
        """The swap as good and bad: what fails is bad, else what is farther from the reference order's group."""
        sides = list(zip((swap.before, swap.after), swap.labels, strict=True))
        sides.sort(key=lambda side: (self.asker.labels.failure(side[1]) is not None, len(side[1]), side[1]))
        good_label, bad_label = (label for _, label in sides)
        records = [self._records(order, label) for order, label in sides]
        return Question(
            pair=Pair(good=Views(records[0][0]), bad=Views(records[1][0])),
            good=good_label,
            bad=bad_label,
            differences=self._with_events(differences(*records), {"good": good_label, "bad": bad_label}),
        )

    def _once_more(self, question: Question) -> Question | None:
        """The question with differences that only fresh runs show; None where there are no new ones.

        The first runs of a study may be unlike all later ones: they compile, download, fill caches.
        """
        known = {item.key for item in question.differences}
        sides = [(question.pair.trial(side).order, question.label(side)) for side in SIDES]
        fresh = self._fresh()
        records = [self._records(order, label, first=fresh) for order, label in sides]
        found = differences(*records)
        if all(item.key in known for item in found):
            return None
        labels = {"good": question.good, "bad": question.bad}
        good, bad = (Views(found[0]) for found in records)
        return replace(question, pair=Pair(good=good, bad=bad), differences=self._with_events(found, labels))

    def _with_events(self, found: Sequence[StateDifference], labels: Mapping[str, str]) -> tuple[StateDifference, ...]:
        """The differences with the events that are known from the study's own."""
        known = {
            (item.key, change.group, str(change.value)): change.event
            for item in self.study.state_differences
            for change in item.changes
        }
        return tuple(
            msgspec.structs.replace(
                item,
                changes=tuple(
                    msgspec.structs.replace(
                        change, event=change.event or known.get((item.key, labels[change.group], str(change.value)))
                    )
                    for change in item.changes
                ),
            )
            for item in found
        )

    def _records(self, order: Order, label: str, *, first: int | None = None) -> Sequence[Record]:
        """Captured records of an order with its label, run where there are too few; fresh ones from `first` on."""
        presence = len(order) < len(self.study.subjects)
        found = [
            record
            for record in self.judged
            if record.trial.order == order
            and record.trial.presence is presence
            and record.trial.capture
            and not record.trial.forked
            and first is None
            and self._labelled(record, label)
        ]
        repeat = first or 0
        while len(found) < RECORDS_OF_A_SIDE:
            trial = Trial(order=order, repeat=repeat, presence=presence)
            record = self.asker.records([trial])[0]
            if record not in found and self._labelled(record, label):
                found.append(record)
            repeat += 1
        return found

    def _labelled(self, record: Record, label: str) -> bool:
        return self.bare or self.asker.labels.label([record]) == label


def _firsts(ordering: Ordering, question: Question, orders: Sequence[Order]) -> list[str]:
    """Subjects that, imported first, give one outcome whatever follows: those that give the good one in front."""
    found: list[tuple[bool, str]] = []
    swap = ordering.swaps[0]
    for name in dict.fromkeys((*question.pair.trial("good").order, *swap.before)):
        labels = (
            {ordering.rules.predict(order) for order in orders if order[:1] == (name,)} if ordering.rules else set()
        )
        if len(labels) == 1:
            found.append((question.good not in labels, name))
    return [name for _, name in sorted(found, key=lambda item: item[0])]


def _merged(causes: Sequence[Cause]) -> tuple[Cause, ...]:
    """One cause for each key: the best proved one, with the trials of all."""
    found: dict[str, Cause] = {}
    for cause in sorted(causes, key=lambda cause: ("confirmed", "correlated", "unknown").index(cause.status)):
        known = found.get(cause.key)
        if known is None:
            found[cause.key] = cause
        else:
            found[cause.key] = msgspec.structs.replace(known, trials=known.trials + cause.trials)
    return tuple(found.values())


def _unique(consequences: Sequence[Consequence]) -> tuple[Consequence, ...]:
    return tuple({item.key: item for item in reversed(consequences)}.values())[::-1]

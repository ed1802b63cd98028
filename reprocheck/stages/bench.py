"""Trials that have run and what they say: the one thing all stages work on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from reprocheck.compare.groups import Grouping, group_records, select_outputs
from reprocheck.compare.noise import permutation_p
from reprocheck.compare.outputs import compare_groups
from reprocheck.compare.suite import judge_suite
from reprocheck.compare.verdict import Judgement, judge
from reprocheck.engine.runner import Runner
from reprocheck.model import OutputDifference, Record, Struct, Suite, Tolerance, Trial
from reprocheck.plan.rounds import distinct_orders
from reprocheck.stages.request import Order, Request
from reprocheck.store.run import trial_key

__all__ = ["Bench", "View"]

_NO_LOOK = 0.0
"""No p is below it: what trials say between two planned looks decides nothing."""


class View(Struct, frozen=True, kw_only=True):
    """What the records say at one moment."""

    counted: tuple[Record, ...]
    grouping: Grouping
    outcomes: dict[Order, tuple[str, ...]]
    outputs: tuple[OutputDifference, ...]
    judgement: Judgement
    alpha: float
    """What p was held against."""
    tested: int | None = None
    """Trials the test counts, where these are not all."""
    suite: Suite | None = None


class Bench:
    """The trials of one study so far."""

    def __init__(self, request: Request, runner: Runner, tolerance_for: Callable[[str], Tolerance]) -> None:
        """Nothing is run yet."""
        self.request = request
        self.runner = runner
        self.tolerance_for = tolerance_for
        self.records: list[Record] = []
        self._have: set[str] = set()

    def more(self, trials: Sequence[Trial]) -> list[Record]:
        """Run those of `trials` that this study does not have yet; returns their records."""
        new = [trial for trial in trials if trial_key(trial) not in self._have]
        self._have.update(map(trial_key, new))
        found = self.runner.run(new)
        self.records += found
        return found

    def stands(self) -> Mapping[Order, Order]:
        """Order -> the order that stands for it, for every order that was run (see `distinct_orders`)."""
        return distinct_orders([record for record in self.records if record.trial.judged])

    def view(
        self,
        orders: Sequence[Order],
        *,
        alpha: float = _NO_LOOK,
        repeats: Mapping[Order, range] | None = None,
        bare_only: bool = False,
    ) -> View:
        """What the trials of `orders` say, the first being the reference.

        With `repeats`, the test counts only these repeats of these orders: what was planned for the look, or what is
        independent of the reason for which the orders were picked.
        """
        stands = self.stands()
        place = {order: number for number, order in enumerate(orders)}
        place |= {order: len(orders) for order, stand in stands.items() if order not in place and stand in place}
        counted = [record for record in self.records if record.trial.judged and record.trial.order in place]
        if bare_only:
            counted = [record for record in counted if not record.trial.capture]
        # The reference order's trials first, so that its group is A.
        counted.sort(key=lambda record: place[record.trial.order])
        patterns = self.request.outputs
        grouping = group_records(counted, patterns)
        found: dict[Order, list[str]] = {order: [] for order in orders}
        for group, record in zip(grouping.ids, counted, strict=True):
            if record.trial.order in found:
                found[record.trial.order].append(group)
        outcomes = {order: tuple(groups) for order, groups in found.items()}
        by_group = {
            group.id: {o.name: o for o in select_outputs(counted[grouping.examples[group.id]], patterns)}
            for group in grouping.groups
            if group.failure is None
        }
        objects = self.runner.writer.objects
        reference = grouping.reference()
        differences, groups = compare_groups(grouping.groups, by_group, reference, objects, self.tolerance_for)
        grouping = msgspec.structs.replace(grouping, groups=groups)
        windows = repeats if repeats is not None else {}
        in_test = [
            (group, record)
            for group, record in zip(grouping.ids, counted, strict=True)
            if record.trial.order in outcomes
            and (repeats is None or record.trial.repeat in windows.get(record.trial.order, ()))
        ]
        suite = None
        if self.request.target.suite:
            runs: dict[Order, list[Record]] = {order: [] for order in orders}
            for _, record in in_test:
                runs[record.trial.order].append(record)
            judged = judge_suite(runs, differences, objects, patterns, alpha=alpha)
            judgement, suite = judged.judgement, judged.suite
        else:
            tested: dict[Order, list[str]] = {}
            for group, record in in_test:
                tested.setdefault(record.trial.order, []).append(group)
            judgement = judge(
                outcomes,
                grouping.failed,
                within_tolerance=all(group.within_tolerance for group in groups),
                alpha=alpha,
                tested=tested,
            )
        return View(
            counted=tuple(counted),
            grouping=grouping,
            outcomes=outcomes,
            outputs=differences,
            judgement=judgement,
            alpha=alpha,
            tested=len(in_test) if len(in_test) < sum(map(len, outcomes.values())) else None,
            suite=suite,
        )

    def count(self, order: Order, *, capture: bool) -> int:
        """Trials of an order with or without capture."""
        return sum(1 for r in self.records if r.trial.judged and r.trial.order == order and r.trial.capture is capture)

    def observer(self, orders: Sequence[Order]) -> str:
        """Whether capture itself changes outcomes: in each order, captured against bare trials, by the exact test.

        `unclear` when the two arms of some order share no outcome, though each has but one, and their number proves
        nothing yet.
        """
        if not self.request.observer:
            return "not run"
        found = "agrees"
        counted = [record for record in self.records if record.trial.judged]
        grouping = group_records(counted, self.request.outputs)
        arms: dict[tuple[Order, bool], list[str]] = {}
        for group, record in zip(grouping.ids, counted, strict=True):
            arms.setdefault((record.trial.order, record.trial.capture), []).append(group)
        for order in orders:
            captured, bare = (arms.get((order, capture), []) for capture in (True, False))
            if len(set(captured)) == 1 == len(set(bare)) and captured[0] != bare[0]:
                if permutation_p([captured, bare]).p_value < self.request.alpha:
                    return "differs"
                found = "unclear"
        return found

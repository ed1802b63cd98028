"""The full plan: every order as often as planned, then up to the looks at which the verdict may fall."""

from __future__ import annotations

from collections.abc import Sequence

from reprocheck.compare.looks import planned_looks
from reprocheck.compare.noise import repeats_needed
from reprocheck.model import Trial
from reprocheck.plan.rounds import repeats
from reprocheck.stages.bench import Bench, View
from reprocheck.stages.request import Order

__all__ = ["full_plan"]


def full_plan(bench: Bench, orders: Sequence[Order], alpha: float | None = None, *, at_least: int = 0) -> View:
    """The verdict over all of `orders`, of which one trial each has run.

    Its looks may spend `alpha` together; all that the question has, if it isn't given. Outcomes that agree end after
    the planned repeats. Stable ones that disagree are repeated up to the first look, others up to the last. Trials
    beyond that, up to `at_least` of each order, are not in the test.
    """
    request = bench.request
    spend = request.alpha if alpha is None else alpha
    looks = planned_looks(len(orders), request.planned, request.max_repeat, spend)
    first, last = looks[0].repeats, looks[-1].repeats
    spends = dict(looks)
    done = request.planned
    bench.more(repeats(orders, 1, done, done, observer=request.observer))
    threshold = spends.get(done, 0.0)
    view = bench.view(orders, alpha=threshold, repeats=dict.fromkeys(orders, range(done)))
    while done < last:
        if view.judgement.settled and bench.observer(orders) != "unclear":
            break
        goal = first if view.judgement.stable and done < first else last
        again = repeats(orders, done, goal, request.planned, observer=request.observer)
        if any(bench.runner.done(trial) is None for trial in again):
            why = view.judgement.reason.partition(";")[0]
            bench.runner.progress.note(f"{why}: repeating each order {goal - done} more times")
        bench.more(again)
        done = goal
        # A look that was convinced stays so; what came after it was for the observer.
        threshold = threshold if _convinced(view) else spends.get(done, 0.0)
        view = bench.view(orders, alpha=threshold, repeats=dict.fromkeys(orders, range(done)))
    if done < at_least:
        bench.more(repeats(orders, done, at_least, request.planned, observer=request.observer))
        view = bench.view(orders, alpha=threshold, repeats=dict.fromkeys(orders, range(done)))
    return view


def without_capture(bench: Bench, orders: Sequence[Order], *, at_least: int = 0) -> View:
    """The verdict of trials without capture alone, where capture was found to change outcomes.

    What was decided before is given up, so this one look spends all of the question's `alpha`.
    """
    alpha = bench.request.alpha
    wanted = max(repeats_needed(len(orders), alpha), bench.request.repeat, at_least)
    have = {order: bench.count(order, capture=False) for order in orders}
    start = 1 + max(r.trial.repeat for r in bench.records if r.trial.judged)
    bench.more(
        [
            Trial(order=order, repeat=start + n, capture=False)
            for n in range(wanted)
            for order in orders
            if have[order] + n < wanted
        ]
    )
    return bench.view(orders, alpha=alpha, bare_only=True)


def _convinced(view: View) -> bool:
    test = view.judgement.permutation
    return test is not None and test.p_value < view.alpha

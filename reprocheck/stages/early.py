"""`--fail-fast`: two orders first, then every order once, then repeats only where something differs.

A divergence ends the study as soon as it is established, at one of two early looks:

1. the reference order and the one farthest from it, repeated until a stable disagreement can be told from chance;
2. when some order differs from the reference in its first trial, these two orders, on *fresh* trials alone: which
   order was picked depends on the trials before, so these must not count again.

Either look is exact over a number of trials that was fixed beforehand, and spends its share of the threshold (see
`compare.looks`). Where neither is convinced, the full plan runs with what is left of it: a study that passes has run
just what it would have run without `--fail-fast`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from reprocheck.compare.looks import EARLY
from reprocheck.compare.noise import repeats_needed
from reprocheck.model import NotRun, Struct
from reprocheck.plan.coverage import best_first
from reprocheck.plan.rounds import first_pass, repeats
from reprocheck.stages.bad_input import refuse_bad_input
from reprocheck.stages.bench import Bench, View
from reprocheck.stages.request import Order, Request

__all__ = ["Stop", "fail_fast", "first_two"]

_PAIR = 2


class Stop(Struct, frozen=True, kw_only=True):
    """The study ends here."""

    view: View
    orders: tuple[Order, ...]
    """The orders with trials, the reference first; of those that load alike the first."""
    not_run: NotRun | None


def fail_fast(bench: Bench, orders: Sequence[Order]) -> Stop | None:
    """The early end, if there is one; otherwise every order has run once.

    Raises `UsageError` for a question that can't be asked.
    """
    request = bench.request
    pair = first_two(orders, request.subjects)
    bench.more(first_pass(pair))
    refuse_bad_input(request, bench.records)
    if len(pair) == _PAIR and len(set(bench.stands().values())) == _PAIR:
        bench.more(repeats(pair, 1, request.planned, request.planned, observer=request.observer))
        view = _look(bench, pair, pair, start=0)
        if view is not None:
            return _stop(bench, view, pair, orders, f"`{_text(pair[0])}` and `{_text(pair[1])}` diverge")
    bench.more(first_pass(orders))
    stands = bench.stands()
    distinct = tuple(order for order in orders if stands[order] == order)
    if request.target.suite:
        # Its tests are judged one by one: there is no one pair of orders that tells.
        return None
    contrast = _contrast(bench.view(distinct), distinct)
    if contrast is None or contrast == pair:
        return None
    bench.runner.progress.note(f"`{_text(contrast[1])}` differs from `{_text(contrast[0])}`: repeating these two")
    view = _look(bench, contrast, distinct, start=request.planned)
    if view is None:
        return None
    return _stop(bench, view, distinct, orders, f"`{_text(contrast[0])}` and `{_text(contrast[1])}` diverge")


def first_two(orders: Sequence[Order], subjects: Order) -> tuple[Order, ...]:
    """The reference order, and the one that adds most to it: its reverse, if that is planned."""
    number = {subject: i for i, subject in enumerate(subjects)}
    ranked = best_first([tuple(number[name] for name in order) for order in orders])
    return tuple(tuple(subjects[i] for i in row) for row in ranked[:_PAIR])


def _look(bench: Bench, pair: Sequence[Order], orders: Sequence[Order], *, start: int) -> View | None:
    """What all of `orders` say when repeats of the pair from `start` on establish a divergence; None if they don't.

    Nothing is added once the pair is seen to agree, or to vary by itself.
    """
    request = bench.request
    spend = EARLY * request.alpha
    fresh = repeats_needed(_PAIR, spend)
    stop = start + max(fresh, request.planned if start == 0 else 0)
    if stop - start > max(request.max_repeat, request.planned):
        return None
    done = max(start, request.planned)
    if start == 0 and not _disagree(bench.view(pair)):
        return None
    bench.more(repeats(pair, done, stop, request.planned, observer=request.observer))
    # An exact test of two orders over their own trials; the view is that of everything that ran.
    view = bench.view(orders, alpha=spend, repeats=dict.fromkeys(pair, range(start, stop)))
    test = view.judgement.permutation
    return view if view.judgement.settled and test is not None and test.p_value < spend else None


def _disagree(view: View) -> bool:
    """Whether orders disagree in a way that repeats could establish."""
    return view.judgement.stable and not view.judgement.settled


def _contrast(view: View, orders: Sequence[Order]) -> tuple[Order, ...] | None:
    """The reference and the first order that shares no outcome with it; None where nothing is beyond tolerance."""
    if view.judgement.settled:
        return None
    reference = set(view.outcomes[orders[0]])
    other = next((order for order in orders[1:] if not reference & set(view.outcomes[order])), None)
    return None if other is None else (orders[0], other)


def _stop(bench: Bench, view: View, ran: Sequence[Order], orders: Sequence[Order], why: str) -> Stop:
    request: Request = bench.request
    ran_of = Counter(record.trial.order for record in bench.records if record.trial.judged)
    planned = request.planned * len(orders)
    used = ran_of.total()
    left = tuple(order for order in orders if not ran_of[order])
    if all(ran_of[order] >= request.planned for order in orders):
        return Stop(view=view, orders=tuple(ran), not_run=None)
    what = f"{len(left)} of {len(orders)} orders were not run" if left else "not every order was repeated"
    return Stop(
        view=view,
        orders=tuple(ran),
        not_run=NotRun(orders=left, trials=max(0, planned - used), why=f"{why}, so --fail-fast ended here: {what}"),
    )


def _text(order: Order) -> str:
    return ",".join(order)

"""`--isolation shared-prefix`: forked trials say into which groups the orders fall, fresh trials judge.

Forks of one process share its addresses, its hash seed and whatever was drawn at import, so that they agree with each
other more than fresh trials do. They are therefore good for one thing: to find orders that need no fresh trials because
others speak for them. The line itself runs on the orders chosen and knows nothing of this.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from reprocheck.compare.groups import outcome_key
from reprocheck.engine.runner import Runner
from reprocheck.engine.tree import grow, saved
from reprocheck.headline import headline, order_text
from reprocheck.line import Request, run
from reprocheck.model import Arm, Group, Record, Study, Tolerance, Trial
from reprocheck.plan.rounds import distinct_orders, first_pass
from reprocheck.plan.sharing import forked_pass, to_confirm
from reprocheck.words import counted

__all__ = ["run_sharing"]

Order = tuple[str, ...]
NOTHING = "nothing was shared (--isolation shared-prefix), all trials are fresh"
MOST_REASONS = 3


def run_sharing(request: Request, runner: Runner, tolerance_for: Callable[[str], Tolerance]) -> Study:
    """As `line.run`, with fresh trials of some orders only: those that `to_confirm` chose by forked trials of all.

    When a fresh trial is not in the group of its order's forked one, the forked ones are dropped and all orders are run
    fresh. Its errors are those of `line.run`.
    """
    if not saved(grow(forked_pass(request.orders))):
        return _noted(run(request, runner, tolerance_for), f"{NOTHING}: no two orders begin alike")
    # Bad input shows in the first trial of all, and the line has the words for it.
    reference = runner.run(first_pass(request.orders[:1]))[0]
    if not reference.outputs and (reference.failure is None or reference.failure.kind in ("target", "unsupported")):
        return run(request, runner, tolerance_for)
    seen = dict(zip(request.orders, runner.run(forked_pass(request.orders)), strict=True))
    refused = Counter(record.not_forked for record in seen.values() if record.not_forked)
    if not any(record.isolation == "forked" for record in seen.values()):
        return _noted(run(request, runner, tolerance_for), f"{NOTHING}: {_reasons(refused)}")
    stands = distinct_orders(list(seen.values()))
    keys = {order: outcome_key(seen[order], request.outputs) for order in request.orders if stands[order] == order}
    chosen = to_confirm(keys)
    runner.progress.note(
        f"forked trials fall into {counted(len(set(keys.values())), 'group')}: confirming by fresh ones"
    )
    runner.run(first_pass(chosen))
    study = None
    if _odd(request, runner, seen, chosen) is None:
        study = run(msgspec.structs.replace(request, orders=chosen), runner, tolerance_for)
    odd = _odd(request, runner, seen, chosen)
    if odd is not None or study is None:
        dropped = f"a fresh trial of `{order_text(odd or ())}` is not in the group of the forked one"
        runner.progress.note(f"{dropped}: all orders are run fresh")
        note = f"forked trials (--isolation shared-prefix) were dropped, all trials are fresh: {dropped}"
        return _noted(run(request, runner, tolerance_for), note)
    return _completed(study, request, seen, stands, keys, refused)


def _odd(request: Request, runner: Runner, seen: Mapping[Order, Record], chosen: Sequence[Order]) -> Order | None:
    """An order of which a fresh trial disagrees with the forked one."""
    for order in chosen:
        key = outcome_key(seen[order], request.outputs)
        if any(outcome_key(record, request.outputs) != key for record in _fresh(order, request, runner)):
            return order
    return None


def _fresh(order: Order, request: Request, runner: Runner) -> Iterator[Record]:
    for repeat in range(max(request.repeat, request.max_repeat) + 1):
        for capture in (True, False):
            record = runner.writer.done(Trial(order=order, repeat=repeat, capture=capture))
            if record is not None:
                yield record


def _completed(
    study: Study,
    request: Request,
    seen: Mapping[Order, Record],
    stands: Mapping[Order, Order],
    keys: Mapping[Order, object],
    refused: Mapping[str, int],
) -> Study:
    """The study with the orders that others speak for, each in its group."""
    judged = {arm.order: arm for arm in study.orders if not arm.presence}
    letters = {keys[order]: arm.group for order, arm in judged.items() if order in keys}
    arms = []
    for order in request.orders:
        stand, record = stands[order], seen[order]
        if order in judged:
            arms.append(judged[order])
            continue
        known = judged.get(stand)
        letter = letters[keys[stand]]
        groups = known.groups if known is not None else (letter,) if letter else ()
        arms.append(
            Arm(
                order=order,
                effective_order=record.effective_order or order,
                same_as=stand if stand != order else None,
                group=letter,
                groups=groups,
                trials=len(groups),
                forked=len(groups) if known is None and record.isolation == "forked" else 0,
                failures=known.failures if known is not None else int(not record.ok),
                preloaded=record.preloaded,
                pulled_in=record.pulled_in,
            )
        )
    forked = sum(arm.forked > 0 and arm.same_as is None for arm in arms)
    if forked:
        told = (
            f"{forked} of {len(keys)} orders were run once, forked from processes that share imports (--isolation "
            f"shared-prefix); the verdict stands on fresh trials of the other {len(keys) - forked}, in which each "
            "group shows, with any two subjects both ways round where it has both"
        )
    else:
        told = "forked trials (--isolation shared-prefix) spared none: to confirm them took fresh ones of every order"
    notes = [told]
    if refused:
        count = sum(refused.values())
        notes.append(f"{count} of {len(seen)} orders could not be forked and ran fresh: {_reasons(refused)}")
    completed = msgspec.structs.replace(
        study,
        orders=(*arms, *(arm for arm in study.orders if arm.presence)),
        groups=tuple(_with_arms(group, arms, judged) for group in study.groups),
        reason=f"{study.reason} (judged by fresh trials of {len(judged)} of {len(keys)} orders)",
        notes=(*study.notes, *notes),
    )
    return msgspec.structs.replace(completed, headline=headline(completed))


def _with_arms(group: Group, arms: Sequence[Arm], judged: Mapping[Order, Arm]) -> Group:
    more = [arm for arm in arms if arm.group == group.id and arm.order not in judged and arm.same_as is None]
    orders = dict.fromkeys((*group.orders, *(arm.effective_order for arm in more)))
    return msgspec.structs.replace(group, orders=tuple(orders), trials=group.trials + sum(arm.trials for arm in more))


def _noted(study: Study, note: str) -> Study:
    return msgspec.structs.replace(study, notes=(*study.notes, note))


def _reasons(refused: Mapping[str, int]) -> str:
    """What kept trials from being forked, the most frequent first."""
    found = sorted(refused, key=lambda reason: -refused[reason])
    more = f"; and {len(found) - MOST_REASONS} more reasons" if len(found) > MOST_REASONS else ""
    return "; ".join(found[:MOST_REASONS]) + more

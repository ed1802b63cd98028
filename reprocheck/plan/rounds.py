"""Which trials come next: pure functions of the plan and of what is known so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reprocheck.model import Record, Trial

__all__ = ["distinct_orders", "first_pass", "presence_pass", "repeats"]


def is_bare(repeat: int, repeat_count: int, *, observer: bool) -> bool:
    """Whether a repeat runs without capture: the last of the planned ones, then every second one.

    The bare trials are the observer arm. They are full members of their order's arm, so checking what capture does
    costs no trial of its own.
    """
    if not observer:
        return False
    if repeat < repeat_count:
        return repeat == repeat_count - 1 and repeat_count > 1
    return (repeat - repeat_count) % 2 == 0


def first_pass(orders: Sequence[tuple[str, ...]]) -> list[Trial]:
    """Every order once, captured: enough to see bad input and effective orders before the rest is spent."""
    return [Trial(order=order, repeat=0) for order in orders]


def repeats(
    orders: Sequence[tuple[str, ...]], start: int, stop: int, repeat_count: int, *, observer: bool
) -> list[Trial]:
    """Repeats `start` to `stop` (exclusive) of each order, all orders once before any twice."""
    return [
        Trial(order=order, repeat=repeat, capture=not is_bare(repeat, repeat_count, observer=observer))
        for repeat in range(start, stop)
        for order in orders
    ]


def presence_pass(subjects: Sequence[str], count: int) -> list[Trial]:
    """Each subject alone, and none at all."""
    arms: list[tuple[str, ...]] = [(), *((subject,) for subject in subjects)]
    return [Trial(order=arm, repeat=repeat, presence=True) for repeat in range(count) for arm in arms]


def distinct_orders(records: Sequence[Record]) -> Mapping[tuple[str, ...], tuple[str, ...]]:
    """Order -> the order that stands for it: the first one with the same effective order.

    An order whose imports did not all succeed stands for itself.
    """
    stands: dict[tuple[str, ...], tuple[str, ...]] = {}
    by_effective: dict[tuple[str, ...], tuple[str, ...]] = {}
    for record in records:
        order = record.trial.order
        if order in stands:
            continue
        complete = len(record.effective_order) == len(order)
        stands[order] = by_effective.setdefault(record.effective_order, order) if complete else order
    return stands

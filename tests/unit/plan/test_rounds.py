"""Which trials come next."""

from __future__ import annotations

from reprocheck.model import Record, Trial
from reprocheck.plan.rounds import distinct_orders, first_pass, presence_pass, repeats

ORDERS = (("a", "b"), ("b", "a"))


def test_first_pass_is_every_order_once_with_capture() -> None:
    assert [(t.order, t.repeat, t.capture) for t in first_pass(ORDERS)] == [(order, 0, True) for order in ORDERS]


def test_the_last_planned_repeat_is_the_observer_arm() -> None:
    planned = repeats(ORDERS, 1, 3, 3, observer=True)

    assert [(t.order, t.repeat, t.capture) for t in planned] == [
        (ORDERS[0], 1, True),
        (ORDERS[1], 1, True),
        (ORDERS[0], 2, False),
        (ORDERS[1], 2, False),
    ]


def test_further_repeats_alternate_so_that_both_arms_grow() -> None:
    further = repeats(ORDERS[:1], 3, 8, 3, observer=True)

    assert [t.capture for t in further] == [False, True, False, True, False]


def test_without_observer_everything_is_captured() -> None:
    assert all(t.capture for t in repeats(ORDERS, 1, 8, 3, observer=False))


def test_presence_is_each_subject_alone_and_none() -> None:
    assert [t.order for t in presence_pass(("a", "b"), 1)] == [(), ("a",), ("b",)]
    assert all(t.presence for t in presence_pass(("a", "b"), 2))


def record(order: str, effective: str) -> Record:
    return Record(trial=Trial(order=tuple(order), repeat=0), effective_order=tuple(effective), ok=True)


def test_orders_that_load_alike_are_one() -> None:
    stands = distinct_orders([record("abc", "abc"), record("acb", "abc"), record("bac", "bac")])

    assert stands == {
        ("a", "b", "c"): ("a", "b", "c"),
        ("a", "c", "b"): ("a", "b", "c"),
        ("b", "a", "c"): ("b", "a", "c"),
    }


def test_an_order_that_failed_midway_stands_for_itself() -> None:
    stands = distinct_orders([record("abc", "a"), record("acb", "a")])

    assert stands == {("a", "b", "c"): ("a", "b", "c"), ("a", "c", "b"): ("a", "c", "b")}

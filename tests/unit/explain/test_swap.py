from __future__ import annotations

from itertools import pairwise, permutations

import pytest
from hypothesis import given, strategies as st

from reprocheck.explain.swap import (
    Order,
    context_of,
    distance,
    find_swap,
    nearest,
    presence_of,
    swap_path,
)

orders_of_six = st.permutations("abcdef").map(tuple)


def before(order: Order, one: str, other: str) -> bool:
    return one in order and other in order and order.index(one) < order.index(other)


@given(orders_of_six, orders_of_six)
def test_the_path_goes_by_adjacent_swaps(p: Order, q: Order) -> None:
    path = swap_path(p, q)

    assert (path[0], path[-1]) == (p, q)
    assert len(path) == distance(p, q) + 1
    assert all(distance(one, two) == 1 for one, two in pairwise(path))


@given(orders_of_six, orders_of_six, st.sampled_from(list(permutations("abcdef", 2))))
def test_a_pair_that_decides_is_found_in_few_questions(p: Order, q: Order, pair: tuple[str, str]) -> None:
    asked: list[Order] = []

    def outcome(order: Order) -> str:
        asked.append(order)
        return "B" if before(order, *pair) else "A"

    if outcome(p) == outcome(q):
        with pytest.raises(ValueError, match="same outcome"):
            find_swap(p, q, outcome)
        return
    asked.clear()
    swap = find_swap(p, q, outcome)

    assert set(swap.pair) == set(pair)
    assert len(asked) <= 2 + 4, "both ends, and log2 of at most 15 steps"


@given(orders_of_six, orders_of_six)
def test_any_outcomes_have_a_flip(p: Order, q: Order) -> None:
    def outcome(order: Order) -> str:
        return {0: "A", 1: "B", 2: "C"}[sum(map(ord, "".join(order[:2]))) % 3]

    if outcome(p) != outcome(q):
        swap = find_swap(p, q, outcome)
        assert distance(swap.before, swap.after) == 1
        assert (outcome(swap.before), outcome(swap.after)) == swap.labels


def test_context_is_what_the_swap_needs() -> None:
    def outcome(order: Order) -> str:
        return "B" if before(order, "a", "b") and "d" in order else "A"

    swap = find_swap(tuple("cabde"), tuple("cbade"), outcome)

    assert swap.pair == ("a", "b")
    assert swap.others == ("c", "d", "e")
    assert context_of(swap, outcome) == ("d",)


def test_no_context_takes_one_question_of_two_orders() -> None:
    asked: list[Order] = []

    def outcome(order: Order) -> str:
        asked.append(order)
        return "B" if before(order, "a", "b") else "A"

    swap = find_swap(tuple("abcdef"), tuple("bacdef"), outcome)
    asked.clear()

    assert context_of(swap, outcome) == ()
    assert asked == [("a", "b"), ("b", "a")]


def test_nearest_pair() -> None:
    known = {("a", "b", "c"): "A", ("c", "b", "a"): "B", ("a", "c", "b"): "A", ("c", "a", "b"): "B", ("a",): "C"}

    assert nearest(known) == (("a", "c", "b"), ("c", "a", "b"))
    assert nearest({("a", "b"): "A", ("b", "a"): "A"}) is None


def test_presence() -> None:
    def outcome(order: Order) -> str:
        return "B" if "b" in order else "A"

    assert presence_of(("a", "b", "c"), outcome) == ("b",)
    assert presence_of(("a", "b", "c"), lambda _: "A") == ()

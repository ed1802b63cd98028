from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given, settings, strategies as st

from reprocheck.explain.rule import Clause, Condition, RuleList, explained, fit, orders_between, unknown_orders
from reprocheck.explain.swap import Order


def before(order: Order, one: str, other: str) -> bool:
    return order.index(one) < order.index(other)


def all_orders(subjects: str) -> list[Order]:
    return [tuple(order) for order in permutations(subjects)]


@pytest.mark.parametrize("subjects", ["ab", "abc", "abcd"])
def test_one_pair(subjects: str) -> None:
    known = {order: "B" if before(order, "b", "a") else "A" for order in all_orders(subjects)}

    rule = fit(known, rest="A")[0]

    assert rule == RuleList(
        clauses=(Clause(conditions=(Condition(place="before", subject="b", other="a"),), label="B"),), rest="A"
    )
    assert explained(rule, known) == len(known)


def test_both_readings_of_a_pair_are_kept() -> None:
    known: dict[Order, str] = {("a", "b"): "A", ("b", "a"): "B"}

    texts = {(rule.clauses[0].conditions[0].text(), rule.clauses[0].label, rule.rest) for rule in fit(known)}

    assert texts == {("`a` before `b`", "A", "B"), ("`b` before `a`", "B", "A")}


def test_two_conditions_at_once() -> None:
    known = {order: "B" if order[0] == "c" and before(order, "a", "b") else "A" for order in all_orders("abcd")}

    rule = fit(known, rest="A")[0]

    assert explained(rule, known) == 24
    assert rule.size == 2
    assert [condition.text() for condition in rule.clauses[0].conditions] == ["`a` before `b`", "`c` first"]


def test_three_groups() -> None:
    # A package that sets a variable which two others read when they are imported.
    def label(order: Order) -> str:
        return {(True, True): "B", (False, True): "C", (True, False): "D", (False, False): "A"}[
            before(order, "u", "n"), before(order, "u", "t")
        ]

    known = {order: label(order) for order in all_orders("ntu")}

    rule = fit(known, rest="A")[0]

    assert explained(rule, known) == 6
    assert rule.size <= 3
    assert rule.rest == "A"


def test_no_simple_rule_gives_the_best_short_list() -> None:
    known = {
        order: "AB"[sum(a > b for i, a in enumerate(order) for b in order[i:]) % 2] for order in all_orders("abcd")
    }

    rules = fit(known)

    assert len(rules) == 1
    assert len(rules[0].clauses) <= 3
    assert 12 <= explained(rules[0], known) < 24


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.permutations("abcde").map(tuple), min_size=2, max_size=20, unique=True),
    st.sampled_from(list(permutations("abcde", 2))),
)
def test_a_planted_pair_is_among_the_rules(orders: list[Order], pair: tuple[str, str]) -> None:
    known = {order: "B" if before(order, *pair) else "A" for order in orders}

    rules = fit(known, pair=pair, rest="A")

    assert all(explained(rule, known) == len(known) for rule in rules)
    if len(set(known.values())) == 2:
        assert rules[0].size == 1
        # Rules with one reading of the known orders differ elsewhere: an order that tells them apart is named.
        rivals = {tuple(rule.predict(order) for order in all_orders("abcde")) for rule in rules}
        between = orders_between(rules, unknown_orders("abcde", known, 120), 3)
        assert bool(between) == (len(rivals) > 1)
        assert not set(between) & set(known)


def test_nothing_known() -> None:
    with pytest.raises(ValueError, match="no order"):
        fit({})


def test_one_label_only_needs_no_clause() -> None:
    assert fit({("a", "b"): "A", ("b", "a"): "A"}) == [RuleList(clauses=(), rest="A")]


def test_unknown_orders() -> None:
    assert len(unknown_orders("abc", [("a", "b", "c")], 99)) == 5
    some = unknown_orders("abcdefghij", [], 6)
    assert len(set(some)) == 6
    assert some == unknown_orders("abcdefghij", [], 6), "equal questions get equal answers"


@pytest.mark.parametrize("n", [7, 9])
def test_many_subjects_stay_fast(n: int) -> None:
    subjects = "abcdefghi"[:n]
    known = {order: "AB"[sum(map(ord, order[::2])) % 2] for order in unknown_orders(subjects, [], 40)}

    assert fit(known)

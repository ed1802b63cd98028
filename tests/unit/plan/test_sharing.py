"""Which orders speak for the others: one of each group, and both orders of two subjects where a group has both."""

from __future__ import annotations

from itertools import combinations, permutations

from hypothesis import given, strategies as st

from reprocheck.plan.sharing import forked_pass, to_confirm

ORDERS = list(permutations("abcd"))


def pairs(order: tuple[str, ...]) -> set[tuple[str, str]]:
    return set(combinations(order, 2))


@given(st.dictionaries(st.sampled_from(ORDERS), st.sampled_from("ABC"), min_size=1))
def test_every_group_speaks_for_itself_in_all_it_has(groups: dict[tuple[str, ...], str]) -> None:
    chosen = to_confirm(groups)

    for name in set(groups.values()):
        members = [order for order, group in groups.items() if group == name]
        speaking = [order for order in members if order in chosen]
        assert members[0] in speaking
        assert set().union(*map(pairs, speaking)) == set().union(*map(pairs, members))


@given(st.dictionaries(st.sampled_from(ORDERS), st.sampled_from("ABC"), min_size=1))
def test_the_sequence_is_kept_and_nothing_is_there_twice(groups: dict[tuple[str, ...], str]) -> None:
    chosen = to_confirm(groups)

    assert list(chosen) == [order for order in groups if order in set(chosen)]


def test_one_group_of_all_orders_needs_two() -> None:
    assert to_confirm(dict.fromkeys(ORDERS, "A")) == (tuple("abcd"), tuple("dcba"))


def test_two_groups_by_one_pair_need_two_each() -> None:
    groups = {order: order.index("a") < order.index("b") for order in ORDERS}

    assert len(to_confirm(groups)) == 4


def test_two_orders_speak_for_themselves() -> None:
    assert to_confirm({("a", "b"): "A", ("b", "a"): "A"}) == (("a", "b"), ("b", "a"))


def test_forked_trials_are_told_apart_from_fresh_ones() -> None:
    assert [trial.forked for trial in forked_pass(ORDERS[:2])] == [True, True]

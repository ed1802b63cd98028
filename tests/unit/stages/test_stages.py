"""Which trials come next, and that the verdict's error stays what it is said to be."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, strategies as st

from reprocheck.compare.looks import ALPHA, EARLY, FULL, planned_looks
from reprocheck.compare.noise import permutation_p, repeats_needed
from reprocheck.model import Trial
from reprocheck.plan.rounds import first_pass
from reprocheck.stages.early import fail_fast, first_two
from reprocheck.stages.full import full_plan
from reprocheck.stages.request import Order
from tests.unit.stages.faking import bench, flaky, request

ORDERS: tuple[Order, ...] = tuple(itertools.permutations("abc"))
FOUR: tuple[Order, ...] = tuple(itertools.permutations("abcd"))


@given(st.integers(1, 50), st.integers(1, 20), st.integers(1, 40))
def test_looks_share_one_threshold_and_come_in_order(orders: int, planned: int, most: int) -> None:
    looks = planned_looks(orders, planned, most)
    assert sum(look.alpha for look in looks) == pytest.approx(ALPHA)
    assert all(look.alpha > 0 for look in looks)
    assert [look.repeats for look in looks] == sorted({look.repeats for look in looks})
    assert looks[-1].repeats == max(planned, most)
    assert looks[0].repeats >= planned


def test_the_early_looks_and_the_full_plan_spend_the_whole_threshold() -> None:
    assert pytest.approx(1.0) == 2 * EARLY + FULL


@given(st.integers(2, 30))
def test_the_first_look_can_tell_any_stable_split_in_two(orders: int) -> None:
    look = planned_looks(orders, 3, 10)[0]
    for one in {1, orders // 2}:
        split = [["A"] * look.repeats] * one + [["B"] * look.repeats] * (orders - one)
        assert permutation_p(split).p_value < look.alpha


# --- the full plan ----------------------------------------------------------------------------------------------


def test_agreeing_outcomes_end_after_the_planned_repeats() -> None:
    work, runner = bench(request(ORDERS), lambda _: "")
    work.more(first_pass(ORDERS))
    assert full_plan(work, ORDERS).judgement.verdict == "identical"
    assert len(runner.trials) == 18


def test_two_stable_orders_are_told_apart_at_the_first_look() -> None:
    pair = (("a", "b"), ("b", "a"))
    work, runner = bench(request(pair), lambda trial: "x" if trial.order == pair[1] else "")
    work.more(first_pass(pair))
    view = full_plan(work, pair)
    assert view.judgement.verdict == "fails-in-some-orders"
    assert len(runner.trials) == 10
    assert view.alpha == pytest.approx(0.8 * ALPHA)


def test_varying_outcomes_go_to_the_last_look() -> None:
    pair = (("a", "b"), ("b", "a"))
    work, runner = bench(request(pair), lambda trial: "x" if trial.repeat % 2 else "")
    work.more(first_pass(pair))
    view = full_plan(work, pair)
    assert view.judgement.verdict == "noisy"
    assert view.alpha == pytest.approx(0.2 * ALPHA)
    assert len(runner.trials) == 20


# --- fail-fast --------------------------------------------------------------------------------------------------


def test_it_begins_with_the_reference_and_its_reverse() -> None:
    assert first_two(FOUR, FOUR[0]) == (tuple("abcd"), tuple("dcba"))
    assert first_two(FOUR[:2], FOUR[0]) == FOUR[:2]


def test_a_divergence_of_the_first_two_ends_it() -> None:
    work, runner = bench(request(FOUR), lambda trial: "x" if trial.order[0] == "d" else "")
    stop = fail_fast(work, FOUR)
    assert stop is not None
    assert stop.view.judgement.verdict == "fails-in-some-orders"
    assert {trial.order for trial in runner.trials} == {tuple("abcd"), tuple("dcba")}
    assert len(runner.trials) == 2 * repeats_needed(2, EARLY * ALPHA) == 12
    assert stop.not_run is not None
    assert len(stop.not_run.orders) == 22
    assert stop.not_run.trials == 72 - 12
    assert "22 of 24 orders were not run" in stop.not_run.why


def test_an_early_end_that_spared_nothing_is_not_told_as_one() -> None:
    work, runner = bench(request(FOUR[:2]), lambda trial: "x" if trial.order == FOUR[0] else "")
    stop = fail_fast(work, FOUR[:2])
    assert stop is not None
    assert len(runner.trials) == 12
    assert stop.not_run is None


def test_a_divergence_of_another_order_is_established_on_fresh_trials_of_two_orders() -> None:
    bad = tuple("bacd")
    work, runner = bench(request(FOUR), lambda trial: "x" if trial.order == bad else "")
    stop = fail_fast(work, FOUR)
    assert stop is not None
    counts = {order: sum(trial.order == order for trial in runner.trials) for order in FOUR}
    assert counts.pop(bad) == 7, "one that made it suspect, six that count"
    assert counts.pop(FOUR[0]) == 9
    assert counts.pop(tuple("dcba")) == 3
    assert set(counts.values()) == {1}
    assert stop.view.tested == 12
    assert stop.view.judgement.permutation is not None
    assert stop.view.judgement.permutation.p_value == pytest.approx(2 / 924)
    assert stop.not_run is not None
    assert stop.not_run.orders == ()
    assert "not every order was repeated" in stop.not_run.why


def test_without_a_divergence_the_full_plan_runs() -> None:
    work, runner = bench(request(FOUR), lambda _: "")
    assert fail_fast(work, FOUR) is None
    assert full_plan(work, FOUR, FULL * ALPHA).judgement.verdict == "identical"
    assert len(runner.trials) == 72
    assert len(set(map(str, runner.trials))) == 72, "no trial twice"


def test_noise_does_not_end_it() -> None:
    work, _ = bench(request(ORDERS), lambda trial: "x" if trial.repeat % 2 else "")
    assert fail_fast(work, ORDERS) is None


def test_too_few_repeats_allowed_is_no_reason_to_decide_early() -> None:
    work, runner = bench(request(ORDERS, max_repeat=3), lambda trial: "x" if trial.order[0] == "c" else "")
    assert fail_fast(work, ORDERS) is None
    assert all(trial.repeat < 3 for trial in runner.trials)


# --- how often it errs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize(("count", "rate"), [(2, 0.5), (2, 0.1), (4, 0.3)])
def test_noise_is_seldom_taken_for_an_order_effect(count: int, rate: float, early: bool) -> None:
    """Where the order means nothing, at most `ALPHA` of studies say that it does, whenever they end."""
    studies, wrong = 400, 0
    orders = FOUR[:count]
    for seed in range(studies):
        work, _ = bench(request(orders, fail_fast=early), flaky(seed, rate))
        stop = fail_fast(work, orders) if early else None
        if stop is None:
            work.more(first_pass(orders))
        view = stop.view if stop is not None else full_plan(work, orders, (FULL if early else 1) * ALPHA)
        wrong += view.judgement.verdict not in ("identical", "noisy", "inconclusive", "fails-everywhere")
    # 1 % of 400 is 4, with a standard deviation of 2; what repeated looks at 1 % each would give is about 4 %.
    assert wrong <= 4 + 3 * 2


def test_one_trial_is_one_trial() -> None:
    work, runner = bench(request(ORDERS), lambda _: "")
    trial = Trial(order=ORDERS[0], repeat=0)
    work.more([trial])
    work.more([trial])
    assert runner.trials == [trial]

"""A suite's trials, judged test by test."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from reprocheck.compare.suite import SuiteView, judge_suite
from reprocheck.headline import outcomes_text
from reprocheck.model import Failure, Output, OutputDifference, Record, Trial
from reprocheck.store.objects import ObjectStore

A, B = ("a", "b"), ("b", "a")
Tests = dict[str, str]
"""Test -> its outcome; after an equals sign what it recorded, after a slash its failure text."""


@pytest.fixture
def judged(tmp_path: Path) -> Callable[..., SuiteView]:
    objects = ObjectStore(tmp_path / "objects")

    def text(name: str, value: str) -> Output:
        data = value.encode()
        header = {"__metadata__": {"dtype": "str"}}
        header |= {"value": {"dtype": "U8", "shape": [len(data)], "data_offsets": [0, len(data)]}}  # type: ignore[dict-item]
        head = json.dumps(header).encode()
        head += b" " * (-len(head) % 8)
        (tmp_path / "file").write_bytes(len(head).to_bytes(8, "little") + head + data)
        digest = objects.take(tmp_path / "file")
        return Output(name=name, dtype="str", shape=(len(data),), nbytes=len(data), digest=digest)

    def record(order: tuple[str, ...], repeat: int, tests: Tests, crash: str | None) -> Record:
        outputs = []
        for test, told in tests.items():
            outcome, _, failure = told.partition("/")
            outcome, _, value = outcome.partition("=")
            if value:
                outputs.append(text(f"{test} :: y", value))
            outputs.append(text(f"{test} :: (outcome)", outcome))
            if failure:
                outputs.append(text(f"{test} :: (failure)", failure))
        dead = Failure(kind="signal", phase="running", signature=crash, message=crash) if crash else None
        return Record(
            trial=Trial(order=order, repeat=repeat),
            effective_order=order,
            ok=crash is None,
            failure=dead,
            outputs=tuple(outputs),
        )

    def judge(
        first: list[Tests], second: list[Tests], *, crash: str | None = None, rows: tuple[OutputDifference, ...] = ()
    ) -> SuiteView:
        runs: dict[tuple[str, ...], list[Record]] = {
            A: [record(A, number, tests, None) for number, tests in enumerate(first)],
            B: [record(B, number, tests, crash) for number, tests in enumerate(second)],
        }
        return judge_suite(runs, rows, objects)

    return judge


def verdicts(view: SuiteView) -> dict[str, str]:
    return {item.test: item.verdict for item in view.suite.differing}


def test_all_alike(judged: Callable[..., SuiteView]) -> None:
    tests = {"t": "passed", "u": "failed/E no", "v": "skipped"}

    view = judged([tests] * 3, [tests] * 3)

    assert (view.judgement.verdict, view.suite.tests) == ("identical", 3)
    assert view.suite.differing == ()
    assert view.suite.failing == ("u",)


def test_each_test_by_itself_and_the_worst_first(judged: Callable[..., SuiteView]) -> None:
    first = {"flips": "passed", "texts": "failed/E 1", "skips": "passed", "same": "passed"}
    second = {"flips": "failed/E x", "texts": "failed/E 2", "skips": "skipped", "same": "passed"}

    view = judged([first] * 5, [second] * 5)

    assert view.judgement.verdict == "fails-in-some-orders"
    assert view.judgement.settled
    assert verdicts(view) == {
        "flips": "fails-in-some-orders",
        "texts": "order-dependent",
        "skips": "order-dependent",
    }
    assert view.suite.differing[0].failure == "E x"
    assert outcomes_text(view.suite.differing[0]) == "passed in `a,b`; failed in `b,a`"
    assert outcomes_text(view.suite.differing[1]) == "failed in every order, with another text"


def test_few_repeats_settle_nothing(judged: Callable[..., SuiteView]) -> None:
    view = judged([{"t": "passed"}] * 3, [{"t": "failed/E"}] * 3)

    assert view.judgement.verdict == "inconclusive"
    assert view.judgement.stable
    assert not view.judgement.settled


def test_noise_in_one_test_does_not_hide_another_but_asks_for_more(judged: Callable[..., SuiteView]) -> None:
    def trials(outcome: str, seed: int, count: int) -> list[Tests]:
        return [{"flips": outcome, "noisy": f"failed/E {seed + n}"} for n in range(count)]

    five = judged(trials("passed", 0, 5), trials("failed/E", 100, 5))
    six = judged(trials("passed", 0, 6), trials("failed/E", 100, 6))

    assert verdicts(five) == {"flips": "inconclusive", "noisy": "noisy"}, "p = 0.0079 is one chance in two of 0.01"
    assert verdicts(six) == {"flips": "fails-in-some-orders", "noisy": "noisy"}
    assert not five.judgement.settled
    assert not six.judgement.stable
    assert six.judgement.verdict == "fails-in-some-orders"


def test_a_crash_is_the_trials_own_and_what_ended_before_still_counts(judged: Callable[..., SuiteView]) -> None:
    view = judged(
        [{"before": "passed", "after": "passed"}] * 5, [{"before": "failed/E"}] * 5, crash="signal:11 @ running after"
    )

    assert view.judgement.verdict == "fails-in-some-orders"
    assert verdicts(view) == {"before": "fails-in-some-orders"}, "what never ran did not differ"


def test_a_test_that_is_collected_in_one_order_only_differs(judged: Callable[..., SuiteView]) -> None:
    view = judged([{"t": "passed", "extra": "passed"}] * 5, [{"t": "passed"}] * 5)

    assert verdicts(view) == {"extra": "order-dependent"}
    assert outcomes_text(view.suite.differing[0]) == "passed in `a,b`; not run in `b,a`"


def test_recorded_values_within_the_tolerance(judged: Callable[..., SuiteView]) -> None:
    row = OutputDifference(name="t :: y", dtype="float64", shape=(), differs=True, within=True)
    first, second = [{"t": "passed=1"}] * 5, [{"t": "passed=2"}] * 5

    assert judged(first, second, rows=(row,)).judgement.verdict == "within-tolerance"
    assert judged(first, second).judgement.verdict == "order-dependent"
    assert judged(first, [{"t": "failed=2/E"}] * 5, rows=(row,)).judgement.verdict == "fails-in-some-orders"

"""Conditions: how they are written, and what they make of studies, trials and commands."""

from __future__ import annotations

from typing import Any, cast

import pytest

from reprocheck.bisect.conditions import Condition, judge_exit, judge_record, judge_study, parse_condition
from reprocheck.errors import HarnessError, UsageError
from reprocheck.model import Failure, Noise, Record, Stream, Study, Target, Trial

NOTHING = Stream(text="", nbytes=0)


def printed(text: str) -> Stream:
    return Stream(text=text, nbytes=len(text))


def record(status: int = 0, *, kind: str | None = None, message: str = "", out: str = "") -> Record:
    failure = None
    if kind is not None:
        failure = Failure(kind=cast("Any", kind), phase="x", signature="s", message=message)
    return Record(
        trial=Trial(order=(), repeat=0),
        effective_order=(),
        ok=failure is None,
        failure=failure,
        exit_status=status,
        stdout=printed(out),
    )


def study(verdict: str) -> Study:
    return Study(
        reprocheck_version="0",
        verdict=cast("Any", verdict),
        exit_code=0,
        headline=f"{verdict}: …",
        reason="",
        workload="w",
        target=Target(text="w", kind="nothing"),
        subjects=(),
        subjects_from="",
        orders=(),
        plan="",
        groups=(),
        outputs=(),
        noise=Noise(p_value=None, repeats=0, trials=0),
    )


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        (None, "order-dependent", ""),
        ("order-dependent", "order-dependent", ""),
        ("drift", "drift", ""),
        ("state:environ.now.OMP_NUM_THREADS", "state", "environ.now.OMP_NUM_THREADS"),
        ("verdict:noisy", "verdict", "noisy"),
        ("exit:-11", "exit", "-11"),
        ("match:nan: loss", "match", "nan: loss"),
    ],
)
def test_conditions_are_read(text: str | None, kind: str, value: str) -> None:
    condition = parse_condition(text, check=False)

    assert (condition.kind, condition.value) == (kind, value)
    assert text is None or condition.text == text
    assert condition.words


def test_a_check_decides_by_its_status() -> None:
    assert parse_condition(None, check=True).kind == "check"
    assert parse_condition("exit:3", check=True).kind == "exit"


@pytest.mark.parametrize(
    ("text", "check", "says"),
    [
        ("drft", False, "did you mean `drift`"),
        ("state", False, "lacks its value"),
        ("drift:1", False, "no condition"),
        ("verdict:nosy", False, "did you mean `noisy`"),
        ("exit:three", False, "no exit status"),
        ("drift", True, "the command decides"),
    ],
)
def test_misspelt_conditions_are_refused(text: str, check: bool, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        parse_condition(text, check=check)


@pytest.mark.parametrize(
    ("verdict", "bad"),
    [
        ("order-dependent", True),
        ("order-dependent-with-noise", True),
        ("fails-in-some-orders", True),
        ("identical", False),
        ("within-tolerance", False),
        ("noisy", None),
        ("fails-everywhere", None),
        ("inconclusive", None),
    ],
)
def test_order_dependence_by_verdict(verdict: str, bad: bool | None) -> None:
    assert judge_study(Condition(kind="order-dependent"), study(verdict))[0] is bad


def test_a_named_verdict() -> None:
    noisy = Condition(kind="verdict", value="noisy")

    assert judge_study(noisy, study("noisy"))[0] is True
    assert judge_study(noisy, study("order-dependent"))[0] is False
    assert judge_study(noisy, study("fails-everywhere"))[0] is None
    assert judge_study(noisy, study("inconclusive"))[0] is None
    assert judge_study(Condition(kind="verdict", value="fails-everywhere"), study("fails-everywhere"))[0] is True


def test_a_trial_by_its_status() -> None:
    condition = Condition(kind="exit", value="3")

    assert judge_record(condition, record(3, kind="exit", message="status 3")) == (True, "status 3")
    assert judge_record(condition, record(0))[0] is False
    assert judge_record(condition, record(1, kind="exception", message="ImportError: x")) == (
        None,
        "fails otherwise: ImportError: x",
    )
    assert judge_record(condition, record(3, kind="timeout", message="no end"))[0] is None


def test_a_trial_by_what_it_says() -> None:
    condition = Condition(kind="match", value="nan")

    assert judge_record(condition, record(out="loss nan"))[0] is True
    assert judge_record(condition, record(1, kind="exception", message="ValueError: nan"))[0] is True
    assert judge_record(condition, record(out="loss 1"))[0] is False
    assert judge_record(condition, record(1, kind="exception", message="ValueError: x"))[0] is None


def test_a_workload_that_is_not_there_is_a_wrong_question() -> None:
    with pytest.raises(UsageError, match="no function"):
        judge_record(Condition(kind="match", value="x"), record(1, kind="target", message="no function `f`"))


@pytest.mark.parametrize(("status", "bad"), [(0, False), (1, True), (77, True), (124, True), (125, None)])
def test_a_check_by_its_status(status: int, bad: bool | None) -> None:
    assert judge_exit(Condition(kind="check"), status, NOTHING, NOTHING, timed_out=False)[0] is bad


@pytest.mark.parametrize("status", [126, 127, 128, 139, 255, -9, -11])
def test_a_broken_check_blames_nobody(status: int) -> None:
    with pytest.raises(HarnessError, match="says nothing about the version"):
        judge_exit(Condition(kind="check"), status, NOTHING, printed("sh: nope: not found"), timed_out=False)


def test_a_status_that_is_asked_for_is_no_broken_check() -> None:
    crash = Condition(kind="exit", value="-11")

    assert judge_exit(crash, -11, NOTHING, NOTHING, timed_out=False)[0] is True
    assert judge_exit(crash, 0, NOTHING, NOTHING, timed_out=False)[0] is False
    assert judge_exit(crash, 1, NOTHING, NOTHING, timed_out=False)[0] is None


def test_a_check_that_fails_for_another_reason_is_not_blamed() -> None:
    condition = Condition(kind="match", value="drift!")

    assert judge_exit(condition, 1, printed("drift!"), NOTHING, timed_out=False)[0] is True
    assert judge_exit(condition, 1, NOTHING, printed("ImportError"), timed_out=False)[0] is None
    assert judge_exit(condition, 0, NOTHING, NOTHING, timed_out=False)[0] is False
    assert judge_exit(condition, -6, NOTHING, NOTHING, timed_out=True)[0] is None

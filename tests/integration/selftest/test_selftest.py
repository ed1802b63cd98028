"""The self-test on a few faults: it sees what is planted, and says so honestly when it does not."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from reprocheck.cli.selftest import command
from reprocheck.selftest import run as selftest
from reprocheck.selftest.faults import FAULTS
from reprocheck.selftest.planted import Fault

BY_NAME = {fault.name: fault for fault in FAULTS}


@pytest.mark.parametrize(
    "name",
    [
        "variable set behind Python's back",
        "two variables that matter only together",
        "flush-to-zero set by one, reset by the other",
        "a function replaced by both",
        "two libraries of one SONAME",
        "a library that only the other one brings",
        "a value kept deep inside a package",
        "the first of three decides",
        "seeds that agree",
        "fails in every order",
    ],
)
def test_planted_is_found(name: str) -> None:
    fault = BY_NAME[name]
    why = selftest.missing(fault)
    if why is not None:
        pytest.skip(why)

    result = selftest.run_selftest(faults=[fault])

    (case,) = result.cases
    assert result.passed, case
    assert case.rule in (True, None)
    assert case.place in (True, None)
    assert case.remedy in (True, None)


@pytest.mark.parametrize("name", ["variable read at import", "the time", "nothing"])
def test_planted_is_found_by_forked_trials_too(name: str) -> None:
    result = selftest.run_selftest(faults=[BY_NAME[name]], isolation="shared-prefix")

    assert result.passed, result.cases
    assert result.isolation == "shared-prefix"


def test_a_wrong_claim_fails_the_test() -> None:
    fault: Fault = replace(BY_NAME["variable read at import"], causes=frozenset({"process.random_state"}))

    result = selftest.run_selftest(faults=[fault])

    assert not result.passed
    assert (result.recall, result.precision) == (0.5, 0.5)


def test_what_cannot_show_here_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(selftest._NEEDS, "cores", (lambda: False, "one core"))

    result = selftest.run_selftest(faults=[BY_NAME["affinity"]])

    assert result.cases == ()
    assert [(item.what, item.why) for item in result.not_checked if item.what == "affinity"] == [
        ("affinity", "one core")
    ]


def test_the_command_prints_json_and_its_exit_status(monkeypatch: pytest.MonkeyPatch) -> None:
    run = selftest.run_selftest
    monkeypatch.setattr(
        selftest, "run_selftest", lambda **options: run(faults=[BY_NAME["nothing"]], told=options["told"])
    )

    done = CliRunner().invoke(command, ["--quick", "--format", "json", "--quiet"])

    assert done.exit_code == 0, done.output
    document = json.loads(done.output)
    assert document.keys() >= {"planted", "found", "recall", "precision", "trials", "not_checked", "cases"}
    assert (document["planted"], document["found"], document["recall"]) == (1, 1, 1.0)

"""The trial's plugin: it accepts what the real one offers, and reads outcomes as pytest reports them."""

from __future__ import annotations

import inspect
from types import SimpleNamespace
from typing import Any

import pytest

from reprocheck import pytest_plugin
from reprocheck.compare import suite
from reprocheck.pytest_plugin import hooks
from reprocheck.pytest_plugin.options import OPTIONS
from reprocheck.worker import pytest_target


def test_it_knows_the_same_options_marker_hooks_and_fixtures() -> None:
    assert set(pytest_target.OPTIONS) == {option.flag for option in OPTIONS if option.metavar}
    assert set(pytest_target.FLAGS) == {option.flag for option in OPTIONS if not option.metavar}
    assert set(pytest_target.INI) == {option.ini for option in OPTIONS}
    assert pytest_target.MARKER == pytest_plugin.MARKER
    for name in hooks.__all__:
        theirs = inspect.signature(getattr(hooks, name)).parameters
        ours = inspect.signature(getattr(pytest_target.HookSpecs, name)).parameters
        assert ["self", *theirs] == list(ours)
    for name in pytest_plugin.__all__:
        assert callable(getattr(pytest_target.Plugin, name))


def test_names_of_outputs_are_read_as_they_are_written() -> None:
    assert pytest_target.SEPARATOR == suite.SEPARATOR
    assert (pytest_target.OUTCOME, pytest_target.FAILURE, pytest_target.REASON) == (
        suite.OUTCOME,
        suite.FAILURE,
        suite.REASON,
    )
    assert suite.split_name("t.py::test[a :: b] :: loss[0]") == ("t.py::test[a :: b]", "loss[0]")
    assert suite.split_name("loss") == ("", "loss")


def report(when: str, outcome: str, **more: Any) -> SimpleNamespace:
    return SimpleNamespace(
        when=when,
        outcome=outcome,
        failed=outcome == "failed",
        skipped=outcome == "skipped",
        **{"longreprtext": f"{when} {outcome}", "longrepr": ("file", 1, "Skipped: why"), **more},
    )


SETUP, CALL, TEARDOWN = (report(when, "passed") for when in ("setup", "call", "teardown"))


@pytest.mark.parametrize(
    ("reports", "expected"),
    [
        ([SETUP, CALL, TEARDOWN], ("passed", "(failure)", "")),
        ([report("setup", "failed"), TEARDOWN], ("error", "(failure)", "setup failed")),
        ([SETUP, report("call", "failed"), TEARDOWN], ("failed", "(failure)", "call failed")),
        ([SETUP, report("call", "failed"), report("teardown", "failed")], ("failed", "(failure)", "call failed")),
        ([SETUP, CALL, report("teardown", "failed")], ("error", "(failure)", "teardown failed")),
        ([report("setup", "skipped"), TEARDOWN], ("skipped", "(reason)", "why")),
        ([SETUP, report("call", "skipped", longrepr="odd"), TEARDOWN], ("skipped", "(reason)", "odd")),
        ([SETUP, report("call", "skipped", wasxfail="known"), TEARDOWN], ("xfailed", "(reason)", "known")),
        ([SETUP, report("call", "passed", wasxfail="known"), TEARDOWN], ("xpassed", "(failure)", "")),
        ([SETUP, report("call", "rerun"), TEARDOWN, SETUP, CALL, TEARDOWN], ("passed", "(failure)", "")),
        ([], ("error", "(failure)", "")),
    ],
)
def test_outcome_of_a_test(reports: list[SimpleNamespace], expected: tuple[str, str, str]) -> None:
    assert pytest_target.summary(reports) == expected

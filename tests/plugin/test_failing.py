"""Failing in the right place: in the call phase, as an AssertionError of its own class, so that xfail documents it."""

from __future__ import annotations

import sys

from tests.plugin.conftest import Inner

pytest_plugins = ["pytester"]

KNOWN = """
    import pytest
    from reprocheck import DivergenceError, HarnessError

    known = pytest.mark.xfail(strict=True, raises=DivergenceError, reason="upstream issue 1234")

    @known
    @pytest.mark.reprocheck(imports=["a", "b"])
    def test_marked(record):
        import state
        record("y", state.value)

    @known
    def test_called(reprocheck):
        reprocheck("work.py::differs", imports=["a", "b"]).assert_identical()

    @pytest.mark.xfail(strict=True, raises=AssertionError)
    def test_as_assertion(reprocheck):
        reprocheck("work.py::differs", imports=["a", "b"]).assert_identical()
"""


def test_a_known_divergence_is_documented_by_xfail_and_its_repair_is_reported(inner: Inner) -> None:
    inner.write(test_it=KNOWN)

    result = inner.run("-rx")

    result.assert_outcomes(xfailed=3)
    result.stdout.fnmatch_lines(["XFAIL test_it.py::test_marked - upstream issue 1234"])

    inner.write(b="import state\nif state.value is None: state.value = 1.0")  # upstream repairs it
    result = inner.run("-rf")

    result.assert_outcomes(failed=3)
    result.stdout.fnmatch_lines(["[[]XPASS(strict)[]] upstream issue 1234"])


def test_the_failure_says_why_and_what_to_do_unless_the_divergence_is_known(inner: Inner) -> None:
    inner.write(
        test_it="""
            import pytest
            from reprocheck import DivergenceError

            def test_new(reprocheck):
                reprocheck("work.py::differs", imports=["a", "b"]).assert_identical()

            @pytest.mark.xfail(strict=True, raises=DivergenceError)
            def test_known(reprocheck):
                outcome = reprocheck("work.py::differs", imports=["a", "b"])
                print("explained:", outcome.study.rule is not None)
                outcome.assert_identical()
        """
    )

    result = inner.run("-rx", "-s", explain=True)

    result.assert_outcomes(failed=1, xfailed=1)
    result.stdout.fnmatch_lines(
        [
            "*explained: False*",
            "E *DivergenceError: order-dependent: *",
            "E         rule *`b` before `a`*",
            "E         cause *changed by `import b` (b.py)*",
            "E         remedy *import `a` first; tried: all 2 orders agree*",
            "E         again *",
        ]
    )


def test_a_fault_of_the_harness_is_never_hidden(inner: Inner) -> None:
    # A Python, by what it says of itself, that starts no worker.
    broken = inner.path / "python"
    broken.write_text(f'#!/bin/sh\n[ "$1" = -I ] && exec {sys.executable} "$@"\nexit 9\n')
    broken.chmod(0o755)
    inner.write(
        test_it="""
            import pytest
            from reprocheck import DivergenceError

            PYTHON = {"imports": ["a", "b"], "python": "./python"}

            @pytest.mark.xfail(raises=DivergenceError)
            @pytest.mark.reprocheck(**PYTHON)
            def test_marked(): ...

            @pytest.mark.xfail(strict=True)
            @pytest.mark.reprocheck(**PYTHON)
            def test_whatever_it_raises(): ...

            @pytest.mark.xfail
            def test_called(reprocheck):
                reprocheck("work.py::same", **PYTHON).assert_identical()

            # Two runs of two orders prove nothing: no verdict is no divergence.
            @pytest.mark.xfail
            def test_no_verdict(reprocheck):
                reprocheck("work.py::differs", ["a", "b"], repeat=2, max_repeat=2).assert_identical()
        """
    )

    result = inner.run("-rf")

    result.assert_outcomes(failed=4)
    result.stdout.fnmatch_lines(
        [
            "FAILED *test_marked - reprocheck.HarnessError: the worker did*",
            "FAILED *test_whatever_it_raises - reprocheck.HarnessError: the*",
            "FAILED *test_called - reprocheck.HarnessError: the worker did*",
            "FAILED *test_no_verdict - reprocheck.HarnessError: inconclusive*",
        ]
    )


def test_the_process_that_runs_checks_may_die(inner: Inner) -> None:
    inner.write(
        conftest="""
            import os, signal
            from reprocheck.pytest_plugin.state import STATE

            def kill(config):
                checker = config.stash[STATE].checker
                os.kill(checker._process.pid, signal.SIGKILL)
        """,
        test_it="""
            from conftest import kill

            FEW = {"imports": ["a", "b"], "repeat": 1, "observer": False}

            def test_before(reprocheck, request):
                reprocheck("work.py::same", **FEW).assert_identical()
                kill(request.config)

            def test_told(reprocheck):
                reprocheck("work.py::same", **FEW).assert_identical()

            def test_after(reprocheck):
                reprocheck("work.py::same", **FEW).assert_identical()
        """,
    )

    result = inner.run("-v")

    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["E *HarnessError: the process that runs checks ended with status -9: *"])


def test_failures_of_other_tests_stay_as_they_are(inner: Inner) -> None:
    inner.write(
        test_it="""
            import pytest

            def test_plain(record):
                assert record("x", 1) == 2

            @pytest.mark.xfail
            def test_expected():
                assert 0
        """
    )

    result = inner.run()

    result.assert_outcomes(failed=1, xfailed=1)
    result.stdout.fnmatch_lines(['>       assert record("x", 1) == 2', "E       AssertionError: assert 1 == 2"])
    assert not (inner.path / ".reprocheck").exists()

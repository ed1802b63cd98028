"""`@pytest.mark.reprocheck`: the test's own body runs in fresh interpreters, with all that belongs to it."""

from __future__ import annotations

import pytest

from tests.plugin.conftest import Inner

pytest_plugins = ["pytester"]


def test_the_body_runs_in_trials_with_fixtures_conftest_and_parametrisation(inner: Inner) -> None:
    inner.write(
        conftest="""
            import os, pytest

            @pytest.fixture
            def scale():
                with open("pids", "a") as file:
                    file.write(f"{os.getpid()}\\n")
                return 2.0
        """,
        test_it="""
            import os, pytest
            from reprocheck import record as reprocheck_record

            class TestIt:
                @pytest.mark.parametrize("n", [1, 3], ids=["one", "a [b] :: c"])
                @pytest.mark.reprocheck(imports=["a", "b"], repeat=2, observer=False)
                def test_scaled(self, scale, n, record, tmp_path, monkeypatch):
                    assert scale == 2.0
                    assert record("n", [n, scale * n])[0] == n
                    reprocheck_record("m", n)

            def test_outside():
                with open("pid", "w") as file:
                    file.write(str(os.getpid()))
        """,
    )

    result = inner.run("--reprocheck-json=out.json")

    result.assert_outcomes(passed=3)
    pids = (inner.path / "pids").read_text().split()
    assert len(pids) == len(set(pids)) == 8, "2 parameters x 2 orders x 2 repeats, each in its own process"
    assert (inner.path / "pid").read_text() not in pids, "never in the test process"
    studies = inner.studies()
    assert set(studies) == {"test_it.py::TestIt::test_scaled[one]", "test_it.py::TestIt::test_scaled[a [b] :: c]"}
    (study,) = studies["test_it.py::TestIt::test_scaled[a [b] :: c]"]
    assert study["verdict"] == "identical"
    assert [output["name"] for output in study["outputs"]] == ["n[0]", "n[1]", "m", "(outcome)"]


def test_recorded_values_that_differ_fail_the_test(inner: Inner) -> None:
    inner.write(
        test_it="""
            import pytest

            @pytest.mark.reprocheck(["a", "b"])
            def test_value(record):
                import state
                record("y", state.value)
        """
    )

    result = inner.run()

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "order-dependent: 1 of 2 outputs differ between `b,a` and `a,b`; stable within each order*p = 0.008*",
            "  workload *test_it.py::test_value",
            "  group A *`a,b`*5 runs, the reference*",
            "  group B *`b,a`*5 runs*",
            "  output *y  float64*1 of 1 differ*by up to 1 ulp*first: 1.0000000000000002 != 1.0",
            "  passes at *--ulp 1",
            "  repeats *each order run 5 times, stable within an order: not noise",
            "  again *reprocheck pytest --imports a,b -- test_it.py::test_value",
            "  run folder *.reprocheck/runs/*",
            "FAILED test_it.py::test_value - reprocheck.DivergenceError: order-*",
        ]
    )
    assert "Traceback" not in result.stdout.str()
    assert "pytest_plugin" not in result.stdout.str(), "no frame of ours"


def test_passing_in_one_order_and_failing_in_another_is_a_divergence(inner: Inner) -> None:
    inner.write(
        test_it="""
            import pytest
            from reprocheck import DivergenceError

            @pytest.mark.reprocheck(imports=["a", "b"])
            def test_value():
                import state
                assert state.value == 1.0, "expected the value of a"

            @pytest.mark.xfail(strict=True, raises=DivergenceError)
            @pytest.mark.reprocheck(imports=["a", "b"])
            def test_known():
                import state
                assert state.value == 1.0
        """
    )

    result = inner.run()

    result.assert_outcomes(failed=1, xfailed=1)
    result.stdout.fnmatch_lines(
        [
            "fails-in-some-orders: `b,a`: AssertionError: expected the value of a*; `a,b` does not*",
            "in `b,a`:",
            ">       assert state.value == 1.0, *",
            "E       AssertionError: expected the value of a",
        ]
    )


def test_a_test_that_fails_everywhere_shows_its_own_failure_and_is_no_divergence(inner: Inner) -> None:
    inner.write(
        test_it="""
            import pytest
            from reprocheck import DivergenceError

            @pytest.mark.xfail(raises=DivergenceError)
            @pytest.mark.reprocheck(imports=["a", "b"])
            def test_wrong():
                numbers = [1, 2]
                assert numbers == [1, 3]
        """
    )

    result = inner.run()

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["fails-everywhere: AssertionError: assert *", ">       assert numbers == *", "E *At index 1 diff: 2 != 3"]
    )


def test_a_test_that_skips_itself_everywhere_is_skipped(inner: Inner) -> None:
    inner.write(
        test_it="""
            import pytest

            @pytest.mark.reprocheck(imports=["a", "b"], repeat=1, observer=False)
            def test_later():
                pytest.skip("not on this machine")

            @pytest.mark.skip(reason="never")
            @pytest.mark.reprocheck(imports=["a", "b"])
            def test_never():
                raise SystemExit
        """
    )

    result = inner.run("-rs")

    result.assert_outcomes(skipped=2)
    result.stdout.fnmatch_lines(["SKIPPED * test_it.py:*: not on this machine", "SKIPPED * test_it.py:*: never"])


def test_skipping_in_one_order_only_is_a_divergence(inner: Inner) -> None:
    inner.write(
        test_it="""
            import pytest

            @pytest.mark.reprocheck(imports=["a", "b"])
            def test_now_and_then():
                import state
                if state.value != 1.0:
                    pytest.skip("no a")
        """
    )

    result = inner.run()

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["order-dependent: *", "*(outcome)*'skipped' != 'passed'*"])


def test_a_crash_in_one_order_is_told_with_the_test_it_happened_in(inner: Inner) -> None:
    inner.write(
        test_it="""
            import os, signal, pytest

            @pytest.mark.reprocheck(imports=["a", "b"])
            def test_crash():
                import state
                if state.value != 1.0:
                    os.kill(os.getpid(), signal.SIGSEGV)
        """
    )

    result = inner.run()

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "fails-in-some-orders: `b,a`: signal 11 (SIGSEGV) while running test_it.py::test_crash, *; `a,b` does not*",
            "in `b,a`:",
            "Fatal Python error: Segmentation fault",
            '*test_it.py", line 8 in test_crash',
        ]
    )


def test_a_temporary_folder_as_a_value_is_told_as_the_reason_of_the_noise(inner: Inner) -> None:
    inner.write(
        a="",
        b="",
        test_it="""
            import tempfile
            import pytest

            @pytest.mark.reprocheck(imports=["a", "b"], explain=False)
            def test_folder(tmp_path, record):
                record("p", str(tmp_path))
                record("q", tempfile.mkdtemp(dir=tmp_path))
                record("r", (tmp_path / "x").relative_to(tmp_path).name)
        """,
    )

    result = inner.run()

    result.stdout.fnmatch_lines(
        ["*noisy: 2 of 4 outputs*", "*note * the values of `p`, `q` differ only in the path of a temporary folder*"]
    )


def test_tolerance_of_the_marker(inner: Inner) -> None:
    inner.write(
        test_it="""
            import pytest

            @pytest.mark.reprocheck(imports=["a", "b"], ulp=1)
            def test_close(record):
                import state
                record("y", state.value)
        """
    )

    inner.run().assert_outcomes(passed=1)


def test_subjects_come_from_the_tests_own_imports(inner: Inner) -> None:
    inner.pytester.mkpydir("toolbox")
    inner.pytester.mkpydir("other")
    inner.write(
        helper="import other",
        test_it="""
            import pytest
            import toolbox

            @pytest.mark.reprocheck(repeat=1, observer=False)
            def test_both():
                import helper

        """,
    )

    result = inner.run("--reprocheck-json=out.json")

    result.assert_outcomes(passed=1)
    (study,) = inner.studies()["test_it.py::test_both"]
    assert study["subjects"] == ["toolbox", "other"], "pytest is no subject, and a module beside the test is its own"


def test_markers_of_module_and_class_are_merged_the_closest_wins(inner: Inner) -> None:
    inner.write(
        test_it="""
            import unittest
            import pytest

            pytestmark = pytest.mark.reprocheck(imports=["a", "b"], repeat=3, observer=False)

            @pytest.mark.reprocheck(repeat=2)
            class TestIt:
                @pytest.mark.reprocheck(repeat=1)
                def test_one(self): ...
                def test_two(self): ...

            class Old(unittest.TestCase):
                def setUp(self):
                    self.value = 3
                def test_three(self):
                    self.assertEqual(self.value, 3)
        """
    )

    inner.run("--reprocheck-json=out.json").assert_outcomes(passed=3)

    trials = {test.rpartition("_")[2]: studies[0]["noise"]["repeats"] for test, studies in inner.studies().items()}
    assert trials == {"one": 1, "two": 2, "three": 3}


MARKS = {
    "imports=['a', 'b'], repaet=3": "unknown keyword `repaet` in * of test_it.py::test_0: did you mean `repeat`?",
    "imports=['a', 'b'], repeat='3'": "`repeat` in * must be a whole number of at least 1, not '3'.",
    "imports='a'": "`imports` in * must be a list of different module names, not 'a'.",
    "imports=['a', 'a']": "`imports` in * must be a list of different module names*`a` is there twice*",
    "['a'], imports=['b']": "* names the imports twice; leave one out.",
    "['a', 'b'], gpu=1": "`gpu` in * must be True or False, not 1.",
    "['a', 'b'], rtol=-1": "`rtol` in * must be a number of at least 0, not -1.",
    "['a', 'b'], order=['a,b']": "`order` in * must be a list of orders*",
}


@pytest.mark.parametrize("workers", [None, 1])
def test_a_bad_marker_is_an_error_of_its_test_with_and_without_xdist(inner: Inner, workers: int | None) -> None:
    tests = [f"@pytest.mark.reprocheck({mark})\ndef test_{number}(): ...\n" for number, mark in enumerate(MARKS)]
    inner.write(test_it="import pytest\n" + "\n".join(tests) + "\ndef test_other(): ...\n")

    result = inner.run(workers=workers)

    result.assert_outcomes(errors=len(MARKS), passed=1)
    for message in MARKS.values():
        result.stdout.fnmatch_lines([f"E *UsageError: {message}"])
    assert "INTERNALERROR" not in result.stdout.str()
    assert not (inner.path / ".reprocheck").exists(), "nothing was run"


def test_a_plugin_that_imports_a_subject_everywhere_does_not_decide_the_order(inner: Inner) -> None:
    # As pytest-randomly imports numpy, in the test process and in every trial.
    inner.write(
        early="import b",
        test_it="""
            import sys, pytest

            @pytest.mark.reprocheck(imports=["a", "b"])
            def test_value(record):
                import state
                record("y", state.value)

            def test_here():
                assert "b" in sys.modules
        """,
    )

    result = inner.run("-p", "early")

    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(["order-dependent: *", "  group A *`a,b`*", "  group B *`b,a`*"])


def test_a_value_that_cannot_be_compared_is_named(inner: Inner) -> None:
    inner.write(
        test_it="""
            import pytest

            @pytest.mark.xfail
            @pytest.mark.reprocheck(imports=["a", "b"])
            def test_object(record):
                record("thing", object())
        """
    )

    result = inner.run()

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["output `thing` is a `object`, which cannot be compared; *"])


def test_the_users_command_line_and_ini_hold_in_trials(inner: Inner) -> None:
    inner.write(
        extra="def pytest_addoption(parser): parser.addoption('--size', type=int)",
        test_it="""
            import pytest

            @pytest.mark.slow
            @pytest.mark.reprocheck(imports=["a", "b"], repeat=1, observer=False)
            def test_size(request, record, recwarn):
                assert request.config.getoption("size") == 7
                assert request.config.getini("xfail_strict") is True
                record("junit", request.config.option.xmlpath)
                record("args", request.config.args[0].rpartition("/")[2])

            @pytest.mark.slow
            def test_other(): ...
        """,
    )
    inner.pytester.makeini(
        """
        [pytest]
        xfail_strict = true
        markers = slow: takes long
        addopts = --strict-markers --strict-config -p extra
        """
    )

    result = inner.run(
        "--size", "7", "-m", "slow", "--junitxml=junit.xml", "--maxfail=1", "--basetemp=base", "test_it.py"
    )

    result.assert_outcomes(passed=2)
    assert 'name="test_other"' in (inner.path / "junit.xml").read_text(), "no trial wrote over the report"

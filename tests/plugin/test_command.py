"""`reprocheck pytest`: a whole suite, unchanged, judged test by test."""

from __future__ import annotations

import json
import sys
import venv
from typing import Any

import pytest

from tests.plugin.conftest import Inner

pytest_plugins = ["pytester"]

SUITE = """
    import os, pytest, state

    @pytest.fixture
    def one():
        return 1.0

    def test_same(one, tmp_path):
        (tmp_path / "file").write_text("x")
        assert one == 1.0

    def test_flips(one):
        assert state.value == one, f"at {hex(id(one))} in {os.getcwd()}"

    def test_records(record):
        from reprocheck import record as plain
        record("y", state.value)
        plain("same", 1)

    def test_skips():
        if state.value != 1.0:
            pytest.skip("only after a")

    @pytest.mark.xfail
    def test_expected():
        assert state.value != 1.0

    def test_fails_alike():
        assert 1 == 2

    def test_fails_differently():
        assert state.value == 3.0

    class TestParameters:
        @pytest.mark.parametrize("n", ["x :: y", "[z]"])
        def test_it(self, n): ...
"""


def command(inner: Inner, *args: str) -> pytest.RunResult:
    return inner.pytester.run(sys.executable, "-m", "reprocheck", "pytest", *args)


def study(inner: Inner) -> dict[str, Any]:
    (run,) = (inner.path / ".reprocheck" / "runs").iterdir()
    found: dict[str, Any] = json.loads((run / "study.json").read_bytes())
    return found


def test_outcomes_failures_and_records_are_compared_test_by_test(inner: Inner) -> None:
    inner.write(test_it=SUITE)

    result = command(inner, "--imports", "a,b", "--quiet", "--", "-q", "test_it.py")

    assert result.ret == 1
    found = study(inner)
    assert found["verdict"] == "fails-in-some-orders"
    assert found["headline"].startswith(
        "fails-in-some-orders: 5 of 9 tests differ, as `test_it.py::test_flips`: passed in `a,b`; failed in `b,a` ("
    )
    suite = found["suite"]
    assert suite["tests"] == 9
    assert suite["failing"] == ["test_it.py::test_fails_alike"]
    told = {item["test"].partition("::")[2]: item for item in suite["differing"]}
    assert {name: item["verdict"] for name, item in told.items()} == {
        "test_flips": "fails-in-some-orders",
        "test_records": "order-dependent",
        "test_skips": "order-dependent",
        "test_expected": "order-dependent",
        "test_fails_differently": "order-dependent",
    }
    assert told["test_skips"]["orders"] == {"a,b": {"passed": 5}, "b,a": {"skipped": 5}}
    assert told["test_expected"]["orders"] == {"a,b": {"xfailed": 5}, "b,a": {"xpassed": 5}}
    assert told["test_records"]["outputs"] == ["y"]
    assert told["test_flips"]["p_value"] == pytest.approx(2 / 252)
    result.stdout.fnmatch_lines(
        [
            "tests that differ (5 of 9)",
            "  test_it.py::test_flips  fails-in-some-orders",
            "    passed in `a,b`; failed in `b,a`  (p = 0.0079)",
            "    E       AssertionError: at 0x… in *",
            "tests that fail alike in every order (1 of 9)",
            "  test_it.py::test_fails_alike",
            "outputs that differ most (1 of 2 differ)",
            "  test_it.py::test_records :: y *",
            "  repeat *reprocheck pytest --imports a,b -- -q test_it.py",
        ]
    )


def test_one_noisy_test_does_not_hide_the_others(inner: Inner) -> None:
    inner.write(
        test_it="""
            import os, state

            def test_noisy(record):
                record("x", os.urandom(4))

            def test_flips():
                assert state.value == 1.0
        """
    )

    result = command(inner, "--imports", "a,b", "--quiet", "--max-repeat", "7")

    assert result.ret == 1
    found = {item["test"]: item["verdict"] for item in study(inner)["suite"]["differing"]}
    assert found == {"test_it.py::test_flips": "fails-in-some-orders", "test_it.py::test_noisy": "noisy"}
    assert study(inner)["verdict"] == "fails-in-some-orders"


def test_a_suite_that_does_not_care_is_identical_though_a_test_fails(inner: Inner) -> None:
    inner.write(
        conftest="""
            def pytest_reprocheck_env(config, env): ...
            def pytest_reprocheck_result(config, nodeid, result): ...
        """,
        test_it="""
            import pytest
            from reprocheck import DivergenceError

            def test_fine(): ...
            def test_fails(): assert 0

            @pytest.mark.xfail(strict=True, raises=DivergenceError)
            @pytest.mark.reprocheck(imports=["a", "b"])
            def test_of_our_own(record):
                record("x", 1)

            def test_call(reprocheck):
                raise AssertionError("not in a trial")
        """,
    )
    inner.pytester.makeini(
        "[pytest]\nreprocheck_repeat = 5\naddopts = --strict-markers --strict-config --reprocheck-jobs=1 -ra"
    )

    result = command(inner, "--imports", "a,b", "--repeat", "1", "--no-observer", "--format", "json")

    assert result.ret == 0
    found = json.loads(result.stdout.str())
    assert found["headline"].startswith("identical: 4 tests with equal outcomes and recorded values in 2 orders (")
    assert found["suite"]["failing"] == ["test_it.py::test_fails"]


def test_a_crash_is_told_with_its_test_and_what_ended_before_still_counts(inner: Inner) -> None:
    inner.write(
        test_it="""
            import os, signal, state

            def test_before(): ...
            def test_crashes():
                if state.value != 1.0:
                    os.kill(os.getpid(), signal.SIGSEGV)
            def test_after(): ...
        """
    )

    result = command(inner, "--imports", "a,b", "--quiet")

    assert result.ret == 1
    result.stdout.fnmatch_lines(
        [
            "fails-in-some-orders: `b,a`: signal 11 (SIGSEGV) while running test_it.py::test_crashes*; `a,b` does not*",
            "  Fatal Python error: Segmentation fault",
            '*test_it.py", line 7 in*',
        ]
    )


def test_a_module_or_conftest_that_breaks_in_one_order_is_a_finding(inner: Inner) -> None:
    broken = "import state\nif state.value != 1.0:\n    raise ImportError('no b before a')\n"
    inner.write(
        test_first=broken + "def test_it(): ...",
        test_second="def test_it(): ...",
        sub__conftest=broken,
        sub__test_third="def test_it(): ...",
    )

    result = command(inner, "--imports", "a,b", "--quiet", "--", "test_first.py", "test_second.py")

    assert result.ret == 1
    found = {item["test"]: item["orders"] for item in study(inner)["suite"]["differing"]}
    assert found["test_first.py"] == {"a,b": {}, "b,a": {"collection error": 5}}
    assert found["test_first.py::test_it"] == {"a,b": {"passed": 5}, "b,a": {}}
    assert "test_second.py::test_it" not in found

    result = command(inner, "--imports", "a,b", "--quiet", "--", "sub")

    assert result.ret == 1
    result.stdout.fnmatch_lines(["fails-in-some-orders: `b,a`: ImportError: *no b before a*; `a,b` does not*"])


def test_what_cannot_be_run_is_one_sentence_and_its_exit_status(inner: Inner) -> None:
    inner.write(test_it="def test_it(): ...")
    base = ("--imports", "a,b", "--quiet", "--")
    venv.create(inner.path / "venv", symlinks=True)
    bare = inner.path / "venv" / "bin" / "python"
    for args, status, message in (
        ((*base, "--no-such-option"), 2, "reprocheck: pytest refused its arguments: *--no-such-option*"),
        (
            (*base, "nowhere.py"),
            2,
            "reprocheck: pytest refused its arguments: file or directory not found: nowhere.py*",
        ),
        ((*base, "-k", "nothing"), 5, "reprocheck: pytest did not run any test with these arguments (exit status 5)*"),
        (("--quiet",), 2, "reprocheck: `pytest` is a whole suite; name the subjects with --imports a,b"),
        (("--imports", "a,b", "--quiet", "--python", "/bin/true"), 2, "reprocheck: `/bin/true` is no Python*"),
        (("--imports", "a,b", "--quiet", "--python", str(bare)), 2, "reprocheck: pytest isn't installed for `*`; *"),
    ):
        result = command(inner, *args)

        assert result.ret == status
        result.stderr.fnmatch_lines([message])


def test_options_that_would_act_across_trials_are_kept_quiet(inner: Inner) -> None:
    inner.write(
        # As pytest-cov (which decides before conftests are loaded) and pytest-randomly have them.
        fakes="""
            import pytest

            def pytest_addoption(parser):
                parser.addoption("--cov")
                parser.addoption("--no-cov", action="store_true")
                parser.addoption("--randomly-seed")

            @pytest.hookimpl(tryfirst=True)
            def pytest_load_initial_conftests(early_config):
                options = early_config.known_args_namespace
                if options.cov and not options.no_cov:
                    open(".coverage", "w").close()
        """,
        test_it="""
            import os

            def test_first():
                assert 0

            def test_second(request):
                option = request.config.option
                assert (option.xmlpath, option.usepdb, option.maxfail, option.dist) == (None, False, 0, "no")
                assert option.randomly_seed == "0"
                assert not os.environ.get("PYTEST_XDIST_WORKER")
        """,
    )
    inner.pytester.makeini("[pytest]\naddopts = --junitxml=junit.xml -x --pdb --lf -p fakes --cov=it")
    (inner.path / "mine").mkdir()

    result = command(
        inner,
        "--imports",
        "a,b",
        "--quiet",
        "--repeat",
        "1",
        "--no-observer",
        "--format",
        "json",
        "--",
        "-p",
        "xdist",
        "-n",
        "4",
        "--basetemp=mine",
    )

    assert result.ret == 0
    found = json.loads(result.stdout.str())
    assert found["suite"]["failing"] == ["test_it.py::test_first"]
    assert found["suite"]["tests"] == 2
    assert not (inner.path / "junit.xml").exists()
    assert not (inner.path / ".coverage").exists()
    assert not (inner.path / ".pytest_cache").exists()
    assert (inner.path / "mine").exists()

"""One name each for option, ini and marker; closed sets; the command line wins."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.plugin.conftest import ROOT, Inner

pytest_plugins = ["pytester"]

SAME = """
    import pytest

    @pytest.mark.reprocheck(imports=["a", "b"], repeat=2, observer=False)
    def test_two(): ...

    @pytest.mark.reprocheck(imports=["a", "b"], observer=False)
    def test_default(): ...

    def test_plain(): ...
"""


def repeats(inner: Inner) -> dict[str, int]:
    return {test.partition("::")[2]: studies[0]["noise"]["repeats"] for test, studies in inner.studies().items()}


def test_the_command_line_wins_over_the_marker_and_that_over_the_ini_file(inner: Inner) -> None:
    inner.write(test_it=SAME)
    inner.pytester.makeini(
        "[pytest]\nreprocheck_repeat = 1\nreprocheck_json = out.json\naddopts = --strict-config --strict-markers"
    )

    inner.run().assert_outcomes(passed=3)
    assert repeats(inner) == {"test_two": 2, "test_default": 1}

    inner.run("--reprocheck-repeat=3", "-k", "two").assert_outcomes(passed=1, deselected=1 + 1)
    assert repeats(inner) == {"test_two": 3}


def test_off_skips_with_a_reason_and_only_runs_nothing_else(inner: Inner) -> None:
    inner.write(test_it=SAME + "\n    def test_call(reprocheck):\n        reprocheck('work.py::same', ['a', 'b'])\n")

    result = inner.run("--reprocheck=off", "-rs")

    result.assert_outcomes(skipped=3, passed=1)
    result.stdout.fnmatch_lines(["SKIPPED [[]*[]] test_it.py:*: reprocheck checks are off (--reprocheck=off)"])
    assert not (inner.path / ".reprocheck").exists()

    result = inner.run("--reprocheck=only", "--collect-only", "-q")

    result.stdout.fnmatch_lines(["test_it.py::test_two", "test_it.py::test_default", "test_it.py::test_call"])
    result.stdout.no_fnmatch_line("*test_plain*")


BAD = {
    "--reprocheck=maybe": "must be one of on, off, only, not `maybe`",
    "--reprocheck-repeat=0": "must be a whole number of at least 1, not `0`",
    "--reprocheck-timeout=soon": "must be a number of seconds above 0, not `soon`",
    "--reprocheck-jobs=1.5": "must be a whole number of at least 1, not `1.5`",
    "--reprocheck-baseline=newest": "must be one of check, new, all, not `newest`",
}


def test_a_bad_value_on_the_command_line_is_refused_before_anything_runs(inner: Inner) -> None:
    inner.write(test_it="def test_it(): ...")
    for argument, message in BAD.items():
        result = inner.pytester.runpytest_inprocess("-p", "reprocheck.pytest_plugin", argument)

        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines([f"*argument {argument.partition('=')[0]}: {message}"])


@pytest.mark.parametrize("workers", [None, 2])
def test_a_bad_value_in_the_ini_file_is_refused_with_and_without_xdist(inner: Inner, workers: int | None) -> None:
    inner.write(test_it="def test_it(): ...")
    inner.pytester.makeini("[pytest]\nreprocheck_timeout = never")

    result = inner.run(workers=workers)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*`reprocheck_timeout` in *tox.ini must be a number of seconds above 0, not `never`"])


def test_orders_timeout_and_folder(inner: Inner) -> None:
    inner.write(
        c="",
        test_it="""
            import time, pytest

            @pytest.mark.reprocheck(imports=["a", "b", "c"], repeat=1, observer=False)
            def test_three(): ...

            @pytest.mark.reprocheck(imports=["a", "c"], repeat=1, observer=False, timeout=5.0)
            def test_slow():
                time.sleep(60)
        """,
    )

    result = inner.run("--reprocheck-orders=pairs", "--reprocheck-dir=elsewhere", "--reprocheck-json=out.json")

    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["fails-everywhere: no end after 5.* s, while running test_it.py::test_slow, *"])
    assert len(inner.studies()["test_it.py::test_three"][0]["orders"]) == 2
    assert len(list((inner.path / "elsewhere" / "runs").iterdir())) == 2


def test_a_gpu_that_is_not_there_is_skipped_or_required(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    inner.write(
        test_it="""
            import pytest

            @pytest.mark.reprocheck(imports=["a", "b"], gpu=True)
            def test_gpu(): ...

            @pytest.mark.xfail
            def test_call(reprocheck):
                reprocheck("work.py::same", imports=["a", "b"], gpu=True).assert_identical()
        """
    )

    result = inner.run("-rs")
    result.assert_outcomes(skipped=2)
    result.stdout.fnmatch_lines(["SKIPPED * test_it.py:*: needs a GPU, and none is visible"])

    result = inner.run("--reprocheck-require-gpu")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*this check needs a GPU, none is visible, and --reprocheck-require-gpu forbids *"])


def test_importing_the_plugin_loads_pytest_and_the_standard_library_only() -> None:
    code = """
        import sys, pytest
        before = set(sys.modules)
        import reprocheck.pytest_plugin
        print(*sorted(set(sys.modules) - before))
    """
    loaded = subprocess.run(
        [sys.executable, "-c", "\n".join(line.strip() for line in code.splitlines())],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ).stdout.split()

    foreign = {name.partition(".")[0] for name in loaded} - set(sys.stdlib_module_names)
    assert foreign == {"reprocheck"}
    ours = {name for name in loaded if name.startswith("reprocheck")}
    assert ours == {
        "reprocheck",
        "reprocheck.pytest_plugin",
        *(f"reprocheck.pytest_plugin.{name}" for name in ("fixtures", "options", "session", "state")),
    }


def test_a_suite_without_checks_loads_nothing_starts_nothing_and_says_nothing(inner: Inner) -> None:
    inner.write(
        conftest="""
            import sys

            def pytest_unconfigure(config):
                with open("modules", "a") as file:
                    file.write("\\n".join(sys.modules) + "\\n")
        """,
        test_it="def test_it(record):\n    assert record('x', 1) == 1",
    )

    for workers in (None, 1):
        result = inner.run(workers=workers)

        result.assert_outcomes(passed=1)
        assert "reprocheck" not in result.stdout.str().replace(str(inner.path), "").replace("reprocheck.pytest_", "")
        assert not (inner.path / ".reprocheck").exists()
    loaded = set((inner.path / "modules").read_text().split())
    assert not {"msgspec", "numpy", "rich", "click", "reprocheck.errors"} & loaded


def test_the_header_is_there_for_those_who_asked(inner: Inner) -> None:
    inner.write(test_it="def test_it(): ...")

    inner.run("--reprocheck-repeat=4").stdout.fnmatch_lines(["reprocheck: *repeat 4*"])
    inner.run("-v").stdout.fnmatch_lines(["reprocheck: mode on, *"])
    inner.run("--markers").stdout.fnmatch_lines(
        ["@pytest.mark.reprocheck(imports=None, [*][*]options): run this test *"]
    )
    inner.run("--help").stdout.fnmatch_lines(["import order checks (reprocheck):", "*--reprocheck-orders=*"])


@pytest.mark.skipif(
    not any(
        point.name == "reprocheck" for point in __import__("importlib.metadata").metadata.entry_points(group="pytest11")
    ),
    reason="reprocheck is not installed here, so it has no entry point",
)
def test_the_entry_point_is_enough(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    inner.write(
        test_it="""
            import pytest

            @pytest.mark.reprocheck(imports=["a", "b"], repeat=1, observer=False)
            def test_it(record):
                record("x", 1)
        """
    )

    result = inner.pytester.runpytest_subprocess("--strict-markers")

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["1 check: 1 identical; *"])

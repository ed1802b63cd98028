"""Baselines: one file per check, written by the controller only, compared within one environment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.plugin.conftest import Inner

pytest_plugins = ["pytester"]

SUITE = """
    import pytest

    FEW = {"imports": ["a", "b"], "repeat": 1, "observer": False, "baseline": True}

    @pytest.mark.parametrize("n", [1, 2])
    @pytest.mark.reprocheck(**FEW)
    def test_marked(record, n):
        import values
        record("y", [n * values.Y, 1.0])

    def test_called(reprocheck):
        reprocheck("values.py::run", **FEW).assert_identical()
        reprocheck("values.py::run", rtol=1e-6, **FEW).assert_agree()
"""
VALUES = "Y = {}\ndef run(): return {{'y': Y}}"


@pytest.fixture
def suite(inner: Inner) -> Inner:
    inner.write(values=VALUES.format(2.0), test_it=SUITE)
    return inner


def files(suite: Inner) -> dict[str, Path]:
    return {path.stem: path for path in (suite.path / "reprocheck_baselines" / "test_it").glob("*")}


def test_a_missing_one_fails_with_the_command_that_makes_it(suite: Inner) -> None:
    result = suite.run()

    result.assert_outcomes(failed=3)
    result.stdout.fnmatch_lines(
        [
            "there is no baseline `*/reprocheck_baselines/test_it/test_marked_1-????????.json` yet; create it with: *",
            "* create it with: python -m pytest 'test_it.py::test_marked[[]2[]]' --reprocheck-baseline=new",
            "E *UsageError: there is no baseline *test_called.json` yet; *",
        ]
    )
    assert not files(suite), "checking writes nothing"


@pytest.mark.parametrize("workers", [None, 2])
def test_new_writes_one_file_a_check_and_check_compares(suite: Inner, workers: int | None) -> None:
    result = suite.run("--reprocheck-baseline=new", workers=workers)

    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["baseline written: */reprocheck_baselines/test_it/test_called-2.json"])
    written = files(suite)
    assert {name.partition("-")[0] for name in written} == {"test_marked_1", "test_marked_2", "test_called"}
    assert len(written) == 4
    document = json.loads(written["test_called"].read_bytes())
    assert document["schema"] == "reprocheck/baseline"
    assert document["check"] == "test_it.py::test_called"
    assert document["outputs"]["y"]["stats"] == {"nan": 0, "inf": 0, "min": 2.0, "max": 2.0, "mean": 2.0, "rms": 2.0}
    assert "host.cpu.model" in document["environment"]
    assert not (suite.path / ".reprocheck" / "sessions").exists() or not any(
        (suite.path / ".reprocheck" / "sessions").iterdir()
    )

    suite.run(workers=workers).assert_outcomes(passed=3)

    # Both checks of the test, of which only the second has a tolerance.
    suite.write(values=VALUES.format(2.0 + 1e-9))
    result = suite.run("-k", "called", workers=workers)

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "E *DivergenceError: 1 output differs from the baseline test_called.json",
            "E  *y: max 2, was 2; *",
            "E  *if that is meant: python -m pytest test_it.py::test_called --reprocheck-baseline=all",
        ]
    )

    result = suite.run("--reprocheck-baseline=all", "-k", "called", workers=workers)

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["baseline written anew: */test_called.json"])
    suite.run("-k", "called", workers=workers).assert_outcomes(passed=1)


def edited(path: Path, **changes: Any) -> None:
    document = json.loads(path.read_bytes())
    path.write_text(json.dumps({**document, **changes}))


def test_another_environment_is_incomparable_but_not_beyond_what_must_hold_everywhere(suite: Inner) -> None:
    suite.run("--reprocheck-baseline=new").assert_outcomes(passed=3)
    suite.write(values=VALUES.format(2.5))
    for path in files(suite).values():
        edited(path, fingerprint="sha256:other", environment={"python": "2.7", "host.cpu.model": "abacus"})

    result = suite.run()

    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(
        [
            "E *DivergenceError: 1 output differs from the baseline test_called-2.json",
            "E  *y: max 2.5, was 2; *",
            "E  *the environment is another one, *",
            "E  *host.cpu.model: abacus, now *",
            "test_it.py::test_marked[[]1[]]: the baseline is of another environment; its bits were not compared",
        ]
    )

    outputs = json.loads(next(iter(files(suite).values())).read_bytes())["outputs"]
    name, (shape, path) = "test_called", ([3], files(suite)["test_called"])
    edited(
        path, outputs={"y": {**outputs.get("y", {}), "dtype": "float32", "shape": shape, "digest": "x", "stats": {}}}
    )

    result = suite.run("-k", name)

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E  *y: float64[[][]], was float32[[]3[]]"])


def test_a_file_that_is_no_baseline_is_told(suite: Inner) -> None:
    suite.run("--reprocheck-baseline=new", "-k", "called").assert_outcomes(passed=1)
    files(suite)["test_called"].write_text("{}")

    result = suite.run("-k", "called")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E *UsageError: `*test_called.json` is not a baseline that can be read*"])


def test_a_divergence_writes_no_baseline(inner: Inner) -> None:
    inner.write(
        test_it="""
            import pytest

            @pytest.mark.reprocheck(imports=["a", "b"], baseline=True)
            def test_differs(record):
                import state
                record("y", state.value)
        """
    )

    inner.run("--reprocheck-baseline=new").assert_outcomes(failed=1)

    assert not (inner.path / "reprocheck_baselines").exists()


def test_proposals_survive_a_worker_that_dies(suite: Inner) -> None:
    suite.write(
        test_dies="""
            import os, time

            def test_dies():
                time.sleep(0.1)
                os._exit(9)
        """
    )

    result = suite.run("--reprocheck-baseline=new", "test_it.py", "test_dies.py", workers=1)

    result.assert_outcomes(passed=3, failed=1)
    assert len(files(suite)) == 4

"""Under xdist: the same results, however many workers, and whatever happens to them."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.plugin.conftest import Inner

pytest_plugins = ["pytester"]

SUITE = """
    import pytest
    from reprocheck import DivergenceError

    FEW = {"repeat": 1, "observer": False}

    @pytest.mark.parametrize("n", [1, 2])
    @pytest.mark.reprocheck(imports=["a", "b"], **FEW)
    def test_same(record, n):
        record("n", n)

    @pytest.mark.xfail(strict=True, raises=DivergenceError)
    def test_known(reprocheck):
        reprocheck("work.py::differs", imports=["a", "b"]).assert_identical()

    def test_differs(reprocheck):
        reprocheck("work.py::differs", imports=["a", "b"]).assert_identical()

    def test_two_checks(reprocheck):
        for name in ("same", "same"):
            reprocheck(f"work.py::{name}", imports=["a", "b"], **FEW).assert_identical()

    @pytest.mark.reprocheck(imports=["a", "b"], **FEW)
    def test_wrong():
        assert 1 == 2

    def test_plain(): ...
"""


def properties(path: Path) -> dict[str, list[tuple[str, str]]]:
    """Test -> properties in the JUnit file, run folders by their pattern alone."""
    found = {}
    for case in ET.parse(path).iter("testcase"):
        pairs = [(item.get("name", ""), item.get("value", "")) for item in case.iter("property")]
        found[case.get("name", "")] = [
            (name, re.sub(r"\d{8}-\d{6}|-[0-9a-f]{4}$", "·", value).rpartition("/")[2]) for name, value in pairs
        ]
    return found


def test_results_are_the_same_however_many_workers(inner: Inner) -> None:
    inner.write(test_it=SUITE)
    seen = []
    for workers in (None, 0, 2, 8):
        result = inner.run("--reprocheck-json=out.json", "--junitxml=junit.xml", workers=workers)

        result.assert_outcomes(passed=4, failed=2, xfailed=1)
        result.stdout.fnmatch_lines(["7 checks: *", "wrote */out.json"])
        document = {test: [study["verdict"] for study in studies] for test, studies in inner.studies().items()}
        seen.append((document, properties(inner.path / "junit.xml")))

    assert all(item == seen[0] for item in seen[1:])
    document, junit = seen[0]
    assert document == {
        "test_it.py::test_same[1]": ["identical"],
        "test_it.py::test_same[2]": ["identical"],
        "test_it.py::test_known": ["order-dependent"],
        "test_it.py::test_differs": ["order-dependent"],
        "test_it.py::test_two_checks": ["identical", "identical"],
        "test_it.py::test_wrong": ["fails-everywhere"],
    }
    assert junit["test_plain"] == []
    assert junit["test_differs"] == [
        ("reprocheck.verdict", "order-dependent"),
        ("reprocheck.orders", "2 orders, 10 runs"),
        ("reprocheck.run", "·-test-it-py-test-differs·"),
    ]
    assert len(junit["test_two_checks"]) == 6


def test_a_worker_that_dies_loses_nothing_but_its_test(inner: Inner) -> None:
    inner.write(
        test_it="""
            import os, pytest

            FEW = {"imports": ["a", "b"], "repeat": 1, "observer": False}

            @pytest.mark.parametrize("n", range(4))
            def test_it(reprocheck, n):
                reprocheck("work.py::same", **FEW).assert_identical()
                if n == 1:
                    os._exit(1)
        """
    )

    result = inner.run("--reprocheck-json=out.json", workers=1)

    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(["*worker 'gw0' crashed while running 'test_it.py::test_it[[]1[]]'*", "3 checks: *"])
    assert set(inner.studies()) == {f"test_it.py::test_it[{n}]" for n in (0, 2, 3)}


def test_all_workers_together_start_no_more_trials_than_the_machine_bears(
    inner: Inner, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("run")))
    inner.write(
        slow="""
            import os, time

            def run():
                os.makedirs("trials", exist_ok=True)
                begin = time.monotonic()
                time.sleep(0.3)
                with open(f"trials/{os.getpid()}", "w") as file:
                    file.write(f"{begin} {time.monotonic()}")
                return 1
        """,
        test_it="""
            import pytest

            @pytest.mark.parametrize("n", range(8))
            def test_it(reprocheck, n):
                reprocheck("slow.py::run", imports=["a", "b"], repeat=1, observer=False).assert_identical()
        """,
    )

    inner.run("--reprocheck-jobs=2", workers=8).assert_outcomes(passed=8)

    times = [tuple(map(float, path.read_text().split())) for path in (inner.path / "trials").iterdir()]
    assert len(times) == 16
    most = max(sum(begin <= moment < end for begin, end in times) for moment, _ in times)
    assert most <= 2


@pytest.mark.parametrize("workers", [None, 2])
def test_trials_have_the_environment_the_user_started_pytest_with(
    inner: Inner, monkeypatch: pytest.MonkeyPatch, workers: int | None
) -> None:
    monkeypatch.setenv("FROM_THE_USER", "straße")
    inner.write(
        conftest="""
            import os

            def pytest_configure(config):
                # As plugins do; workers of xdist inherit it.
                os.environ["OMP_NUM_THREADS"] = "1"
                os.environ["FROM_THE_USER"] = "changed"
        """,
        seen="""
            import os

            def run():
                return [os.environ["FROM_THE_USER"], os.environ.get("OMP_NUM_THREADS", "not set")]
        """,
        test_it="""
            import pytest
            from seen import run

            FEW = {"imports": ["a", "b"], "repeat": 1, "observer": False}

            @pytest.mark.reprocheck(**FEW)
            def test_marked():
                import os
                # conftest.py runs in the trial too: what it does is part of the suite.
                assert run() == ["changed", "1"]
                assert not any(name.startswith("PYTEST_XDIST") for name in os.environ)

            @pytest.mark.xfail(reason="differs from what this process has", strict=True)
            def test_here():
                assert run() == ["straße", "not set"]

            def test_called(reprocheck):
                reprocheck("check.py::run", **FEW).assert_identical()
        """,
        check="import seen\ndef run():\n    assert seen.run() == ['straße', 'not set'], seen.run()\n    return 1",
    )

    inner.run(workers=workers).assert_outcomes(passed=2, xfailed=1)


def test_groups_of_xdist_change_nothing(inner: Inner) -> None:
    """`--dist loadgroup` adds `@GROUP` to node ids, or (pytest 9.2 with xdist 3.8) ignores the mark altogether."""
    inner.write(
        test_it="""
            import pytest

            FEW = {"imports": ["a", "b"], "repeat": 1, "observer": False}

            @pytest.mark.xdist_group("gpu")
            @pytest.mark.parametrize("n", [1, 2])
            @pytest.mark.reprocheck(**FEW)
            def test_marked(record, n):
                record("n", n)

            @pytest.mark.xdist_group("gpu")
            def test_fixture(reprocheck):
                reprocheck("work.py::same", **FEW).assert_identical()
        """
    )

    for arguments in ([], ["--dist=loadgroup"]):
        result = inner.run("--reprocheck-json=out.json", *arguments, workers=2)

        result.assert_outcomes(passed=3)
        assert {test: [study["verdict"] for study in studies] for test, studies in inner.studies().items()} == {
            "test_it.py::test_marked[1]": ["identical"],
            "test_it.py::test_marked[2]": ["identical"],
            "test_it.py::test_fixture": ["identical"],
        }


def test_works_where_xdist_is_absent_or_blocked(inner: Inner) -> None:
    inner.write(test_it=SUITE)

    inner.run("-k", "same").assert_outcomes(passed=2, deselected=5)
    inner.run("-p", "no:xdist", "-k", "same").assert_outcomes(passed=2, deselected=5)


@pytest.mark.parametrize("workers", [None, 2])
def test_a_session_that_ends_early_leaves_no_process_behind(inner: Inner, workers: int | None) -> None:
    inner.write(
        slow="import os, time\ndef run():\n    open(f'pid-{os.getpid()}', 'w').close()\n    time.sleep(120)",
        conftest="""
            import os, signal, threading, time, glob

            def pytest_configure(config):
                if hasattr(config, "workerinput"):
                    return
                def stop():
                    while not glob.glob("pid-*"):
                        time.sleep(0.05)
                    os.kill(os.getpid(), signal.SIGINT)
                threading.Thread(target=stop, daemon=True).start()
        """,
        test_it="""
            def test_it(reprocheck):
                reprocheck("slow.py::run", imports=["a", "b"]).assert_identical()
        """,
    )

    result = inner.run(workers=workers)

    assert result.ret == pytest.ExitCode.INTERRUPTED
    pids = [int(path.name.partition("-")[2]) for path in inner.path.glob("pid-*")]
    assert pids
    assert not any(alive(pid) for pid in pids)


def alive(pid: int) -> bool:
    """Whether the process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False

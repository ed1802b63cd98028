"""What conftests and other plugins can do: add variables, add snapshot readers, see results."""

from __future__ import annotations

import json

import pytest

from tests.plugin.conftest import Inner

pytest_plugins = ["pytester"]


@pytest.mark.parametrize("workers", [None, 2])
def test_environment_probes_and_results(inner: Inner, workers: int | None) -> None:
    inner.write(
        conftest="""
            import os, pytest

            def pytest_reprocheck_env(config, env):
                env["THREADS"] = "3"
                env["MODE"] = "from the hook"

            def pytest_reprocheck_probes(config):
                return [os.path.join(config.rootpath, "probe.py")]

            def pytest_reprocheck_result(config, nodeid, result):
                with open(os.path.join(config.rootpath, "results"), "a") as file:
                    print(os.getpid(), nodeid, result.verdict, result.study.noise.trials, len(result.groups), file=file)
        """,
        probe="name = 'mine'\nphases = ('t2',)\ndef read():\n    return {'answer': 42}",
        test_it="""
            import os, pytest

            FEW = {"imports": ["a", "b"], "repeat": 1, "observer": False}

            @pytest.mark.reprocheck(env={"MODE": "from the marker"}, **FEW)
            def test_marked(record):
                record("seen", [os.environ["THREADS"], os.environ["MODE"]])

            def test_called(reprocheck):
                outcome = reprocheck("work.py::same", **FEW)
                outcome.assert_identical()
                assert outcome.study.environment["changed"] == {"THREADS": "3", "MODE": "from the hook"}
        """,
    )

    inner.run("--strict-markers", workers=workers).assert_outcomes(passed=2)

    results = sorted(line.split() for line in (inner.path / "results").read_text().splitlines())
    assert len({pid for pid, *_ in results}) == 1, "one process sees all of them"
    assert sorted(rest for _, *rest in results) == [
        ["test_it.py::test_called", "identical", "2", "1"],
        ["test_it.py::test_marked", "identical", "2", "1"],
    ]
    for run in (inner.path / ".reprocheck" / "runs").iterdir():
        record = json.loads((run / "records" / "000000.json").read_bytes())
        (snapshot,) = (item for item in record["snapshots"] if item["phase"] == "t2")
        assert snapshot["kinds"]["mine"] == {"answer": 42}

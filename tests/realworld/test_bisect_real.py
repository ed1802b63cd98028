"""Since when, on packages of the index, and on the scenario of the README."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from reprocheck.bisect.installers import Sources
from reprocheck.bisect.question import Question
from reprocheck.bisect.run import bisect
from tests.realworld.conftest import ROOT


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("environments"))


def test_six_began_to_put_itself_into_the_import_system(tmp_path: Path, cache: str) -> None:
    """Since 1.7.0, which loads lazily by an import hook, `import six` changes `sys.meta_path`."""
    (tmp_path / "work.py").write_text("import six\ndef run():\n    return 1.0\n")
    question = Question(
        kind="versions",
        workload="work.py::run",
        package="six",
        good="1.5.0",
        bad="1.17.0",
        until="state:process.hook.meta_path",
        base="clean",
        cache=cache,
        options={"imports": ["six"]},
    )

    report = bisect(question, cwd=tmp_path)

    assert (report.last_good, report.first_bad) == ("1.6.1", "1.7.0")
    assert report.versions_run <= 7
    seen = {row.name: row.seen for row in report.versions}
    assert seen["1.7.0"] == "process.hook.meta_path gains six._SixMetaPathImporter"
    assert report.blame is not None
    assert [change.path for change in report.blame.files] == ["six.py"]


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="the number of threads can't change on one core")
def test_the_scenario_of_the_readme(tmp_path: Path, cache: str, needs: Callable[..., None]) -> None:
    needs("torch", "numpy")
    subprocess.run([sys.executable, ROOT / "scenarios" / "toolbox_drift" / "releases.py", tmp_path], check=True)
    question = Question(
        kind="versions",
        workload="workload.py",
        package="toolbox-drift",
        good="1.2",
        bad="2.0",
        until="drift",
        sources=Sources(find_links=(str(tmp_path),), no_index=True),
        cache=cache,
        explain=False,
    )

    report = bisect(question, cwd=tmp_path)

    assert (report.last_good, report.first_bad) == ("1.2", "1.7")
    assert report.transitions[0].between == ("1.5",)
    assert report.factorial is not None
    assert report.factorial.verdict == "order-sensitive"
    assert report.blame is not None
    blamed = {change.path: change for change in report.blame.files}["toolbox/__init__.py"]
    assert '+ os.environ["OMP_NUM_THREADS"] = "1"' in blamed.lines

"""`reprocheck explain RUN`, as a user types it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Lab

ROOT = Path(__file__).parents[3]


def reprocheck(lab: Lab, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-m", "reprocheck", *words],
        cwd=lab.folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def stored(lab: Lab) -> Lab:
    """A run without explanation in the folder `stored`."""
    lab.write(
        a="import os\nos.environ['OMP_NUM_THREADS'] = '1'",
        b="import os\ncount = float(os.environ.get('OMP_NUM_THREADS', '2'))",
        work="import b\ndef run(): return b.count",
    )
    lab.check(out=lab.folder / "stored")
    return lab


def test_text_json_and_the_reproducer(stored: Lab) -> None:
    told = reprocheck(stored, "explain", "stored", "--reproducer", "out/shows.py", "--output", "json:out/study.json")

    assert told.returncode == 0, told.stderr
    lines = told.stdout.splitlines()
    assert lines[0].startswith("order-dependent: ")
    assert lines[2].split()[0] == "rule", "right below the headline"
    assert "explaining" in told.stderr
    study = json.loads((stored.folder / "out" / "study.json").read_text())
    assert study["rule"].keys() >= {"sentence", "pair", "context", "explained", "total"}
    assert study["causes"][0].keys() >= {"key", "kind", "status", "good", "bad", "event", "trials"}
    assert study["causes"][0]["event"] == {"import": "a", "file": str(stored.folder / "a.py"), "line": 2}
    assert study["remedy"].keys() >= {"text", "tried_trials", "agrees"}
    assert study["budget"]["complete"] is True
    shown = subprocess.run(
        [sys.executable, "-I", str(stored.folder / "out" / "shows.py")], capture_output=True, check=False
    )
    assert shown.returncode == 1


def test_budget_of_nothing_still_tells_the_rule(stored: Lab) -> None:
    told = reprocheck(stored, "explain", "stored", "--budget", "0", "--quiet")

    assert told.returncode == 0, told.stderr
    assert "outputs follow one rule: `b` before `a` → group B (2 of 2 orders)" in told.stdout
    assert "the budget of 0 trials ended the search; go on with `reprocheck explain stored --budget 40`" in told.stdout


def test_what_is_no_run_is_one_sentence(stored: Lab) -> None:
    told = reprocheck(stored, "explain", "nowhere")

    assert told.returncode == 2
    assert "`" in told.stderr
    assert "Traceback" not in told.stderr

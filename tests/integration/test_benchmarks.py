"""How benchmarks tell their figures."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks.figures import row, table

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("values", "budget", "least", "met"),
    [
        ([0.9, 1.0, 9.0], 1.1, False, True),
        ([1.2, 1.3, 1.0], 1.1, False, False),
        ([9.0, 8.0, 1.0], 8.0, True, True),
        ([7.0], 8.0, True, False),
        ([7.0], None, False, None),
    ],
)
def test_a_budget_is_held_by_the_median(values: list[float], budget: float, least: bool, met: bool | None) -> None:
    told = row("a", "b", values, budget=budget, least=least)
    assert told["met"] is met
    assert told["spread"] == [min(values), max(values)]
    assert told["rounds"] == len(values)


def test_the_table_says_what_was_missed() -> None:
    lines = table(
        [
            row("time of a run", "a shell loop", [1.05, 1.0, 1.2], budget=1.1),
            row("comparing: times faster", "numpy", [3.0, 3.5], budget=4.0, least=True),
            row("orders", "10! = 3,628,800", [10.0], unit=""),
        ]
    ).splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert cells[2] == ["time of a run", "a shell loop", "≤ 1.1 x", "1.05 x", "1 – 1.2", "3", "met"]
    assert cells[3] == ["comparing: times faster", "numpy", "≥ 4 x", "3.25 x", "3 – 3.5", "2", "missed"]
    assert cells[4] == ["orders", "10! = 3,628,800", "–", "10", "10 – 10", "1", ""]
    assert len({len(line) for line in lines}) == 1


def test_all_benchmarks_can_be_run_by_name(tmp_path: Path) -> None:
    target = tmp_path / "bench.json"
    words = [sys.executable, str(ROOT / "tests/benchmarks/bench.py"), "--quick", "history", "--json", str(target)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    document = json.loads(target.read_text())
    assert document["figures"]["history"]["seeds"] == [0, 39]
    assert len(document["rows"]) == 6
    assert "| runs over 256 versions, 20% in dead blocks" in done.stdout
    wrong = subprocess.run([*words[:-3], "histroy"], capture_output=True, text=True, check=False, cwd=ROOT)
    assert wrong.returncode == 2
    assert "no benchmark `histroy`" in wrong.stderr

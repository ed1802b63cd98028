"""Every scenario gives the verdict its own metadata expects."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reprocheck import check
from reprocheck.cli.list import scenarios_in
from reprocheck.model import Study
from reprocheck.store.run import Run
from tests.realworld.conftest import ROOT

SCENARIOS = {Path(row["target"]).stem: row for row in scenarios_in(ROOT / "scenarios")}
DEMO = ("cupy_torch", "mkl_torch", "toolbox_drift")


def distribution(requirement: str) -> str:
    return re.split(r"[<>=!~ \[;]", requirement, maxsplit=1)[0]


def run(name: str, needs: Callable[..., None], tmp_path: Path, **options: Any) -> None:
    row = SCENARIOS[name]
    needs(*map(distribution, row["dependencies"]))
    if row["expect"] == "order-dependent" and name in ("toolbox_drift", "ultralytics_threads", "ftz_pool"):
        cores = len(os.sched_getaffinity(0))
        if cores < 2:
            pytest.skip("one core: thread counts cannot show")

    study = check(row["target"], cwd=ROOT, out=tmp_path / "run", explain=False, **options)

    refusal = said_no(study)
    if refusal is not None:
        pytest.skip(refusal)
    assert study.verdict == row["expect"], study.headline
    assert study.noise.observer == "agrees"


def said_no(study: Study) -> str | None:
    """What a scenario said that cannot run here (no toolkit, a CPU build): it ends every trial with a sentence."""
    failure = study.groups[0].failure
    if study.verdict != "fails-everywhere" or failure is None or failure.kind != "exit":
        return None
    printed = {record.stderr.text.strip().rpartition("\n")[2] for record in Run(Path(study.run_dir)).records()}
    return printed.pop() if len(printed) == 1 else None


@pytest.mark.parametrize("name", DEMO)
def test_demo(name: str, needs: Callable[..., None], tmp_path: Path) -> None:
    run(name, needs, tmp_path)


@pytest.mark.parametrize("name", sorted(set(SCENARIOS) - set(DEMO)))
def test_scenario(name: str, needs: Callable[..., None], tmp_path: Path) -> None:
    run(name, needs, tmp_path)

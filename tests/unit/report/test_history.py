"""Many runs: finding them, ordering them, and how a workload fared over time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from reprocheck.errors import StoreError, UsageError
from reprocheck.report.history import collect, run_folders, series_of, worst_first
from reprocheck.report.json import studies_json
from tests.samples import make_run, tiny_study

ONE, TWO = np.zeros(1), np.ones(1)


def test_run_folders_are_found_below_a_folder(tmp_path: Path) -> None:
    for name in ("b", "a", "deep/er/c"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        make_run(tmp_path / name, {("a", "b"): [{"x": ONE}]})
    (tmp_path / "d.partial").mkdir()
    (tmp_path / "d.partial/spec.json").write_text("{}")

    assert [folder.name for folder in run_folders(tmp_path)] == ["a", "b", "c"]
    assert [folder and folder.name for _, folder in collect(tmp_path)] == ["a", "b", "c"]
    assert len(collect(tmp_path / "a")) == 1


def test_json_reports_are_read_too(tmp_path: Path) -> None:
    one, two = tiny_study(workload="x"), tiny_study(workload="y")
    (tmp_path / "both.json").write_text(studies_json([one, two]))
    (tmp_path / "one.json").write_text(studies_json([one]))

    assert collect(tmp_path / "both.json") == [(one, None), (two, None)]
    assert collect(tmp_path / "one.json") == [(one, None)]


def test_bad_input_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"schema": "other"}')
    (tmp_path / "empty").mkdir()

    with pytest.raises(UsageError, match=r"there is no `.*gone`"):
        collect(tmp_path / "gone")
    with pytest.raises(UsageError, match="this document is other version"):
        collect(tmp_path / "x.json")
    with pytest.raises(StoreError, match="is not a run folder, and there is none in it"):
        collect(tmp_path / "empty")


def test_the_worst_verdict_comes_first() -> None:
    verdicts = ["identical", "inconclusive", "noisy", "order-dependent", "fails-everywhere", "within-tolerance"]
    studies = [tiny_study(verdict=verdict, headline="h") for verdict in verdicts]

    ordered = [study.verdict for study in sorted(studies, key=worst_first)]

    assert ordered == ["fails-everywhere", "order-dependent", "noisy", "inconclusive", "within-tolerance", "identical"]


def test_a_series_has_the_runs_of_one_workload_oldest_first() -> None:
    past = [
        tiny_study(started="2026-11-02T10:00:00+0000", run_dir="2", verdict="noisy", exit_code=1, headline="h"),
        tiny_study(started="2026-11-01T10:00:00+0100", run_dir="1"),
        tiny_study(started="2026-11-01T10:00:00+0000", run_dir="9", workload="other"),
        tiny_study(started="", run_dir="8"),
    ]
    now = tiny_study(run_dir="3")

    series = series_of([*past, now], [now])

    assert [one.workload for one in series] == ["work.py::run"]
    assert [point.verdict for point in series[0].points] == ["identical", "noisy", "identical"]
    assert series_of([], [now]) == []

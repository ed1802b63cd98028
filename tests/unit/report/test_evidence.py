"""What a report draws from: the matrix of bits, examples of groups, and what is missing."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import numpy as np

from reprocheck.model import Record, Trial
from reprocheck.report.evidence import MIXED, NONE, Evidence
from reprocheck.report.redact import Redaction
from tests.samples import full_study, make_run, tiny_study

ONE, TWO, THREE = (np.array([float(number)]) for number in range(3))


def test_cells_carry_the_letter_of_the_first_group_with_these_bits(tmp_path: Path) -> None:
    study = make_run(
        tmp_path / "run",
        {
            ("a", "b", "c"): [{"x": ONE, "y": ONE}] * 2,
            ("b", "a", "c"): [{"x": ONE, "y": TWO}] * 2,
            ("c", "a", "b"): [{"x": TWO, "y": ONE}, {"x": THREE, "y": ONE}],
            ("c", "b", "a"): [{"x": ONE}] * 2,
        },
    )

    matrix = Evidence.of(study).matrix

    assert matrix is not None
    assert [group.id for group in study.groups] == ["A", "B", "C", "D", "E"]
    assert matrix.rows == {"x": ("A", "A", MIXED, "A"), "y": ("A", "B", "A", NONE)}


def test_trials_that_explain_or_locate_do_not_count(tmp_path: Path) -> None:
    study = make_run(
        tmp_path / "run",
        {("a", "b"): [{"x": ONE}], ("b", "a"): [{"x": TWO}]},
        traces={("a", "b"): [{"k": "note", "text": "n"}]},
    )

    evidence = Evidence.of(study)

    assert evidence.matrix is not None
    assert evidence.matrix.rows == {"x": ("A", "B")}
    record = evidence.record(("a", "b"))
    assert isinstance(record, Record)
    assert record.trial == Trial(order=("a", "b"), repeat=0)


def test_outputs_of_a_group(tmp_path: Path) -> None:
    study = make_run(tmp_path / "run", {("a", "b"): [{"x": ONE}], ("b", "a"): [{"x": TWO}]})
    evidence = Evidence.of(study)

    assert evidence.outputs("A")["x"].digest != evidence.outputs("B")["x"].digest
    assert evidence.outputs("Z") == {}


def test_without_a_run_folder_it_says_what_is_missing() -> None:
    evidence = Evidence.of(tiny_study(run_dir="/nowhere"))

    assert "run folder is not at hand" in evidence.missing
    assert evidence.matrix is None
    assert evidence.record(("a", "b")) is None
    assert evidence.outputs("A") == {}
    assert list(evidence.traces()) == []


def test_a_damaged_run_folder_is_told_not_raised(tmp_path: Path) -> None:
    study = make_run(tmp_path / "run", {("a", "b"): [{"x": ONE}], ("b", "a"): [{"x": TWO}]})
    (tmp_path / "run/records/000000.json").write_bytes(b"{")

    evidence = Evidence.of(study)

    assert "can't be read" in evidence.missing
    assert "000000.json" in evidence.missing


def test_a_moved_folder_is_found_by_its_new_place(tmp_path: Path) -> None:
    study = make_run(tmp_path / "run", {("a", "b"): [{"x": ONE}], ("b", "a"): [{"x": TWO}]})
    shutil.move(tmp_path / "run", tmp_path / "moved")

    assert Evidence.of(study).matrix is None
    assert Evidence.of(study, tmp_path / "moved").matrix is not None


def test_under_a_redaction_names_are_asked_for_as_they_are_shown(tmp_path: Path) -> None:
    study = full_study(tmp_path / "run")
    plain = Evidence.of(study)
    evidence = Evidence.of(study, redaction=Redaction(study, names=True, salt=b"s"))

    assert evidence.matrix is not None
    assert plain.matrix is not None
    assert list(evidence.matrix.rows.values()) == list(plain.matrix.rows.values())
    assert not set(evidence.matrix.rows) & set(plain.matrix.rows)
    order = evidence.arms[-1].order
    record = evidence.record(order)
    assert record is not None
    assert record.trial.order == order
    assert set(evidence.outputs("B")) == set(evidence.matrix.rows)


def test_traces_come_in_pairs_of_the_two_orders(tmp_path: Path) -> None:
    pairs = list(Evidence.of(full_study(tmp_path / "run")).traces())

    assert len(pairs) == 1
    first, second = pairs[0]
    assert [item.outputs[0].digest for item in first.operators][2:5] == ["d2", "x3", "x4"]
    assert [item.outputs[0].digest for item in second.operators][2:5] == ["d2", "y3", "y4"]


def test_bare_runs_alone_count_when_capture_changes_outputs(tmp_path: Path) -> None:
    study = make_run(tmp_path / "run", {("a", "b"): [{"x": ONE}], ("b", "a"): [{"x": TWO}]})
    noise = msgspec.structs.replace(study.noise, observer="differs")

    evidence = Evidence.of(msgspec.structs.replace(study, noise=noise), tmp_path / "run")

    assert evidence.matrix is None

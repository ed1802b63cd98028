"""Workflow commands and job summaries."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from reprocheck.model import Target
from reprocheck.report.github import MAX_ANNOTATIONS, append_summary, workflow_commands
from tests.samples import HOSTILE, full_study, tiny_study


def test_a_divergence_is_an_error_at_its_line(tmp_path: Path) -> None:
    work = tmp_path / "src, a/work.py"
    work.parent.mkdir()
    work.write_text("\n\ndef run(): pass\n")
    target = Target(text="w", kind="function", path=str(work), name="run")
    study = msgspec.structs.replace(full_study(tmp_path / "run"), target=target)

    lines = workflow_commands([tiny_study(), study], root=tmp_path).splitlines()

    assert lines[0].startswith(
        "::error file=src%2C a/work.py,line=3,title=reprocheck%3A order-dependent::"
        "order-dependent: 3 of 4 outputs differ"
    )
    assert lines[-1].startswith("::notice title=reprocheck%3A identical::identical:")


@pytest.mark.parametrize("hostile", HOSTILE)
def test_nothing_begins_another_command(tmp_path: Path, hostile: str) -> None:
    study = tiny_study(verdict="noisy", exit_code=1, headline=f"noisy: {hostile}\n::error::{hostile}", workload=hostile)

    text = workflow_commands([study], root=tmp_path)

    assert text.count("\n") == 1
    assert text.startswith("::error title=reprocheck%3A noisy::noisy: ")
    assert len(text) < 3000
    assert not re.search(r"[\x00-\x08\x0b-\x1f]", text)


def test_no_more_than_a_step_shows(tmp_path: Path) -> None:
    studies = [tiny_study(verdict="noisy", exit_code=1, workload=str(number)) for number in range(30)]

    assert workflow_commands(studies, root=tmp_path).count("\n") == MAX_ANNOTATIONS


def test_the_summary_is_appended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))

    assert append_summary([full_study(tmp_path / "run")]) == summary

    assert summary.read_text().startswith("before\n### order-dependent: 3 of 4")


def test_without_a_job_nothing_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)

    assert append_summary([tiny_study()]) is None


def test_a_full_summary_gets_headlines_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    summary = tmp_path / "summary.md"
    summary.write_bytes(b"x" * 999_900)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))

    append_summary([full_study(tmp_path / "run")])

    assert summary.stat().st_size < 1 << 20
    assert summary.read_text().endswith("- order-dependent: work.py::run\n\n")

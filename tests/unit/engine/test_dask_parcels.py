from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

from reprocheck.engine.dask.parcels import (
    PACKAGE,
    Answer,
    Assignment,
    changed_files,
    job_of,
    premises_for,
    sources_digest,
    trusted,
)
from reprocheck.engine.phases import RawOutput, RawRecord
from reprocheck.engine.trial import Job
from reprocheck.errors import HarnessError
from reprocheck.model import Record, Target, Trial


def job(file: Path) -> Job:
    return Job(
        target=Target(text="w.py::run", kind="function", path=str(file), name="run"),
        python="/usr/bin/python3",
        cwd=str(file.parent),
        environment={"HOME": "/home/é", "BYTES": "\udce9=\udcff"},
        env={"A": "1", "B": None},
        probes=(str(file),),
    )


def test_an_assignment_survives_its_journey(tmp_path: Path) -> None:
    file = tmp_path / "w.py"
    file.write_text("", "utf-8")
    ours = job(file)
    sent = Assignment(premises=premises_for(ours, own=False), study="s", trial=Trial(order=("a", "b"), repeat=3))
    arrived = msgspec.json.decode(msgspec.json.encode(sent), type=Assignment)
    assert arrived == sent
    assert job_of(arrived.premises, {}) == ours
    assert job_of(arrived.premises, {"CUDA_VISIBLE_DEVICES": "3"}).environment["CUDA_VISIBLE_DEVICES"] == "3"


TRIAL = Trial(order=("a",), repeat=0)


def answer(folder: str, *files: str) -> Answer:
    outputs = [RawOutput(name="x", dtype="u8", shape=(1,), nbytes=1, file=file, python="") for file in files]
    raw = RawRecord(record=Record(trial=TRIAL, effective_order=("a",), ok=True), outputs=tuple(outputs))
    return Answer(raw=raw, folder=folder)


FOLDER = "dask-0123456789abcdef"


def test_an_answer_is_of_the_trial_that_was_asked_for() -> None:
    asked = Trial(order=("a",), repeat=7)
    raw, folder = trusted(answer(FOLDER, "000001.safetensors"), {"trace.jsonl": b""}, asked)
    assert raw.record.trial == asked
    assert folder == FOLDER


@pytest.mark.parametrize(
    ("wrong", "files"),
    [
        (answer("..", "000001.safetensors"), {}),
        (answer(FOLDER, "../000001.safetensors"), {}),
        (answer(FOLDER, "/etc/passwd"), {}),
        (answer(FOLDER), {"../x": b""}),
        (Answer(folder=FOLDER), {}),
    ],
)
def test_names_that_lead_elsewhere_are_refused(wrong: Answer, files: dict[str, bytes]) -> None:
    with pytest.raises(HarnessError, match="makes no sense"):
        trusted(wrong, files, TRIAL)


def test_files_are_known_by_their_contents(tmp_path: Path) -> None:
    file = tmp_path / "w.py"
    file.write_text("one", "utf-8")
    files = premises_for(job(file), own=False).files
    assert changed_files(files) == {}
    file.write_text("two", "utf-8")
    assert changed_files(files) == {str(file): "has other contents"}
    file.unlink()
    assert changed_files(files) == {str(file): "can't be read (No such file or directory)"}


def test_the_sources_digest_changes_with_the_worker_the_engine_and_the_model(tmp_path: Path) -> None:
    copy = tmp_path / "reprocheck"
    for room in ("engine", "model", "report", "worker"):
        shutil.copytree(PACKAGE / room, copy / room, ignore=shutil.ignore_patterns("__pycache__"))
    ours = sources_digest(PACKAGE)
    assert sources_digest(copy) == ours
    (copy / "report/json.py").write_text("", "utf-8")
    assert sources_digest(copy) == ours
    seen = {ours}
    for name in ("worker/trial.py", "engine/trial.py", "model/trial.py"):
        with (copy / name).open("a", encoding="utf-8") as file:
            file.write("# changed\n")
        seen.add(sources_digest(copy))
    assert len(seen) == 4

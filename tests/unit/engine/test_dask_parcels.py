from __future__ import annotations

import shutil
from pathlib import Path

import msgspec

from reprocheck.engine.dask.parcels import PACKAGE, Assignment, changed_files, premises_for, sources_digest
from reprocheck.engine.trial import Job
from reprocheck.model import Target, Trial


def job(file: Path) -> Job:
    return Job(
        target=Target(text="w.py::run", kind="function", path=str(file), name="run"),
        python="/usr/bin/python3",
        cwd=str(file.parent),
        environment={"HOME": "/home/\udce9"},
        env={"A": "1", "B": None},
        probes=(str(file),),
    )


def test_an_assignment_survives_its_journey(tmp_path: Path) -> None:
    file = tmp_path / "w.py"
    file.write_text("", "utf-8")
    ours = job(file)
    ours = msgspec.structs.replace(ours, environment={"HOME": "/home/é"})
    sent = Assignment(premises=premises_for(ours, own=False), study="s", trial=Trial(order=("a", "b"), repeat=3))
    assert msgspec.json.decode(msgspec.json.encode(sent), type=Assignment) == sent


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

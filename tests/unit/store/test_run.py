"""The run folder: what is written comes back, and what is foreign is refused."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from reprocheck.errors import StoreError, UsageError
from reprocheck.model import Output, Record, Target, Trial
from reprocheck.store.objects import ObjectStore, digest_file
from reprocheck.store.run import Run, RunWriter, Spec, new_run_folder, runs_in, trial_key

SPEC = Spec(
    target=Target(text="w.py::run", kind="function", path="/w.py", name="run"),
    workload_digest="sha256:0",
    subjects=("a", "b"),
    orders=(("a", "b"), ("b", "a")),
    python="/python",
    cwd="/",
)


def record(repeat: int) -> Record:
    return Record(trial=Trial(order=("a", "b"), repeat=repeat), effective_order=("a", "b"), ok=True)


def test_records_come_back(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "run", SPEC) as writer:
        writer.add(record(0))
        writer.add(record(1))

    run = Run(tmp_path / "run.partial")
    assert run.spec == SPEC
    assert run.records() == [record(0), record(1)]
    with pytest.raises(StoreError, match="no verdict yet"):
        run.study()


def test_resume_knows_what_is_done_and_drops_a_cut_line(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "run", SPEC) as writer:
        writer.add(record(0))
    with (tmp_path / "run.partial" / "journal.jsonl").open("ab") as file:
        file.write(b'{"key": "a,b|r1", "rec')

    with RunWriter(tmp_path / "run", SPEC, resume=True) as writer:
        assert writer.done(record(0).trial) == record(0)
        assert writer.done(record(1).trial) is None
        writer.add(record(1))

    assert Run(tmp_path / "run.partial").records() == [record(0), record(1)]


@pytest.mark.parametrize("lost", ["record", "output", "part of an output"])
def test_what_a_power_cut_took_is_run_again(tmp_path: Path, lost: str) -> None:
    with RunWriter(tmp_path / "run", SPEC) as writer:
        for repeat in range(3):
            (tmp_path / "file").write_bytes(bytes([repeat]) * 100)
            output = Output(
                name="x", dtype="uint8", shape=(50,), nbytes=50, digest=writer.objects.take(tmp_path / "file")
            )
            writer.add(msgspec.structs.replace(record(repeat), outputs=(output,)))
        known = list(writer.records())
        damaged = writer.objects.path(known[1].outputs[0].digest)
    if lost == "record":
        (tmp_path / "run.partial" / "records" / "000001.json").write_bytes(b"")
    elif lost == "output":
        damaged.unlink()
    else:
        damaged.write_bytes(b"")

    with RunWriter(tmp_path / "run", SPEC, resume=True) as writer:
        assert [writer.done(item.trial) for item in known] == [known[0], None, known[2]]
        (tmp_path / "file").write_bytes(b"\1" * 100)
        writer.objects.take(tmp_path / "file")
        assert damaged.stat().st_size == 100
        writer.add(record(1))

    assert Run(tmp_path / "run.partial").records() == [known[0], known[2], record(1)]


def test_resume_with_another_spec_names_the_field_and_touches_nothing(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "run", SPEC):
        pass
    before = sorted(path.name for path in tmp_path.rglob("*"))

    with pytest.raises(UsageError, match="another `python`"):
        RunWriter(tmp_path / "run", msgspec.structs.replace(SPEC, python="/other"), resume=True)

    assert sorted(path.name for path in tmp_path.rglob("*")) == before


def test_keys_tell_trials_apart() -> None:
    trials = [
        Trial(order=("a", "b"), repeat=0),
        Trial(order=("b", "a"), repeat=0),
        Trial(order=("a", "b"), repeat=1),
        Trial(order=("a", "b"), repeat=0, capture=False),
        Trial(order=("a", "b"), repeat=0, presence=True),
        Trial(order=("a", "b"), repeat=0, env={"X": "1"}),
        Trial(order=("a", "b"), repeat=0, env={"X": None}),
        Trial(order=("a", "b"), repeat=0, actions=({"at": "t2"},)),
        Trial(order=("a", "b"), repeat=0, trace={"kind": "ops"}),
    ]

    assert len({trial_key(trial) for trial in trials}) == len(trials)


@pytest.mark.parametrize("digest", ["", "sha256:", "md5:" + "0" * 64, "sha256:../../etc/passwd", "sha256:" + "g" * 64])
def test_a_digest_is_not_a_path(tmp_path: Path, digest: str) -> None:
    with pytest.raises(StoreError):
        ObjectStore(tmp_path).path(digest)


def test_equal_files_are_one_object(tmp_path: Path) -> None:
    store = ObjectStore(tmp_path / "objects")
    digests = []
    for name in ("one", "two"):
        file = tmp_path / name
        file.write_bytes(b"same")
        expected = digest_file(file)
        digests.append(store.take(file))
        assert not file.exists()

    assert digests == [expected, expected]
    assert store.path(expected).read_bytes() == b"same"
    assert len([p for p in (tmp_path / "objects").rglob("*") if p.is_file()]) == 1


def test_a_journal_that_names_other_files_is_refused(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "run", SPEC):
        pass
    folder = tmp_path / "run.partial"
    (folder / "journal.jsonl").write_text('{"key": "k", "record": "../../secret.json", "at": 0}\n')

    with pytest.raises(StoreError, match="is damaged"):
        Run(folder).records()


def test_unknown_fields_and_formats_are_refused(tmp_path: Path) -> None:
    (tmp_path / "spec.json").write_text("{}")
    with pytest.raises(StoreError, match="cannot be read"):
        Run(tmp_path)
    (tmp_path / "spec.json").write_bytes(msgspec.json.encode(msgspec.structs.replace(SPEC, format=99)))
    with pytest.raises(StoreError, match="format 99"):
        Run(tmp_path)


def test_fresh_names_do_not_meet(tmp_path: Path) -> None:
    names = {new_run_folder(tmp_path, "a b/c.py::run").name for _ in range(50)}

    assert len(names) == 50
    assert all("a-b-c-py-run" in name for name in names)
    assert runs_in(tmp_path / "nothing") == []

"""What is kept: the journal with resuming and undoing, the cache of environments, versions in wheel folders."""

from __future__ import annotations

import os
import threading
import zipfile
from pathlib import Path

import pytest

from reprocheck.bisect.by_version import skipped
from reprocheck.bisect.changes import changed_files, other_packages
from reprocheck.bisect.installers import Sources
from reprocheck.bisect.journal import Entry, Journal, find_unfinished
from reprocheck.bisect.records import Candidate, Place, Seen, Unavailable
from reprocheck.bisect.store import EnvironmentStore, environment_key
from reprocheck.bisect.versions import list_versions, select
from reprocheck.errors import NothingSelectedError, StoreError, UsageError

SPEC = {"what": "w.py", "good": "1"}


def entry(name: str, run: int = 0) -> Entry:
    return Entry(name=name, run=run, seen=Seen(bad=False, reason="ok"))


def names(journal: Journal) -> list[str]:
    return [one.name for one in journal.standing()]


def test_a_journal_is_gone_on_with(tmp_path: Path) -> None:
    folder = tmp_path / "b"
    with Journal(folder, SPEC) as journal:
        journal.add(entry("1.0"))
        journal.add(entry("1.1"))
    with (folder / "journal.jsonl").open("ab") as file:
        file.write(b'{"name":"1.2","ru')

    with Journal(folder, SPEC, resume=True) as journal:
        assert names(journal) == ["1.0", "1.1"], "a line that was cut is left out"
        journal.add(entry("1.3"))

    with Journal(folder, SPEC, resume=True) as journal:
        assert names(journal) == ["1.0", "1.1", "1.3"]


def test_runs_are_taken_back(tmp_path: Path) -> None:
    left = tmp_path / "b" / "versions" / "1.2"
    with Journal(tmp_path / "b", SPEC) as journal:
        for name in ("1.0", "1.1"):
            journal.add(entry(name))
        left.mkdir(parents=True)
        journal.add(Entry(name="1.2", seen=Seen(bad=True, reason="bad", run_dir=str(left))))

        gone = journal.undo(2)

        assert [one.name for one in gone] == ["1.1", "1.2"]
        assert not left.exists(), "so that it is run again"
        journal.add(entry("1.4"))
        assert names(journal) == ["1.0", "1.4"]
        journal.undo(99)
        with pytest.raises(UsageError, match="no run to undo"):
            journal.undo(1)


def test_another_question_is_refused_and_the_field_named(tmp_path: Path) -> None:
    with Journal(tmp_path / "b", SPEC):
        pass

    with pytest.raises(UsageError, match=r"another `good` \(\"1\", now \"2\"\)"):
        Journal(tmp_path / "b", {**SPEC, "good": "2"}, resume=True)
    with pytest.raises(UsageError, match="exists already"):
        Journal(tmp_path / "b", SPEC)
    with pytest.raises(UsageError, match="no bisection"):
        Journal(tmp_path / "c", SPEC, resume=True)


def test_a_journal_has_one_owner(tmp_path: Path) -> None:
    with Journal(tmp_path / "b", SPEC), pytest.raises(UsageError, match="in use"):
        Journal(tmp_path / "b", SPEC, resume=True)


def test_the_newest_unfinished_one_is_found(tmp_path: Path) -> None:
    for name in ("20260101-a", "20260102-b", "20260103-c"):
        with Journal(tmp_path / name, SPEC):
            pass
    (tmp_path / "20260103-c" / "report.json").write_text("{}")

    assert find_unfinished(tmp_path, "w.py").name == "20260102-b"
    with pytest.raises(UsageError, match="no unfinished"):
        find_unfinished(tmp_path, "other.py")


def place(folder: Path, **fields: object) -> Place:
    python = folder / "bin" / "python"
    python.parent.mkdir(parents=True, exist_ok=True)
    python.write_text("#!/bin/sh\n")
    python.chmod(0o755)
    return Place(python=str(python), folder=str(folder), content="c", installed={}, **fields)  # type: ignore[arg-type]


def test_an_environment_is_built_once(tmp_path: Path) -> None:
    built: list[Path] = []

    def build(folder: Path) -> Place:
        built.append(folder)
        return place(folder)

    for _ in range(2):
        store = EnvironmentStore(tmp_path, 1 << 30)
        assert isinstance(store.get("k", build), Place)
        store.close()
    assert len(built) == 1


def test_threads_that_ask_for_one_environment_share_it(tmp_path: Path) -> None:
    store, built = EnvironmentStore(tmp_path, 1 << 30), []
    barrier = threading.Barrier(4)

    def build(folder: Path) -> Place:
        built.append(folder)
        return place(folder)

    def ask() -> None:
        barrier.wait()
        assert isinstance(store.get("k", build), Place)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()
    assert len(built) == 1


def test_what_failed_is_not_kept(tmp_path: Path) -> None:
    store = EnvironmentStore(tmp_path, 1 << 30)

    def breaks(folder: Path) -> Place:
        folder.mkdir()
        raise UsageError("no")

    with pytest.raises(UsageError):
        store.get("k", breaks)
    assert isinstance(store.get("k", lambda _: Unavailable(kind="python", reason="old")), Unavailable)
    assert isinstance(store.get("k", place), Place), "and can be asked for again"


def test_an_environment_that_a_killed_process_left_is_made_anew(tmp_path: Path) -> None:
    half = tmp_path / "environments" / "k" / "lib"
    half.mkdir(parents=True)

    EnvironmentStore(tmp_path, 1 << 30).get("k", place)

    assert not half.exists()


def test_the_oldest_go_first_and_those_in_use_stay(tmp_path: Path) -> None:
    def build(folder: Path) -> Place:
        found = place(folder)
        (folder / "big").write_bytes(os.urandom(200_000))
        return found

    store = EnvironmentStore(tmp_path, 1 << 30)
    for age, key in enumerate(("old", "middle", "new")):
        store.get(key, build)
        os.utime(tmp_path / "environments" / key / "reprocheck.json", (age, age))
    store.close()

    holder = EnvironmentStore(tmp_path, 1 << 30)
    holder.get("old", build)
    os.utime(tmp_path / "environments" / "old" / "reprocheck.json", (0, 0))
    EnvironmentStore(tmp_path, 450_000).trim()

    left = {path.name for path in (tmp_path / "environments").iterdir() if path.is_dir()}
    assert left == {"old", "new"}


def test_keys_tell_environments_apart() -> None:
    assert environment_key({"a": 1, "b": 2}) == environment_key({"b": 2, "a": 1})
    assert environment_key({"a": 1}) != environment_key({"a": 2})


def wheel(folder: Path, version: str, text: str = "", tag: str = "py3-none-any") -> None:
    folder.mkdir(exist_ok=True)
    info = f"tool-{version}.dist-info"
    with zipfile.ZipFile(folder / f"tool-{version}-{tag}.whl", "w") as archive:
        archive.writestr("tool/__init__.py", text)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: tool\nVersion: {version}\n")
        archive.writestr(
            f"{info}/RECORD", f"tool/__init__.py,sha256={hash(text)},1\n{info}/METADATA,sha256=x{version},1\n"
        )


def test_versions_in_a_folder(tmp_path: Path) -> None:
    for version in ("1.10", "1.9", "1.2", "2.0rc1"):
        wheel(tmp_path / "w", version)
    (tmp_path / "w" / "other-1.0-py3-none-any.whl").write_bytes(b"")
    (tmp_path / "w" / "notes.txt").write_text("")
    sources = Sources(find_links=(str(tmp_path / "w"),), no_index=True)

    found = list_versions("Tool", sources, None)

    assert [one.name for one in found.candidates] == ["1.2", "1.9", "1.10", "2.0rc1"]
    assert found.candidates[0].requirement == "tool==1.2"
    assert len({one.content for one in found.candidates}) == 1, "only the version number differs"


def test_one_version_twice_with_different_contents_is_told(tmp_path: Path) -> None:
    wheel(tmp_path / "a", "1.0", "x = 1")
    wheel(tmp_path / "b", "1.0", "x = 2")
    sources = Sources(find_links=(str(tmp_path / "a"), str(tmp_path / "b")), no_index=True)

    found = list_versions("tool", sources, None)

    assert "2 times with different contents" in found.notes[0]
    assert found.candidates[0].content == ""


def test_a_damaged_wheel_is_left_to_the_installer(tmp_path: Path) -> None:
    (tmp_path / "tool-1.0-py3-none-any.whl").write_bytes(b"no zip")

    found = list_versions("tool", Sources(find_links=(str(tmp_path),), no_index=True), None)

    assert "no readable wheel" in found.notes[0]
    assert [one.name for one in found.candidates] == ["1.0"]


def test_a_package_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no wheel of `tool`"):
        list_versions("tool", Sources(find_links=(str(tmp_path),), no_index=True), None)
    with pytest.raises(UsageError, match="no pip to ask"):
        list_versions("tool", Sources(), None)


def test_ends_are_chosen(tmp_path: Path) -> None:
    for version in ("1.0", "1.1", "1.2rc1", "1.2", "1.3", "1.4rc1"):
        wheel(tmp_path, version)
    found = list_versions("tool", Sources(find_links=(str(tmp_path),), no_index=True), None)

    def between(good: str | None, bad: str | None, **options: bool) -> list[str]:
        return [one.name for one in select(found, good, bad, **{"pre": False, **options}).candidates]

    assert between("1.1", "1.3") == ["1.1", "1.2", "1.3"]
    assert between("1.1", None) == ["1.1", "1.2", "1.3"], "the newest final one is the bad end"
    assert between("1.2rc1", "1.3") == ["1.2rc1", "1.2", "1.3"], "a pre-release that is named"
    assert between("1.1", "1.3", pre=True) == ["1.1", "1.2rc1", "1.2", "1.3"]
    assert between("1.3", "1.1", find_fix=True) == ["1.1", "1.2", "1.3"]
    assert select(found, None, "1.3", pre=False).walk
    for good, bad, says in (
        ("1.3", "1.0", "--find-fix"),
        ("1.7", None, "there is no version 1.7"),
        ("x!", None, "no version"),
    ):
        with pytest.raises(UsageError, match=says):
            between(good, bad)
    with pytest.raises(UsageError, match="swap"):
        between("1.0", "1.3", find_fix=True)
    with pytest.raises(NothingSelectedError, match="nothing to search"):
        between("1.3", "1.3")


def test_skipping_by_name_and_range() -> None:
    candidates = [Candidate(name=name) for name in ("1.0", "1.1", "1.2", "1.3")]

    assert set(skipped(candidates, ("1.1..1.2",))) == {"1.1", "1.2"}
    assert set(skipped(candidates, ("1.0", "1.3.0"))) == {"1.0", "1.3"}
    with pytest.raises(UsageError, match="names `9`"):
        skipped(candidates, ("9",))


def test_what_changed_in_the_package(tmp_path: Path) -> None:
    sides = {}
    for name, text in (
        ("good", "import os\nx = 1\ny = 1\n"),
        ("bad", "import os\nos.environ['A'] = '1'\nx = 1\ny = 2\n"),
    ):
        root = tmp_path / name
        (root / "tool").mkdir(parents=True)
        (root / "tool" / "__init__.py").write_text(text)
        files = {"tool/__init__.py": text, "tool/same.py": "=", f"tool/{name}.py": "."}
        sides[name] = place(root, files=files, root=str(root))
    blamed = {"tool/__init__.py": {2}}

    began = {one.path: one for one in changed_files(sides["good"], sides["bad"], blamed)}
    fixed = {one.path: one for one in changed_files(sides["bad"], sides["good"], blamed, find_fix=True)}

    assert {path: one.kind for path, one in began.items()} == {
        "tool/__init__.py": "changed",
        "tool/good.py": "removed",
        "tool/bad.py": "added",
    }
    assert began["tool/__init__.py"].lines == ("+ os.environ['A'] = '1'",), "the change at the blamed line alone"
    assert {path: one.kind for path, one in fixed.items()} == {
        "tool/__init__.py": "changed",
        "tool/good.py": "added",
        "tool/bad.py": "removed",
    }
    assert fixed["tool/__init__.py"].lines == ("- os.environ['A'] = '1'",)
    assert fixed["tool/__init__.py"].blamed == (2,)


def test_a_blamed_line_that_was_replaced(tmp_path: Path) -> None:
    old, new = (tmp_path / name for name in ("old", "new"))
    for root, text in ((old, "a = 1\nb = 1\n"), (new, "a = 1\nb = 2\n")):
        root.mkdir()
        (root / "m.py").write_text(text)
    before, after = (place(root, files={"m.py": root.name}, root=str(root)) for root in (old, new))

    lines = {
        side: changed_files(before, after, {"m.py": {2}}, find_fix=side == "old")[0].lines for side in ("old", "new")
    }

    assert lines == {"old": ("- b = 1", "+ b = 2"), "new": ("- b = 1", "+ b = 2")}


def test_other_packages_that_changed() -> None:
    good = Place(
        python="", folder="", content="", installed={"tool": "1", "dep": "1", "gone": "3"}, inherited={"torch": "2"}
    )
    bad = Place(
        python="", folder="", content="", installed={"tool": "2", "dep": "2", "new": "1"}, inherited={"torch": "2"}
    )

    found = {one.name: (one.before, one.after) for one in other_packages("tool", good, bad)}

    assert found == {"dep": ("1", "2"), "gone": ("3", "none"), "new": ("none", "1")}


def test_a_damaged_environment_is_named(tmp_path: Path) -> None:
    store = EnvironmentStore(tmp_path, 1 << 30)
    store.get("k", place)
    store.close()
    (tmp_path / "environments" / "k" / "reprocheck.json").write_text("{")

    with pytest.raises(StoreError, match="damaged"):
        EnvironmentStore(tmp_path, 1 << 30).get("k", place)

"""Which of the changed packages, and which commit."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from reprocheck.bisect.records import Report
from reprocheck.bisect.report import render
from reprocheck.errors import NothingSelectedError, UsageError
from tests.integration.bisect.conftest import House

NAMES = ("ant", "bee", "cat", "dog", "eel", "fox")


def locks(house: House, **bad: str) -> dict[str, str]:
    """Two locks over six packages, all of which change from 1 to 2; `bad` are the sources of their new versions."""
    for name in NAMES:
        house.release("1", "value = 0", name=name)
        house.release("2", bad.get(name, "value = 0\nnew = True"), name=name)
    for lock, version in (("good.txt", 1), ("bad.txt", 2)):
        (house.folder / lock).write_text("".join(f"{name}=={version}\n" for name in NAMES))
    imports = ", ".join(NAMES)
    house.write(work=f"import {imports}\ndef run():\n    return float({'+'.join(f'{n}.value' for n in NAMES)} >= 2)\n")
    return {
        "kind": "locks",
        "good": str(house.folder / "good.txt"),
        "bad": str(house.folder / "bad.txt"),
        "until": "drift",
    }


def sets(report: Report) -> list[list[str]]:
    assert report.culprits is not None
    return [[item.name for item in one] for one in report.culprits.sets]


def test_the_changed_package_that_does_it(house: House) -> None:
    asked = locks(house, dog="value = 2")

    report = house.bisect(**asked, command=("reprocheck", "bisect"))

    assert sets(report) == [["dog"]]
    assert report.culprits is not None
    assert report.culprits.minimal
    assert report.headline.startswith("dog 1 → 2 makes the difference")
    assert report.next_command[:9] == (
        *("reprocheck", "bisect", "work.py::run", "--package", "dog"),
        *("--good", "1", "--bad", "2"),
    )
    assert "dog 1 → 2" in render(report, "text")


def test_two_that_do_it_together(house: House) -> None:
    asked = locks(house, bee="value = 1", fox="value = 1")

    assert sets(house.bisect(**asked)) == [["bee", "fox"]]


def test_two_that_do_it_each(house: House) -> None:
    asked = locks(house, ant="value = 2", eel="value = 2")

    assert sets(house.bisect(**asked)) == [["ant"], ["eel"]]


def test_mixtures_that_cannot_be_installed(house: House) -> None:
    asked = locks(house)
    house.release("2", "value = 2", name="cat", requires=["dog==2"])

    report = house.bisect(**asked)

    assert sets(report) == [["cat", "dog"]], "the smallest that can be installed"
    assert report.culprits is not None
    assert not report.culprits.minimal
    assert report.culprits.unresolved >= 1
    assert any("dog" in one.reason for one in report.untestable)


def test_the_one_packages_versions_are_searched_with_the_rest_from_the_lock(house: House) -> None:
    locks(house, dog="value = 2")
    house.release("1.5", "value = 2\nnew = 1", name="dog")

    report = house.bisect(
        package="dog", good="1", bad="2", until="drift", lock=str(house.folder / "good.txt"), base="clean"
    )

    assert (report.last_good, report.first_bad) == ("1", "1.5")


def test_locks_that_are_equal(house: House) -> None:
    asked = locks(house)

    with pytest.raises(NothingSelectedError, match="pin the same"):
        house.bisect(**{**asked, "bad": asked["good"]})


def test_locks_that_both_give_the_same(house: House) -> None:
    report = house.bisect(**locks(house))

    assert (report.outcome, report.exit_code) == ("same-ends", 1)


class History:
    """A repository."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self("init", "--quiet", "--initial-branch=main")
        self("config", "user.email", "dev@example.org")
        self("config", "user.name", "Dev")

    def __call__(self, *arguments: str) -> str:
        end = subprocess.run(["git", "-C", str(self.folder), *arguments], capture_output=True, text=True, check=True)
        return end.stdout.strip()

    def commit(self, title: str, files: dict[str, str]) -> str:
        for name, text in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self("add", "--all")
        self("commit", "--quiet", "--message", title)
        return self("rev-parse", "--short", "HEAD")


@pytest.fixture
def history(tmp_path: Path, house: House) -> History:
    house.write(work="import tool\ndef run():\n    return tool.value\n")
    return History(tmp_path / "repo")


def source(number: int, value: float) -> dict[str, str]:
    return {"src/tool/__init__.py": f"value = {value}\nnumber = {number}\n"}


def git(house: House, history: History, **more: object) -> Report:
    return house.bisect(kind="git", repo=str(history.folder), until="drift", **more)


def test_the_commit_that_did_it(house: House, history: History) -> None:
    names = [history.commit(f"step {n}", source(n, 1.0 + (n >= 5))) for n in range(9)]
    history.commit("words", {"README": "words"})

    report = git(house, history, good=names[0])

    assert (report.last_good, report.first_bad) == (names[4], names[5])
    assert report.plan == "10 commits: 10 available, 9 distinct, about 5 to run", "the last one changed words only"
    assert [row.title for row in report.versions if row.name == names[5]] == ["step 5"]
    assert history("worktree", "list").count("\n") == 0, "nothing is left behind"
    assert history("status", "--porcelain") == ""


def test_a_merge_is_looked_into(house: House, history: History) -> None:
    start = history.commit("start", source(0, 1.0))
    history("checkout", "--quiet", "-b", "side")
    side = [
        history.commit(f"side {n}", {"src/tool/extra.py": f"value = {1.0 + (n >= 2)}\nn = {n}\n"}) for n in range(4)
    ]
    history("checkout", "--quiet", "main")
    house.write(
        work="""
            import importlib, tool

            def run():
                try:
                    return importlib.import_module("tool.extra").value
                except ImportError:
                    return 1.0
        """
    )
    for number in range(1, 4):
        history.commit(f"main {number}", source(number, 1.0))
    history("merge", "--quiet", "--no-ff", "--message", "Merge side", "side")
    merge = history("rev-parse", "--short", "HEAD")
    history.commit("main 9", source(9, 1.0))

    report = git(house, history, good=start, out=str(house.folder / "deep"))
    shallow = git(house, history, good=start, first_parent=True, out=str(house.folder / "shallow"))

    assert (report.last_good, report.first_bad) == (side[1], side[2])
    assert report.notes[0] == f"on the main line it came with the merge {merge} (Merge side)"
    assert shallow.first_bad == merge


def test_a_merge_that_did_it_itself(house: House, history: History) -> None:
    house.write(work="import tool.a, tool.b\ndef run():\n    return float(tool.a.value + tool.b.value >= 2)\n")
    start = history.commit(
        "start", {"src/tool/__init__.py": "", "src/tool/a.py": "value = 0", "src/tool/b.py": "value = 0"}
    )
    history("checkout", "--quiet", "-b", "side")
    history.commit("a", {"src/tool/a.py": "value = 1"})
    history("checkout", "--quiet", "main")
    history.commit("b", {"src/tool/b.py": "value = 1"})
    history("merge", "--quiet", "--no-ff", "--message", "Merge side", "side")
    merge = history("rev-parse", "--short", "HEAD")

    report = git(house, history, good=start)

    assert report.first_bad == merge
    assert "the merge itself brought it in" in report.notes[-1]


def test_commits_are_built_when_asked(house: House, history: History) -> None:
    project = (
        '[project]\nname = "tool"\nversion = "1"\n'
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    )
    backend = Path(__file__).with_name("backend.txt").read_text()
    names = [
        history.commit(f"step {n}", {"pyproject.toml": project, "backend.py": backend, **source(n, 1.0 + (n >= 2))})
        for n in range(4)
    ]

    report = git(house, history, good=names[0], build=True, package="tool", runs=1)

    assert (report.last_good, report.first_bad) == (names[1], names[2])


def test_submodules_come_with_a_commit(house: House, history: History, tmp_path: Path) -> None:
    """Of the user's clone, with what it was set to at that commit; a commit whose submodule is gone is passed over."""
    part = History(tmp_path / "part")
    allowed = ("-c", "protocol.file.allow=always")
    values = [part.commit(f"part {n}", {"value.py": f"value = {1.0 + (n >= 3)}\nn = {n}\n"}) for n in range(5)]
    history.commit("start", {"src/tool/__init__.py": "from tool.part.value import value\n"})
    history(*allowed, "submodule", "--quiet", "add", str(part.folder), "src/tool/part")
    names = []
    for value in values:
        inside = History.__new__(History)
        inside.folder = history.folder / "src/tool/part"
        inside("checkout", "--quiet", value)
        names.append(history.commit(f"take {value}", {}))
    shutil.rmtree(part.folder)

    report = git(house, history, good=names[0])

    assert (report.last_good, report.first_bad) == (names[2], names[3])
    assert history("status", "--porcelain") == ""

    shutil.rmtree(history.folder / ".git/modules/src/tool/part")
    gone = git(house, history, good=names[0], out=str(tmp_path / "gone"))

    assert gone.outcome == "end-untestable"
    assert "its submodule `src/tool/part` can't be checked out: repository" in gone.headline


@pytest.mark.parametrize(
    ("good", "bad", "says"),
    [("main", "v0", "comes after"), ("nope", None, "no revision"), ("v0", "other", "no ancestor")],
)
def test_ends_that_make_no_line(house: House, history: History, good: str, bad: str | None, says: str) -> None:
    history.commit("0", source(0, 1.0))
    history("tag", "v0")
    history.commit("1", source(1, 1.0))
    history("checkout", "--quiet", "--orphan", "other")
    history.commit("apart", source(2, 1.0))
    history("checkout", "--quiet", "main")

    with pytest.raises(UsageError, match=says):
        git(house, history, good=good, bad=bad)


def test_no_repository(house: House, tmp_path: Path) -> None:
    house.write(work="def run():\n    return 1.0\n")

    with pytest.raises(UsageError, match="in no git repository"):
        house.bisect(kind="git", repo=str(tmp_path), until="drift", good="x")

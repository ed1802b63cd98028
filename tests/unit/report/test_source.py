"""Places in files: where workloads begin, and which files a report may quote."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from reprocheck.model import Target
from reprocheck.report.source import excerpt, node_place, workload_place
from reprocheck.store.objects import digest_file
from tests.samples import tiny_study

WORK = "import a\n\n\ndef run():\n    return 1\n\n\nclass TestIt:\n    def test_one(self):\n        pass\n"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    file = tmp_path / "project/work.py"
    file.parent.mkdir()
    file.write_text(WORK)
    return file


@pytest.mark.parametrize(
    ("kind", "name", "line"),
    [("function", "run", 4), ("script", None, 1), ("pytest", "TestIt::test_one[a-b]", 9), ("function", "gone", 1)],
)
def test_a_workload_begins_at_its_definition(work: Path, kind: str, name: str | None, line: int) -> None:
    target = Target(text="t", kind=kind, path=str(work), name=name)  # type: ignore[arg-type]

    place = workload_place(tiny_study(target=target), work.parent)

    assert place is not None
    assert (place.file, place.line) == (work, line)


def test_a_module_is_found_below_the_root_without_importing_it(work: Path) -> None:
    target = Target(text="project.work:run", kind="module", module="project.work", name="run")

    place = workload_place(tiny_study(target=target), work.parent.parent)

    assert place is not None
    assert (place.file, place.line) == (work, 4)


def test_a_suite_begins_at_the_first_test_that_was_named(work: Path) -> None:
    target = Target(text="pytest", kind="pytest", args=("-q", "work.py::TestIt", "other"))

    place = workload_place(tiny_study(target=target), work.parent)

    assert place is not None
    assert place.line == 8


def test_no_place_for_what_is_not_there(tmp_path: Path) -> None:
    assert workload_place(tiny_study(), tmp_path) is None
    assert (
        workload_place(tiny_study(target=Target(text="x:y", kind="module", module="no.such", name="y")), tmp_path)
        is None
    )
    assert node_place("-q", tmp_path) is None
    assert node_place("gone.py::test", tmp_path) is None


def test_a_file_of_an_installed_library_is_quoted() -> None:
    found = excerpt(str(Path(np.__file__)), 10)

    assert found is not None
    assert found.first == 7
    assert len(found.lines) == 7


def test_a_file_beside_the_workload_is_quoted_only_to_who_had_the_workload(work: Path) -> None:
    settings = work.with_name("settings.py")
    settings.write_text("KEY = 'secret'\n")

    assert excerpt(str(settings), 1, workload=str(work), digest="sha256:" + "0" * 64) is None
    assert excerpt(str(settings), 1, workload=str(work)) is None
    assert excerpt(str(settings), 1, workload=str(work), digest=digest_file(work)) is not None


def test_what_may_not_be_quoted(work: Path, tmp_path: Path) -> None:
    digest = digest_file(work)
    hidden = tmp_path / "project/.private/key.py"
    hidden.parent.mkdir()
    hidden.write_text("x\n")
    text = tmp_path / "project/notes.txt"
    text.write_text("x\n")
    link = tmp_path / "project/link.py"
    link.symlink_to(text)

    for file in (hidden, text, link, Path("/etc/passwd"), tmp_path / "project/gone.py", Path("relative.py")):
        assert excerpt(str(file), 1, workload=str(work), digest=digest) is None, file
    assert excerpt(str(work), 10_000, workload=str(work), digest=digest) is None


def test_a_file_below_the_working_directory_is_quoted(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert excerpt(str(work), 4) is None

    monkeypatch.chdir(work.parent)

    found = excerpt(str(work), 4)
    assert found is not None
    assert found.lines[3] == "def run():"

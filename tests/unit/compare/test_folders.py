from __future__ import annotations

import pytest

from reprocheck.compare.folders import without_folders

BASE = "/home/u/.reprocheck/runs/1.partial/scratch"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (f"{BASE}/41-000001/basetemp/test_x0/file", f"{BASE}/41-000002/basetemp/test_x0/file"),
        (f"'{BASE}/41-000001/basetemp'", f"'{BASE}/42-000001/basetemp'"),
        ("/tmp/tmpab12cd_9/x", "/tmp/tmpzzzzzzzz/x"),
    ],
)
def test_paths_of_temporary_folders_are_alike(one: str, other: str) -> None:
    assert without_folders(one) == without_folders(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (f"{BASE}/41-000001/basetemp/test_x0", f"{BASE}/41-000002/basetemp/test_x1"),
        ("/data/41-000001/x", "/data/41-000002/x"),
        ("/tmp/tmpab12cd_9", "/tmp/tmplate"),
        ("a tmpab12cd_9", "a tmpzzzzzzzz"),
    ],
)
def test_all_else_is_not(one: str, other: str) -> None:
    assert without_folders(one) != without_folders(other)

"""Shared fixtures: a folder in which tests write tiny toolboxes, and the line run on them."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from reprocheck.model import Study


class Lab:
    """A folder with toolboxes and workloads written by a test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, **modules: str) -> None:
        """Write `name.py` for each keyword; `__` in a name is a folder separator."""
        for name, source in modules.items():
            path = self.folder / (name.replace("__", "/") + ".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(source), encoding="utf-8")

    def check(self, target: str = "work.py::run", imports: Sequence[str] | None = ("a", "b"), **options: Any) -> Study:
        """`reprocheck.check` in this folder."""
        from reprocheck import check

        return check(target, list(imports) if imports is not None else None, cwd=self.folder, **options)


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)

"""Shared fixtures: a folder in which tests write tiny toolboxes, and the line run on them."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from reprocheck.model import Study, Target

# A busy machine is no reason to fail: how long an example takes says nothing about what is tested.
# The suite is a gate, so it draws the same examples in every run; REPROCHECK_HYPOTHESIS=search looks for new ones.
settings.register_profile(
    "reprocheck", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True, database=None
)
settings.register_profile("search", settings.get_profile("reprocheck"), derandomize=False, max_examples=2000)
settings.load_profile("search" if os.environ.get("REPROCHECK_HYPOTHESIS") == "search" else "reprocheck")


class Lab:
    """A folder with toolboxes and workloads written by a test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, files: Mapping[str, str] | None = None, **modules: str) -> None:
        """Write `name.py` for each keyword, and `files` by their paths."""
        for name, source in [*(files or {}).items(), *((f"{name}.py", text) for name, text in modules.items())]:
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(source), encoding="utf-8")

    def check(
        self, target: str | Target = "work.py::run", imports: Sequence[str] | None = ("a", "b"), **options: Any
    ) -> Study:
        """`reprocheck.check` in this folder; its divergences are explained only when a test asks for that."""
        from reprocheck import check

        options.setdefault("explain", False)
        return check(target, list(imports) if imports is not None else None, cwd=self.folder, **options)


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)

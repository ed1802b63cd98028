"""Real packages at pinned versions. Without them a test is skipped, unless its session promises them."""

from __future__ import annotations

import importlib.metadata
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything below this folder is `realworld`, and runs only when that mark is asked for."""
    for item in items:
        if Path(item.path).is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.realworld)


@pytest.fixture
def needs() -> object:
    """`needs("mkl")`: skip where a distribution is missing; fail where REPROCHECK_ALL_PACKAGES promises all."""

    def check(*names: str) -> None:
        for name in names:
            try:
                importlib.metadata.version(name)
            except importlib.metadata.PackageNotFoundError:
                if os.environ.get("REPROCHECK_ALL_PACKAGES"):
                    pytest.fail(f"{name} should be installed in this session")
                pytest.skip(f"{name} is not installed")

    return check

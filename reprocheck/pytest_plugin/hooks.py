"""The hooks that reprocheck offers to conftests and plugins."""

from __future__ import annotations

from typing import Any

import pytest

__all__ = ["pytest_reprocheck_env", "pytest_reprocheck_probes", "pytest_reprocheck_result"]


def pytest_reprocheck_env(config: pytest.Config, env: dict[str, str]) -> None:
    """Change `env`, the variables that are set in the trials of every check, in place.

    Called in the process that runs the check, before each one. A check's own `env` is applied on top.
    """


def pytest_reprocheck_probes(config: pytest.Config) -> list[Any] | None:
    """Return paths of files with snapshot readers of your own: `name`, `phases` and `read()`, standard library only.

    Called as `pytest_reprocheck_env` is. What a probe reads is captured in every trial, and compared between orders.
    """


def pytest_reprocheck_result(config: pytest.Config, nodeid: str, result: Any) -> None:
    """See the outcome of a check: `result.study`, `result.verdict`, `result.groups`, `result.run_dir`.

    Called once per check in the process that reports, which under xdist is the controller, when its test has ended.
    """

"""What a pytest process has of reprocheck: settings, how the user started it, and the line to the checks' process."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from reprocheck.pytest_plugin.options import Settings, read_settings

if TYPE_CHECKING:
    from reprocheck.pytest_plugin.checker import Checker

__all__ = ["FAILED", "PREFIX", "STATE", "State", "node_id", "variables"]

PREFIX = "reprocheck."
"""Of the names of our properties in reports."""


def node_id(item: pytest.Item) -> str:
    """The test as one types it. `item.nodeid` has `@GROUP` behind it with xdist's `--dist loadgroup` on pytest 8."""
    return item.nodeid if item.parent is None else f"{item.parent.nodeid}::{item.name}"


class State:
    """One per process; under xdist the controller's own facts reach the workers by `for_worker`."""

    def __init__(self, config: pytest.Config) -> None:
        """Reads options. Raises `pytest.UsageError`."""
        self.settings: Settings = read_settings(config)
        given: dict[str, Any] | None = getattr(config, "workerinput", None)
        self.is_worker = given is not None
        own = (given or {}).get("reprocheck") or {
            "environ": starting_block(),
            "args": [str(arg) for arg in config.invocation_params.args],
            "cwd": str(config.invocation_params.dir),
            "session": f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}",
        }
        self.for_worker: dict[str, Any] = own
        """What an xdist worker must know, in types that execnet can send."""
        self.args: list[str] = own["args"]
        """The command line the user gave pytest."""
        self.cwd = Path(own["cwd"])
        self.session = self.settings.dir / "sessions" / own["session"]
        """Where processes of this session leave files for the controller; made when there is one."""
        self._checker: Checker | None = None

    @property
    def environment(self) -> dict[str, str]:
        """The variables the user started pytest with."""
        return variables(self.for_worker["environ"])

    @property
    def checker(self) -> Checker:
        """The line to the process that runs checks."""
        if self._checker is None:
            from reprocheck.pytest_plugin.checker import Checker

            self._checker = Checker(self.environment)
        return self._checker

    def close(self) -> None:
        """End what was started."""
        if self._checker is not None:
            self._checker.close()
            self._checker = None

    def sys_path(self) -> list[str]:
        """Where this process finds modules, for trials to find the same: absolute, and without pytest's own folder."""
        scripts = Path(sys.executable).parent
        entries = (self.cwd / entry for entry in sys.path)
        return [str(entry) for entry in entries if entry.exists() and entry != scripts]


def starting_block() -> bytes:
    """The variables this process was started with, without what plugins have changed since, as the kernel keeps them.

    The same as `engine.environment.user_environment`, which would load msgspec into every session; and bytes, which
    xdist can send whatever is in them.
    """
    try:
        return Path("/proc/self/environ").read_bytes()
    except OSError:
        return b"\0".join(name + b"=" + value for name, value in os.environb.items())


def variables(block: bytes) -> dict[str, str]:
    """The variables of such a block."""
    pairs = (os.fsdecode(entry).partition("=") for entry in block.split(b"\0"))
    return {name: value for name, equals, value in pairs if equals and name}


STATE = pytest.StashKey[State]()
FAILED = pytest.StashKey[bool]()
"""On a test: its body failed."""

"""The environment of a trial: the user's own, not what some plugin or engine made of it since.

`/proc/self/environ` is the block this process was started with; later changes to `os.environ` do not show there
(https://man7.org/linux/man-pages/man5/proc_pid_environ.5.html).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from reprocheck.model import Struct

__all__ = ["TrialEnvironment", "from_block", "to_block", "trial_environment", "user_environment"]

# Set by test runners and coverage for their own children; a trial is not one of them. Lazy-import switches
# (PEP 810) would turn "import order" into "first-use order".
DROPPED_PREFIXES = ("PYTEST_", "COVERAGE_", "COV_CORE_")
DROPPED_NAMES = ("PYTHON_LAZY_IMPORTS", "PYTHONLAZYIMPORTS")
PINNED = {"PYTHONHASHSEED": "0"}

_AT_IMPORT = dict(os.environ)


class TrialEnvironment(Struct, frozen=True, kw_only=True):
    """The variables a trial starts with, and what was done to the user's to get there."""

    variables: dict[str, str]
    dropped: tuple[str, ...]
    pinned: dict[str, str]
    changed: dict[str, str | None]


def user_environment() -> dict[str, str]:
    """The environment this process was started with; the one seen at import time where there is no `/proc`."""
    try:
        block = Path("/proc/self/environ").read_bytes()
    except OSError:
        return dict(_AT_IMPORT)
    return from_block(block)


def from_block(block: bytes) -> dict[str, str]:
    """The variables in a block as `/proc/self/environ` has it: `NAME=value`, each ended by a zero byte."""
    variables = {}
    for entry in block.split(b"\0"):
        name, equals, value = entry.partition(b"=")
        if equals and name:
            variables[os.fsdecode(name)] = os.fsdecode(value)
    return variables


def to_block(variables: Mapping[str, str]) -> bytes:
    """The other way round. Values need not be text: bytes of any kind survive."""
    return b"".join(os.fsencode(name) + b"=" + os.fsencode(value) + b"\0" for name, value in variables.items())


def trial_environment(base: Mapping[str, str], changes: Mapping[str, str | None]) -> TrialEnvironment:
    """`base` without what never belongs into a trial, with the hash seed pinned, then `changes` (None removes)."""
    dropped = sorted(
        name for name in base if name.startswith(DROPPED_PREFIXES) or name in DROPPED_NAMES if name not in changes
    )
    variables = {name: value for name, value in base.items() if name not in dropped}
    pinned = {name: value for name, value in PINNED.items() if name not in variables and name not in changes}
    variables.update(pinned)
    for name, value in changes.items():
        if value is None:
            variables.pop(name, None)
        else:
            variables[name] = value
    return TrialEnvironment(variables=variables, dropped=tuple(dropped), pinned=pinned, changed=dict(changes))

"""Errors and the exit codes they carry.

Two families, never mixed: a `ReprocheckError` says that the question could not be asked or the
instrument failed; `DivergenceError` says that the answer was "they differ".
"""

from __future__ import annotations

import sys

__all__ = [
    "EXIT_AGREE",
    "EXIT_CANNOT_JUDGE",
    "EXIT_DIVERGENCE",
    "EXIT_HARNESS",
    "EXIT_INTERRUPTED",
    "EXIT_NOTHING",
    "EXIT_USAGE",
    "DivergenceError",
    "HarnessError",
    "NothingSelectedError",
    "ReprocheckError",
    "StoreError",
    "UsageError",
    "refuse_undecodable",
]

EXIT_AGREE = 0
EXIT_DIVERGENCE = 1
EXIT_USAGE = 2
EXIT_HARNESS = 3
EXIT_NOTHING = 5
EXIT_CANNOT_JUDGE = 125
EXIT_INTERRUPTED = 130


class ReprocheckError(Exception):
    """Base of everything reprocheck raises on purpose, except a divergence."""

    exit_code = EXIT_HARNESS


class UsageError(ReprocheckError):
    """The question is wrong: one sentence that names the thing at fault and what to do."""

    exit_code = EXIT_USAGE


class NothingSelectedError(ReprocheckError):
    """The selection is valid, but leaves nothing to run."""

    exit_code = EXIT_NOTHING


class HarnessError(ReprocheckError):
    """The instrument failed (a worker could not start, a record is corrupt): never a divergence."""

    exit_code = EXIT_HARNESS


class StoreError(UsageError):
    """A run folder can't be written or read: full disk, missing permission, foreign or damaged content."""


class DivergenceError(AssertionError):
    """The arms of a study disagree. Its text is the report; an `AssertionError`, so that `xfail` works."""


for _public in (ReprocheckError, UsageError, HarnessError, DivergenceError):
    # As users import them, and as tracebacks should call them.
    _public.__module__ = "reprocheck"


def refuse_undecodable(*words: str) -> None:
    """Raise `UsageError` for a word from bytes that the locale's encoding can't read: no record can hold it."""
    for word in words:
        if any(0xD800 <= ord(char) < 0xE000 for char in word):
            shown = word.encode("utf-8", "backslashreplace").decode()
            raise UsageError(
                f"`{shown}` is no text in the encoding of this locale ({sys.getfilesystemencoding()}): "
                "rename it, or set a UTF-8 locale (or PYTHONUTF8=1)"
            )

"""Temporary table until the full catalogue lands."""

from __future__ import annotations

from typing import Any

from reprocheck.model import Struct


class KeyInfo(Struct, frozen=True, kw_only=True):
    """What is known of a key."""

    severity: str = "informational"
    why: str = "recorded"
    drop: str = "compared"


def lookup(key: str) -> KeyInfo:
    """The entry for `key`."""
    return KeyInfo(severity="numeric" if key.startswith("environ") else "informational")


def comparable(info: KeyInfo, value: Any) -> Any:
    """`value` as it is compared."""
    return value

"""Every key a snapshot can hold: who reads it and when, what a difference in it means, and how it is compared.

This is the one table. A state difference is ranked by it, a report explains itself from it, and the documentation is
rendered from it. Its rows (in `catalogue`) are patterns in the spelling of `fnmatch`, the first that matches counts.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any

from reprocheck.explain.catalogue import KEYS, Compare, KeyInfo, Severity

__all__ = ["KEYS", "Compare", "KeyInfo", "Severity", "comparable", "lookup", "markdown"]

_PROBE = KeyInfo(
    pattern="*",
    reader="",
    phases=("t2", "t3"),
    severity="latent",
    why="Read by a probe of yours.",
)
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{6,}")


@lru_cache(maxsize=4096)
def lookup(key: str) -> KeyInfo:
    """What is known of `kind.key`, or else of what it is a part of; of a key of no known reader, what holds for any."""
    part = key
    while part:
        for info in KEYS:
            if part == info.pattern or fnmatchcase(part, info.pattern):
                return info
        part = part.rpartition(".")[0]
    return _PROBE


def comparable(key: str, value: Any) -> Any:
    """`value` as it is compared: lists sorted where order says nothing, addresses masked; None where it never is."""
    rule = lookup(key).compare
    if rule == "never":
        return None
    if rule == "set" and isinstance(value, list):
        return sorted(value, key=repr)
    if rule == "masked":
        return _mask(value)
    return value


def _mask(value: Any) -> Any:
    if isinstance(value, str):
        return _ADDRESS.sub("0x…", value)
    if isinstance(value, list):
        return [_mask(one) for one in value]
    if isinstance(value, dict):
        return {key: _mask(one) for key, one in value.items()}
    return value


def markdown() -> str:
    """The whole table for the documentation, one row for each pattern."""
    lines = ["| key | read by | when | severity | compared | why it matters |", "|---|---|---|---|---|---|"]
    for info in KEYS:
        pattern = info.pattern.replace("|", "\\|")
        phases = ", ".join(info.phases)
        lines.append(
            f"| `{pattern}` | `{info.reader}` | {phases} | {info.severity} | {info.compare} | {info.why} |",
        )
    return "\n".join(lines) + "\n"

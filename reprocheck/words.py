"""How reports count."""

from __future__ import annotations

__all__ = ["counted", "differ"]


def counted(number: int, noun: str) -> str:
    """`1 run`, `1,024 runs`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def differ(differing: int, total: int, noun: str) -> str:
    """`5 of 256 elements differ`, `1 of 1 output differs`."""
    return f"{differing:,} of {counted(total, noun)} {'differs' if total == 1 else 'differ'}"

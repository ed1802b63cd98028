"""Text that others wrote, made fit to be shown: nothing in it hides, reorders or drowns what stands around it."""

from __future__ import annotations

import re

__all__ = ["clip", "one_line", "visible"]

# Controls (all but tab and newline), directional marks and overrides, invisible operators, line separators,
# interlinear marks, tags and lone surrogates: they are shown by number.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\ufff0-\uffff\ud800-\udfff\U000e0000-\U000e0fff]"
)


def visible(text: str) -> str:
    r"""`text` with every character that would not be seen as `\u202e`; tabs and newlines stay."""
    return _HIDDEN.sub(_by_number, text)


def _by_number(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def clip(text: str, limit: int) -> str:
    """At most about `limit` characters: start and end, and how many there were."""
    if len(text) <= limit:
        return text
    head = max(1, limit * 3 // 4)
    return f"{text[:head]} … {text[len(text) - (limit - head) :]} ({len(text):,} characters)"


def one_line(text: str, limit: int = 300) -> str:
    """`text` visible, cut, and on one line."""
    return clip(" ".join(visible(text).split()), limit)

"""Text on a page: nothing that a name or a value holds may hide, reorder or drown what stands around it."""

from __future__ import annotations

import re
from typing import Any

from markupsafe import Markup, escape

from reprocheck.model import Struct
from reprocheck.report.plain import clip, visible

__all__ = ["LEVELS", "Limits", "finalizer", "name", "prose"]


class Limits(Struct, frozen=True, kw_only=True):
    """How much of everything a page shows; what is left out is counted, and the JSON has it."""

    outputs: int
    matrix: int
    """Rows of the order × output table."""
    orders: int
    states: int
    tests: int
    libraries: int
    events: int
    pictures: int
    """Outputs that are drawn."""
    text: int
    """Characters of one piece of text, e.g. a traceback."""
    name: int
    """Characters of one name or value in a table."""


LEVELS = (
    Limits(
        outputs=200,
        matrix=100,
        orders=120,
        states=60,
        tests=60,
        libraries=160,
        events=40,
        pictures=4,
        text=6000,
        name=240,
    ),
    Limits(
        outputs=60, matrix=30, orders=60, states=20, tests=20, libraries=60, events=15, pictures=2, text=2000, name=120
    ),
    Limits(outputs=20, matrix=15, orders=24, states=8, tests=8, libraries=20, events=6, pictures=1, text=600, name=60),
    Limits(outputs=10, matrix=10, orders=12, states=4, tests=4, libraries=0, events=0, pictures=0, text=300, name=40),
)
"""From generous to bare: a page that would be too large is made again with the next one."""

_CODE = re.compile(r"`([^`]+)`")


def prose(text: str, limit: int = 2000) -> Markup:
    """A sentence whose parts in backticks are code."""
    done = Markup()
    at = 0
    shown = clip(visible(text), limit)
    for found in _CODE.finditer(shown):
        done += escape(shown[at : found.start()]) + Markup("<code>{}</code>").format(found[1])
        at = found.end()
    return done + escape(shown[at:])


def name(text: Any, limit: int) -> Markup:
    """A name that may be broken after its dots, slashes and underscores."""
    # A plain str: what `re` makes of Markup is escaped once more.
    shown = str(escape(clip(visible(str(text)), limit)))
    return Markup(re.sub(r"([._/])(?=\w)", r"\1<wbr>", shown))  # noqa: S704 - escaped one line up


def finalizer(limits: Limits) -> Any:
    """What Jinja does with every expression before it escapes it: None is nothing, and text is visible and bounded."""

    def finalize(value: Any) -> Any:
        if value is None:
            return ""
        if hasattr(value, "__html__") or isinstance(value, int):
            return value
        return clip(visible(str(value)), limits.text)

    return finalize

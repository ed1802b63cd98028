"""The keywords of a check: those of the marker and of the fixture's call, a closed set with types."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from reprocheck.config import did_you_mean
from reprocheck.config.options import checked
from reprocheck.errors import UsageError
from reprocheck.pytest_plugin.options import Settings
from reprocheck.pytest_plugin.state import node_id

__all__ = ["KEYWORDS", "asked", "check_keywords", "merged", "place_of"]

# Checked as keys of `[tool.reprocheck]` are.
_STUDY = (
    *("imports", "orders", "max_orders", "fail_fast", "reduce", "repeat", "max_repeat", "timeout", "seed", "python"),
    *("env", "outputs", "tolerance", "presence", "observer", "isolation", "vary"),
)


def _number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < float("inf"):
        raise ValueError
    return value


def _whole(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError
    return value


def _flag(value: Any) -> Any:
    if value is not True and value is not False:
        raise ValueError
    return value


def _orders(value: Any) -> Any:
    return [_strings(order) for order in _sequence(value)]


def _sequence(value: Any) -> Sequence[Any]:
    if isinstance(value, str) or not isinstance(value, Sequence) or not value:
        raise ValueError
    return value


def _strings(value: Any) -> Any:
    if any(not isinstance(item, (str, Path)) for item in _sequence(value)):
        raise ValueError
    return [str(item) for item in value]


_OWN: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "rtol": ("a number of at least 0", _number),
    "atol": ("a number of at least 0", _number),
    "ulp": ("a whole number of at least 0", _whole),
    "order": ("a list of orders, each a list of module names", _orders),
    "probes": ("a list of paths", _strings),
    "argv": ("a list of strings", _strings),
    "gpu": ("True or False", _flag),
    "baseline": ("True or False", _flag),
    "explain": ("True or False", _flag),
}

KEYWORDS = (*_STUDY, *_OWN)


def check_keywords(keywords: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The keywords with checked values. Raises `UsageError` naming the wrong one and `where` it stands."""
    __tracebackhide__ = True
    found = {}
    for name, value in keywords.items():
        if name not in KEYWORDS:
            hint = did_you_mean(name, KEYWORDS, f"; the keywords are {', '.join(KEYWORDS)}.")
            raise UsageError(f"unknown keyword `{name}` in {where}{hint}")
        if name in _OWN:
            expected, check = _OWN[name]
            try:
                found[name] = check(value)
            except ValueError:
                raise UsageError(f"`{name}` in {where} must be {expected}, not {value!r}.") from None
        else:
            # The check refuses tuples of paths and such; what is kept is the plain value, which can be sent as JSON.
            checked(name, value, f"`{name}` in {where}")
            found[name] = list(value) if isinstance(value, tuple) else value
    return found


def merged(item: pytest.Item) -> dict[str, Any]:
    """The keywords of all markers of a test, the closest winning. Raises `UsageError`."""
    __tracebackhide__ = True
    found: dict[str, Any] = {}
    for node, mark in item.iter_markers_with_node("reprocheck"):
        where = f"@pytest.mark.reprocheck of {node_id(item) if node is item else node.nodeid or node_id(item)}"
        if len(mark.args) > 1:
            raise UsageError(f"{where} takes the imports and keywords, not {len(mark.args)} values.")
        given = {**({"imports": mark.args[0]} if mark.args else {}), **mark.kwargs}
        if mark.args and "imports" in mark.kwargs:
            raise UsageError(f"{where} names the imports twice; leave one out.")
        found = {**check_keywords(given, where), **found}
    return found


def asked(keywords: Mapping[str, Any], settings: Settings, *, known: bool = False) -> dict[str, Any]:
    """The keywords with what the session says: the command line wins over the marker, and that over the ini file.

    A `known` divergence is explained only where somebody asks for it.
    """
    found = dict(keywords)
    for name in ("orders", "repeat", "timeout"):
        value = getattr(settings, name)
        if value is not None and (name in settings.given or name not in found):
            found[name] = value
    if settings.explain is not None and ("explain" in settings.given or "explain" not in found):
        found["explain"] = settings.explain == "on"
    if known:
        found.setdefault("explain", False)
    if found.get("repeat", 0) > found.get("max_repeat", found.get("repeat", 0)):
        found["max_repeat"] = found["repeat"]
    return found


def place_of(target: Any, test: Path, here: Path) -> str:
    """A target as text: a function stands for itself; a path is looked for beside the test file first.

    Raises `UsageError` for what is neither.
    """
    __tracebackhide__ = True
    if inspect.isfunction(target):
        if "<" in target.__qualname__ or "." in target.__qualname__:
            raise UsageError(
                f"`{target.__qualname__}` is not at the top level of its module, where a trial could reach it; move it"
            )
        return f"{inspect.getfile(target)}::{target.__name__}"
    if not isinstance(target, str):
        raise UsageError(
            f"a target is `file.py::function`, `pkg.mod:function` or a function, not {type(target).__name__}"
        )
    place, double, name = target.partition("::")
    beside = test.parent / place
    if place.endswith(".py") and beside.is_file() and beside != here / place:
        return f"{beside}{double}{name}"
    return target

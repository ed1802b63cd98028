"""What can be set, by command line and ini file under one name each, and by marker: one table, one way to read it.

Standard library only: this is imported by every pytest run in which reprocheck is installed.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

__all__ = ["OPTIONS", "Option", "Settings", "add_options", "read_settings"]


class Option(NamedTuple):
    """`--reprocheck-NAME` and `reprocheck_NAME`; the switch itself has no name."""

    name: str
    read: Callable[[str], Any]
    """From text; raises `ValueError` saying what was expected."""
    metavar: str
    help: str

    @property
    def flag(self) -> str:
        """As on the command line."""
        return f"--reprocheck-{self.name}".replace("_", "-").removesuffix("-")

    @property
    def ini(self) -> str:
        """As in the ini file, and as destination."""
        return f"reprocheck_{self.name}".removesuffix("_")


def _one_of(*choices: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in choices:
            raise ValueError(f"one of {', '.join(choices)}")
        return text

    return read


def _count(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise ValueError("a whole number of at least 1")
    return number


def _seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise ValueError("a number of seconds above 0")
    return number


def _switch(text: str) -> bool:
    if text.lower() not in {"on", "off", "true", "false", "1", "0", "yes", "no"}:
        raise ValueError("on or off")
    return text.lower() in {"on", "true", "1", "yes"}


def _text(text: str) -> str:
    if not text.strip():
        raise ValueError("a value")
    return text


OPTIONS = (
    Option(
        "", _one_of("on", "off", "only"), "{on,off,only}", "Run checks, skip them, or run nothing else [default: on]"
    ),
    Option("orders", _text, "all|pairs|sample:N|FILE", "Which import orders to run"),
    Option("repeat", _count, "N", "Trials of each order to begin with [default: 3]"),
    Option("jobs", _count, "N", "Trials at a time on this machine, over all test processes [default: the cores]"),
    Option("timeout", _seconds, "S", "Seconds a trial may take [default: 600]"),
    Option(
        "explain", _one_of("on", "off"), "{on,off}", "Look for the place and the cause of a divergence [default: on]"
    ),
    Option("dir", _text, "PATH", "Where run folders go [default: .reprocheck]"),
    Option("json", _text, "FILE", "Write all studies of the session into one JSON file"),
    Option("html", _text, "FILE", "Write all studies of the session into one HTML file"),
    Option("require_gpu", _switch, "", "Fail checks that need a GPU where there is none, instead of skipping them"),
    Option(
        "baseline",
        _one_of("check", "new", "all"),
        "{check,new,all}",
        "Compare with baselines, write the missing ones, or write all anew [default: check]",
    ),
)


class Settings(NamedTuple):
    """What holds for this session; None where neither command line nor ini file says anything."""

    mode: str
    orders: str | None
    repeat: int | None
    jobs: int | None
    timeout: float | None
    explain: str | None
    dir: Path
    json: Path | None
    html: Path | None
    require_gpu: bool
    baseline: str
    given: frozenset[str]
    """Names that stand on the command line: those win over a marker."""


def add_options(parser: pytest.Parser) -> None:
    """Declare every option and its ini twin."""
    group = parser.getgroup("reprocheck", "import order checks (reprocheck)")
    for option in OPTIONS:
        if option.metavar:
            group.addoption(
                option.flag,
                dest=option.ini,
                default=None,
                metavar=option.metavar,
                type=_argument(option),
                help=option.help,
            )
        else:
            group.addoption(option.flag, dest=option.ini, default=None, action="store_true", help=option.help)
        parser.addini(option.ini, option.help, default=None)


def _argument(option: Option) -> Callable[[str], Any]:
    """The same reader, with the exception that argparse shows."""

    def read(text: str) -> Any:
        try:
            return option.read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"must be {error}, not `{text}`") from None

    return read


def read_settings(config: pytest.Config) -> Settings:
    """What command line and ini file say; the command line wins. Raises `pytest.UsageError` for a bad ini value."""
    found: dict[str, Any] = {}
    given = set()
    for option in OPTIONS:
        value = config.getoption(option.ini, None)
        if value is not None:
            given.add(option.name)
            found[option.name] = _placed(option.name, value, config.invocation_params.dir)
            continue
        text = config.getini(option.ini)
        if text is None or text == "":
            continue
        try:
            value = option.read(str(text))
        except ValueError as error:
            raise pytest.UsageError(f"`{option.ini}` in {config.inipath} must be {error}, not `{text}`") from None
        base = config.inipath.parent if config.inipath else config.rootpath
        found[option.name] = _placed(option.name, value, base)
    return Settings(
        mode=found.get("", "on"),
        orders=found.get("orders"),
        repeat=found.get("repeat"),
        jobs=found.get("jobs"),
        timeout=found.get("timeout"),
        explain=found.get("explain"),
        dir=found.get("dir", config.rootpath / ".reprocheck"),
        json=found.get("json"),
        html=found.get("html"),
        require_gpu=found.get("require_gpu", False),
        baseline=found.get("baseline", "check"),
        given=frozenset(given),
    )


def _placed(name: str, value: Any, base: Path) -> Any:
    """Paths made absolute: trials and xdist's workers may be elsewhere."""
    if name in ("dir", "json", "html"):
        return Path(os.path.normpath(base / Path(value).expanduser()))
    if name == "orders" and any(mark in value for mark in "/."):
        return os.path.normpath(base / Path(value).expanduser())
    return value

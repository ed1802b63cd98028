"""One layer of options per place they come from, and what holds when the layers lie on top of each other."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from reprocheck.config.options import KEYS, TABLES, Options, checked, read
from reprocheck.config.pep723 import script_block, tool_table
from reprocheck.config.suggest import closest, did_you_mean
from reprocheck.errors import UsageError
from reprocheck.model import Struct

__all__ = [
    "Layer",
    "Resolved",
    "environment_layer",
    "layers_for",
    "merge",
    "pyproject_layer",
    "script_layer",
    "table_layer",
]

_PREFIX = "REPROCHECK_"


class Layer(Struct, frozen=True, kw_only=True):
    """Checked options from one place."""

    source: str
    """For people: `the command line`, `[tool.reprocheck] of train.py`, …"""
    values: dict[str, Any]
    """Field of `Options` -> value of that field's type."""


class Resolved(Struct, frozen=True, kw_only=True):
    """The options in force and where each came from."""

    options: Options
    origins: dict[str, str]
    """Field -> `Layer.source` or `default`. Entries of tables have their own, e.g. `env.OMP_NUM_THREADS`."""


def table_layer(table: Mapping[str, Any], source: str, *, folder: Path | None = None) -> Layer:
    """A layer from a `[tool.reprocheck]` table, from command-line options, or from keyword arguments.

    Args:
        table: Key -> value. `max-repeat` is `max_repeat`; None counts as not given.
        source: Names the place in messages.
        folder: Where relative paths (`python`, `orders`) start; None leaves them as they are.

    Raises:
        UsageError: unknown key or wrong type.
    """
    values = {}
    for key, value in table.items():
        name = key.replace("-", "_")
        if name not in KEYS:
            hint = did_you_mean(name, KEYS, f"; the keys are {', '.join(KEYS)}.")
            raise UsageError(f"unknown key `{key}` in {source}{hint}")
        if value is not None:
            values[name] = checked(name, value, f"`{key}` in {source}")
    if folder is not None:
        # An interpreter to be found on PATH has no slash in it; a design of orders has no dot either.
        for name, marks in (("python", "/"), ("orders", "/."), ("shared", "/.")):
            if any(mark in values.get(name, "") for mark in marks):
                values[name] = os.path.normpath(folder.absolute() / Path(values[name]).expanduser())
    return Layer(source=source, values=values)


def environment_layer(environ: Mapping[str, str]) -> Layer:
    """A layer from `REPROCHECK_<OPTION>` variables; an empty one counts as not set.

    Lists are separated by commas, `REPROCHECK_ENV` and `REPROCHECK_VARY` are split like a shell line
    (`A=1 B='x y'`; `A=1,2`), and `REPROCHECK_TOLERANCE` is a number or a TOML inline table.

    Raises:
        UsageError: wrong type, or a name that is nearly an option's. Other variables that happen to start
            with `REPROCHECK_` are somebody else's.
    """
    values = {}
    for variable, text in environ.items():
        if not variable.startswith(_PREFIX) or not text.strip():
            continue
        name = variable.removeprefix(_PREFIX).lower()
        if name in KEYS:
            values[name] = read(name, text.strip(), f"`{variable}`")
        elif close := closest(name, KEYS, cutoff=0.8):
            raise UsageError(
                f"unknown variable `{variable}` in the environment: did you mean `{_PREFIX}{close.upper()}`?"
            )
    return Layer(source="the environment", values=values)


def script_layer(path: Path) -> Layer | None:
    """The layer of a script's own PEP 723 block; None without a `[tool.reprocheck]` in it.

    Raises:
        UsageError: as `script_block` and `table_layer`.
    """
    block = script_block(path)
    if block is None or not block.options:
        return None
    return table_layer(block.options, f"[tool.reprocheck] of `{path}`", folder=path.parent)


def pyproject_layer(folder: Path) -> Layer | None:
    """The layer of the nearest pyproject.toml, in `folder` or above; None if that one has no `[tool.reprocheck]`.

    Raises:
        UsageError: the file can't be read or is no TOML, or as `table_layer`.
    """
    here = Path(os.path.normpath(folder.absolute()))  # not resolve(), which a symlink may lead out of the project
    path = next((p for f in (here, *here.parents) if (p := f / "pyproject.toml").is_file()), None)
    if path is None:
        return None
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"can't read `{path}` ({error.strerror}): make it readable.") from None
    except ValueError as error:  # no TOML, or no UTF-8
        raise UsageError(f"`{path}` is not valid TOML ({error}): correct it.") from None
    table = tool_table(document, path)
    return table_layer(table, f"[tool.reprocheck] of `{path}`", folder=path.parent) if table else None


def layers_for(path: Path | None, *, cwd: Path, environ: Mapping[str, str], command: Mapping[str, Any]) -> list[Layer]:
    """All layers that hold for a workload, the strongest first: command line, environment, block, pyproject.toml.

    Args:
        path: The workload's file; None for a module, whose pyproject.toml is searched from `cwd`.
        cwd: Where the user is.
        environ: The user's environment.
        command: Options given by the caller; None counts as not given.

    Raises:
        UsageError: as the single layers.
    """
    layers = [
        table_layer(command, "the command line"),
        environment_layer(environ),
        script_layer(path) if path else None,
        pyproject_layer(path.parent if path else cwd),
    ]
    return [layer for layer in layers if layer is not None]


def merge(layers: Sequence[Layer]) -> Resolved:
    """The options in force, given the layers from the strongest to the weakest.

    The strongest layer that has a key decides it; `env`, `tolerance` and `vary` are decided entry by entry, the entries
    of stronger layers standing last. Where `repeat` and `max_repeat` contradict each other, the weaker of the
    two yields.

    Raises:
        UsageError: `repeat` is above `max_repeat` in the same layer.
    """
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    ranks: dict[str, int] = {}
    for rank, layer in reversed(list(enumerate(layers))):
        for name, value in layer.values.items():
            if name in TABLES:
                kept = {entry: item for entry, item in values.get(name, {}).items() if entry not in value}
                values[name] = {**kept, **value}
                origins.update((f"{name}.{entry}", layer.source) for entry in value)
            else:
                values[name], origins[name], ranks[name] = value, layer.source, rank
    options = Options(**values)
    if options.repeat > options.max_repeat:
        strong, weak = sorted(("repeat", "max_repeat"), key=lambda name: ranks.get(name, len(layers)))
        if ranks[strong] == ranks.get(weak):
            raise UsageError(
                f"`repeat` ({options.repeat}) is above `max_repeat` ({options.max_repeat}) in {origins[strong]}: "
                f"set `max_repeat` to at least {options.repeat}."
            )
        values[weak], origins[weak] = values[strong], origins[strong]
        options = Options(**values)
    for name in KEYS:
        if name not in TABLES:
            origins.setdefault(name, "default")
    return Resolved(options=options, origins=origins)

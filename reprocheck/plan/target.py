"""The workload as the user names it: `file.py::function`, `pkg.mod:function`, a script, or a folder."""

from __future__ import annotations

import os
from pathlib import Path

from reprocheck.config import did_you_mean, script_block
from reprocheck.config.options import checked
from reprocheck.errors import UsageError
from reprocheck.model import Target
from reprocheck.plan.source import check_function, parse

__all__ = ["parse_target"]


def parse_target(text: str, cwd: Path, *, function: str | None = None) -> Target:
    """The target that `text` means, checked as far as reading the source can.

    Args:
        text: `file.py::function`, `pkg.mod:function`, `file.py`, or a folder with a `workload.py` in it (which
            is then the file, with or without `::function`).
        cwd: Where relative paths start.
        function: The function to call when `text` names none; stronger than the script's own metadata.

    Returns:
        Kind `module` for `pkg.mod:function`. Kind `function` for a file with a function: named in the text,
        by `function`, or by `workload` in the file's PEP 723 block. Kind `script` for any other file.

    Raises:
        UsageError: nothing named, no such file, not Python, or no such function. Modules are not looked up.
    """
    if not text.strip():
        raise UsageError("the target is empty: name a workload, e.g. `train.py::step` or `pkg.mod:step`.")
    place, double, name = text.partition("::")
    if double:
        if not place.strip():
            raise UsageError(f"`{text}` names no file before `::`: write e.g. `train.py{text}`.")
        return _file(text, place, cwd, _function(text, name))
    module, colon, name = text.rpartition(":")
    if colon and not (cwd / text).exists():
        return _module(text, module, name)
    return _file(text, text, cwd, function)


def _module(text: str, module: str, name: str) -> Target:
    if module.endswith(".py") or "/" in module:
        raise UsageError(f"`{text}` mixes two forms: did you mean `{module}::{name or 'FUNCTION'}`?")
    if not all(part.isidentifier() for part in module.split(".")):
        raise UsageError(f"`{text}` names no module before the colon: write `pkg.mod:function` or `file.py::function`.")
    return Target(text=text, kind="module", module=module, name=_function(text, name))


def _file(text: str, place: str, cwd: Path, function: str | None) -> Target:
    path = _existing(place, cwd)
    parse(path)  # a syntax error is told before anything about what the file holds
    if function is None:
        block = script_block(path)
        named = block.options.get("workload") if block else None
        function = None if named is None else checked("workload", named, f"`workload` in the block of `{path}`")
    if function is None:
        return Target(text=text, kind="script", path=str(path))
    check_function(path, function, path.name if path.name != place else place)
    return Target(text=text, kind="function", path=str(path), name=function)


def _existing(place: str, cwd: Path) -> Path:
    """The Python file that `place` means."""
    path = Path(os.path.normpath(cwd.absolute() / place))  # not resolve(): a symlink stays the name the user gave
    try:
        if path.is_dir():
            if (path / "workload.py").is_file():
                return path / "workload.py"
            scripts = sorted(file.name for file in path.glob("*.py"))
            advice = f"name a file, e.g. `{place.rstrip('/')}/{scripts[0]}`" if scripts else "name a Python file"
            raise UsageError(f"the folder `{place}` holds no `workload.py`: {advice}.")
        if path.is_file() and path.suffix == ".py":
            return path
        if path.exists():
            raise UsageError(f"`{place}` is not a Python file: name a `.py` file or a folder with a `workload.py`.")
    except OSError as error:  # a folder on the way that may not be entered, a name too long
        raise UsageError(f"can't look at `{place}` ({error.strerror}): name a readable Python file.") from None
    otherwise = ": name a Python file."
    if path.suffix != ".py" and "/" not in place:
        otherwise = f": name a Python file, or for a module `{place}:FUNCTION`."
    near = sorted(file.name for file in path.parent.glob("*") if file.suffix == ".py" or file.is_dir())
    raise UsageError(f"there is no file `{place}`{did_you_mean(path.name, near, otherwise)}")


def _function(text: str, name: str) -> str:
    """`name` if it can name a function at the top level."""
    if not name.strip():
        raise UsageError(f"`{text}` names no function after the colon: write e.g. `{text}step`.")
    if not name.isidentifier():
        raise UsageError(f"`{name}` in `{text}` can't name a top-level function: write e.g. `train.py::step`.")
    return name

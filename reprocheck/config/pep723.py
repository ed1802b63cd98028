"""Inline script metadata (PEP 723): the block of comments in which a script says what it needs.

https://packaging.python.org/en/latest/specifications/inline-script-metadata/
"""

from __future__ import annotations

import re
import tokenize
import tomllib
from pathlib import Path
from typing import Any

import msgspec

from reprocheck.errors import UsageError
from reprocheck.model import Struct

__all__ = ["ScriptBlock", "begins_block", "script_block", "tool_table"]

# The specification gives this very expression as the reference.
_BLOCK = re.compile(r"(?m)^# /// (?P<type>[a-zA-Z0-9-]+)$\s(?P<content>(^#(| .*)$\s)+)^# ///$")


class ScriptBlock(Struct, frozen=True, kw_only=True):
    """The `script` block of a file."""

    dependencies: tuple[str, ...] = ()
    requires_python: str | None = None
    options: dict[str, Any] = msgspec.field(default_factory=dict)
    """Its `[tool.reprocheck]` table, unchecked."""


def script_block(path: Path) -> ScriptBlock | None:
    """The `script` block of a Python file, None if it has none.

    A block without its closing `# ///` is no block: the specification says to ignore it.

    Raises:
        UsageError: two `script` blocks, invalid TOML, a field of the wrong type, or a file that can't be read.
    """
    text = _text(path)
    blocks = [match["content"] for match in _BLOCK.finditer(text) if match["type"] == "script"]
    if not blocks:
        return None
    if len(blocks) > 1:
        raise UsageError(f"`{path}` has {len(blocks)} `# /// script` blocks: keep one.")
    content = "\n".join(line[2:] if line.startswith("# ") else line[1:] for line in blocks[0].split("\n"))
    try:
        document = tomllib.loads(content)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"the `# /// script` block of `{path}` is not valid TOML ({error}): correct it.") from None
    dependencies, requires = document.get("dependencies", []), document.get("requires-python")
    if not isinstance(dependencies, list) or not all(isinstance(item, str) for item in dependencies):
        raise UsageError(f"`dependencies` in the block of `{path}` must be a list of strings.")
    if requires is not None and not isinstance(requires, str):
        raise UsageError(f"`requires-python` in the block of `{path}` must be a string such as `>=3.11`.")
    return ScriptBlock(dependencies=tuple(dependencies), requires_python=requires, options=tool_table(document, path))


def begins_block(path: Path) -> bool:
    """Whether a line of the file begins a `script` block, closed or not. Raises `UsageError` as `script_block`."""
    return re.search(r"(?m)^# /// script$", _text(path)) is not None


def _text(path: Path) -> str:
    try:
        with tokenize.open(path) as file:  # the encoding the file itself declares, universal newlines
            return file.read()
    except OSError as error:
        raise UsageError(f"can't read `{path}` ({error.strerror}): name a readable file.") from None
    except (SyntaxError, UnicodeDecodeError):
        raise UsageError(f"`{path}` is not text in the encoding it declares: save it as UTF-8.") from None


def tool_table(document: dict[str, Any], path: Path) -> dict[str, Any]:
    """The `[tool.reprocheck]` table of a parsed document, empty if it has none.

    Raises:
        UsageError: it is something else than a table.
    """
    tool = document.get("tool", {})
    table = tool.get("reprocheck", {}) if isinstance(tool, dict) else tool
    if not isinstance(table, dict):
        raise UsageError(f"`tool.reprocheck` in `{path}` must be a table.")
    return table

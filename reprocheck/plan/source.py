"""Python source read, never run: its tree, the names it defines, and where a module's files are."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from reprocheck.config import did_you_mean
from reprocheck.errors import UsageError

__all__ = ["Located", "Names", "check_function", "defined_names", "locate", "parse"]


class Names(NamedTuple):
    """What a module defines at its top level."""

    functions: frozenset[str]
    """Names bound by `def`, `async def` or `class`."""
    others: frozenset[str]
    """Names bound in any other way."""
    open: bool
    """True when there may be more than can be seen: a star import, `__getattr__`, `globals()`, `exec`, …"""


class Located(NamedTuple):
    """The files behind a dotted name."""

    entry: Path | None
    """The search path's folder that holds the first of its parts."""
    files: tuple[Path, ...]
    """Those that run when it is imported, in that sequence: `__init__.py` of the packages, then the module."""
    complete: bool
    """Whether all of its parts were found as source."""


def parse(path: Path) -> ast.Module:
    """The file's syntax tree.

    Raises:
        UsageError: the file can't be read, or isn't Python as this interpreter understands it.
    """
    try:
        text = path.read_bytes()
    except OSError as error:
        raise UsageError(f"can't read `{path}` ({error.strerror}): name a readable file.") from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in the user's strings are not our news
            return ast.parse(text, filename=str(path))
    except SyntaxError as error:
        where = f" in line {error.lineno}" if error.lineno else ""
        raise UsageError(f"`{path}` has a syntax error{where} ({error.msg}): correct it.") from None
    except (ValueError, RecursionError, MemoryError) as error:  # null bytes; nesting beyond the parser's limits
        raise UsageError(f"`{path}` can't be parsed as Python ({error}): correct it.") from None


def check_function(path: Path, name: str, shown: str) -> None:
    """Returns if the file defines `name` at its top level, or may do so unseen.

    Args:
        path: The file.
        name: What should be there.
        shown: How messages name the file.

    Raises:
        UsageError: the name is not there; or as `parse`.
    """
    names = defined_names(parse(path))
    if names.open or name in names.functions or name in names.others:
        return
    public = sorted(function for function in names.functions if not function.startswith("_"))
    listing = ", ".join(f"`{function}`" for function in public[:8]) + (", …" if len(public) > 8 else "")
    otherwise = f"; it defines {listing}." if public else "; it defines no function."
    hint = did_you_mean(name, names.functions | names.others, otherwise)
    raise UsageError(f"`{shown}` defines no `{name}` at its top level{hint}")


def defined_names(tree: ast.Module) -> Names:
    """The names bound at the top level, also below `if`, `try`, `with`, `for`, `while` and `match`."""
    functions: set[str] = set()
    others: set[str] = set()
    stack: list[ast.AST] = list(tree.body)
    while stack:
        node = stack.pop()
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                functions.add(node.name)
                continue  # what is bound inside is not at the top level
            case ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                continue
            case ast.Import() | ast.ImportFrom():
                others.update(alias.asname or alias.name.partition(".")[0] for alias in node.names)
            case ast.Name(ctx=ast.Store()):
                others.add(node.id)
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                others.add(name)
        stack.extend(ast.iter_child_nodes(node))
    unseen = "*" in others or "__getattr__" in functions | others or any(map(_binds_unseen, ast.walk(tree)))
    return Names(frozenset(functions), frozenset(others - {"*"}), unseen)


def locate(parts: Sequence[str], folders: Iterable[Path]) -> Located:
    """Finds the dotted name `parts` in `folders` as the import system would, without importing anything.

    A package wins over a module of the same name, folders without `__init__.py` are namespace packages; what
    only a finder of its own (an editable install) or a compiled extension provides is not found.
    """
    entry: Path | None = None
    files: list[Path] = []
    found = False
    for part in parts:
        folder, file, inside = _step(part, folders)
        found = file is not None
        if file is not None:
            files.append(file)
        if folder is None:
            break
        entry, folders = entry or folder, inside
    return Located(entry, tuple(files), complete=found)


def _step(part: str, folders: Iterable[Path]) -> tuple[Path | None, Path | None, list[Path]]:
    """(the folder that holds `part`, its file unless it is a namespace package, the folders with what is inside)."""
    spaces = []
    for folder in folders:
        package, module = folder / part / "__init__.py", folder / f"{part}.py"
        try:
            if package.is_file():
                return folder, package, [package.parent]
            if module.is_file():
                return folder, module, []
            if package.parent.is_dir():
                spaces.append(package.parent)
        except OSError:
            continue  # a folder nobody may look into holds no module for the import system either
    return (spaces[0].parent if spaces else None), None, spaces


def _binds_unseen(node: ast.AST) -> bool:
    """Whether `node` may bind a module's names in a way that the names alone don't show."""
    match node:
        case ast.Global() | ast.Name(id="globals" | "vars" | "locals" | "exec") | ast.Attribute(attr="modules"):
            return True
    return False

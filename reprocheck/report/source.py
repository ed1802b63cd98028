"""Places in source files: the line where a workload begins, and the lines around one that is blamed."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
from functools import cache
from pathlib import Path

from reprocheck.model import Struct, Study, Target
from reprocheck.store.objects import digest_file

__all__ = ["Excerpt", "Place", "excerpt", "node_place", "workload_place"]

AROUND = 3
LARGEST = 2 << 20
_LIBRARY = re.compile(r"/(?:site-packages|dist-packages|lib/python3\.\d+)/")


class Place(Struct, frozen=True, kw_only=True):
    """A line of a file that is there."""

    file: Path
    line: int


class Excerpt(Struct, frozen=True, kw_only=True):
    """Some lines of a file, one of them meant."""

    file: str
    line: int
    first: int
    lines: tuple[str, ...]


def workload_place(study: Study, root: Path) -> Place | None:
    """Where the workload is defined: its function's line, or the first line of a script; None if it isn't at hand."""
    target = study.target
    if target.path:
        return _definition(Path(target.path), target.name)
    if target.kind == "pytest":
        for word in target.args:
            place = node_place(word, root)
            if place is not None:
                return place
        return None
    if target.module:
        file = _module_file(target, root)
        return _definition(file, target.name) if file is not None else None
    return None


def node_place(node: str, root: Path) -> Place | None:
    """Where a test is defined, from its node id; None for words that are none, or a file that isn't there."""
    file, _, name = node.partition("::")
    path = root / file
    return _definition(path, name or None) if file.endswith(".py") else None


def excerpt(file: str, line: int, *, workload: str | None = None, digest: str = "") -> Excerpt | None:
    """The lines around `file:line`; None unless it is a Python file that a report may quote.

    A run folder may come from anywhere, and a report may go anywhere: the folder must not choose which of the
    reader's files are in it. Quoted are files of installed libraries, files below the working directory, and files next
    to the `workload`, if that one's `digest` proves that who wrote the folder had it.
    """
    path = Path(os.path.normpath(file))
    if path.suffix not in (".py", ".pyx") or not path.is_absolute() or not _may_quote(path, workload, digest):
        return None
    try:
        if not path.is_file() or path.stat().st_size > LARGEST:
            return None
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        return None
    if not 1 <= line <= len(lines):
        return None
    first = max(1, line - AROUND)
    return Excerpt(file=file, line=line, first=first, lines=tuple(lines[first - 1 : line + AROUND]))


def _may_quote(path: Path, workload: str | None, digest: str) -> bool:
    real = path.resolve()
    if real.suffix not in (".py", ".pyx"):
        return False
    if _LIBRARY.search(str(path)) or _openly_below(real, Path.cwd()):
        return True
    return bool(workload) and _openly_below(real, Path(str(workload)).resolve().parent) and _proves(workload, digest)


def _openly_below(file: Path, folder: Path) -> bool:
    """Whether `file` is below `folder` without a hidden name on the way; where the folder itself is does not count."""
    return file.is_relative_to(folder) and not any(part.startswith(".") for part in file.relative_to(folder).parts)


@cache
def _proves(workload: str | None, digest: str) -> bool:
    try:
        return bool(workload and digest) and digest_file(Path(str(workload))) == digest
    except OSError:
        return False


def _module_file(target: Target, root: Path) -> Path | None:
    """The file of `pkg.mod`, below `root` or where this interpreter would find it; nothing is imported."""
    parts = (target.module or "").split(".")
    if not all(part.isidentifier() for part in parts):
        return None
    bases = [root]
    try:
        spec = importlib.util.find_spec(parts[0])
    except (ImportError, ValueError):
        spec = None
    if spec is not None and spec.submodule_search_locations:
        bases += [Path(place).parent for place in spec.submodule_search_locations]
    elif spec is not None and spec.origin:
        bases.append(Path(spec.origin).parent)
    for base in bases:
        stem = base.joinpath(*parts)
        for file in (stem.with_name(stem.name + ".py"), stem / "__init__.py"):
            if file.is_file():
                return file
    return None


@cache
def _definition(file: Path, name: str | None) -> Place | None:
    """The line of `name` (`function`, `Class::test[id]`) in `file`; its first line when it has no such definition."""
    try:
        if not file.is_file() or file.stat().st_size > LARGEST:
            return None
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return Place(file=file, line=1) if file.is_file() else None
    body: list[ast.stmt] = tree.body
    line = 1
    for part in (name or "").partition("[")[0].split("::"):
        found = next(
            (
                node
                for node in body
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and node.name == part
            ),
            None,
        )
        if found is None:
            break
        line, body = found.lineno, found.body
    return Place(file=file, line=line)

"""Which modules a workload imports, in which order, read from its source without running it."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from reprocheck.errors import UsageError
from reprocheck.model import Struct, Target
from reprocheck.plan.source import check_function, locate, parse

__all__ = ["Found", "SubjectsFound", "find_subjects"]

# Standard library modules of some Python from 3.9 on that this one may not know any more (or yet).
# fmt: off
_OTHER_STDLIB = {
    "aifc", "annotationlib", "asynchat", "asyncore", "audioop", "binhex", "cgi", "cgitb", "chunk",
    "compression", "crypt", "distutils", "formatter", "imghdr", "imp", "lib2to3", "mailcap", "msilib", "nis",
    "nntplib", "ossaudiodev", "parser", "pipes", "smtpd", "sndhdr", "spwd", "sunau", "symbol", "telnetlib",
    "tomllib", "uu", "xdrlib",
}
# fmt: on
_NO_SUBJECTS = sys.stdlib_module_names | _OTHER_STDLIB | {"__future__", "__main__", "reprocheck"}
_SHARED_FOLDERS = ("site-packages", "dist-packages")  # what lies there is installed, not the workload's own


class Found(Struct, frozen=True, kw_only=True):
    """Where a subject was found: the import that comes first."""

    name: str
    file: str
    line: int
    how: Literal["import", "import_module", "__import__", "importorskip"]
    optional: bool
    """True when each of its imports is conditional (in `try`, `if`, or a function that may never be called), so that
    the workload may well run without it."""


class SubjectsFound(Struct, frozen=True, kw_only=True):
    """What the workload's own imports say."""

    subjects: tuple[str, ...]
    """Top-level names, in order of their first import."""
    found: tuple[Found, ...]
    """One for each subject, in the same order."""
    files: tuple[str, ...]
    """The workload's own files that were read: its file, its packages' `__init__.py`, its helpers."""


def find_subjects(target: Target, sys_path: Sequence[str]) -> SubjectsFound:
    """The modules the workload imports, standard library and reprocheck left out.

    Imports anywhere in the file count, in order of appearance, except below `if TYPE_CHECKING`; so do
    `import_module("x")`, `__import__("x")` and `importorskip("x")` with a literal. The workload's own code is no
    subject but is read in its place, each file once: single-file modules next to it (as long as that is not an
    installation folder), and for `pkg.mod:function` all modules of `pkg`. Local packages are subjects.

    Args:
        target: Kinds `function` and `script` by their path, kind `module` by searching `sys_path`.
        sys_path: The trials' module search path; the empty string is the current folder.

    Raises:
        UsageError: a file that can't be read or parsed, a module whose source isn't on the search path, or
            one that does not define the target's function.
    """
    if target.kind != "module":
        path = Path(target.path or "")
        return _Reader(folder=path.parent, own=None, entered=target.name).read(path)
    module = target.module or ""
    parts = module.split(".")
    located = locate(parts, [Path(entry) for entry in sys_path])
    if not located.complete or located.entry is None:
        raise UsageError(
            f"there is no source of `{module}` on the module search path to read imports from: "
            f"correct the name, or name the subjects with --imports."
        )
    if target.name:
        check_function(located.files[-1], target.name, module)
    folder = None if located.entry.name in _SHARED_FOLDERS else located.entry
    return _Reader(folder=folder, own=(parts[0], located.entry), entered=target.name).read(*located.files)


class _Reader:
    """Collects subjects over the workload's own files."""

    def __init__(self, *, folder: Path | None, own: tuple[str, Path] | None, entered: str | None) -> None:
        self._folder = folder  # single-file modules in here are helpers
        self._own = own  # the workload's top-level package and the folder that holds it
        self._entered = entered  # the function that will be called
        self._files: dict[Path, None] = {}
        self._found: dict[str, Found] = {}

    def read(self, *files: Path) -> SubjectsFound:
        """What is found in `files`, the last of which is the workload's own."""
        for file in files:
            self._follow(file, entered=self._entered if file == files[-1] else None)
        return SubjectsFound(
            subjects=tuple(self._found),
            found=tuple(self._found.values()),
            files=tuple(str(file) for file in self._files),
        )

    def _follow(self, file: Path, *, optional: bool = False, entered: str | None = None) -> None:
        if file in self._files:
            return
        self._files[file] = None
        for node, conditional in _in_order(parse(file), entered):
            self._look(file, node, optional=optional or conditional)

    def _look(self, file: Path, node: ast.AST, *, optional: bool) -> None:
        """Takes up what one node imports."""
        match node:
            case ast.Import():
                for alias in node.names:
                    self._take(alias.name.split("."), file, node.lineno, "import", optional)
            case ast.ImportFrom(level=0):
                for alias in node.names:
                    self._take([*(node.module or "").split("."), alias.name], file, node.lineno, "import", optional)
            case ast.ImportFrom():
                base = file.parents[min(node.level, len(file.parents)) - 1]
                for alias in node.names:
                    self._follow_all([*(node.module or "").split("."), alias.name], base, optional)
            case ast.Call(
                func=ast.Name(id=str(called)) | ast.Attribute(attr=str(called)),
                args=[ast.Constant(value=str(name)), *_],
            ) if called in {"import_module", "__import__", "importorskip"} and not name.startswith("."):
                how: Literal["import_module", "__import__", "importorskip"] = called  # type: ignore[assignment]
                self._take(name.split("."), file, node.lineno, how, optional or called == "importorskip")

    def _take(
        self,
        parts: list[str],
        file: Path,
        line: int,
        how: Literal["import", "import_module", "__import__", "importorskip"],
        optional: bool,
    ) -> None:
        """Follows an absolute import if it leads to the workload's own code, else notes its subject."""
        top = parts[0]
        if self._own is not None and top == self._own[0]:
            self._follow_all(parts, self._own[1], optional)
            return
        if self._folder is not None and top not in sys.builtin_module_names:
            local = locate([top], [self._folder])
            if local.files and local.files[0].name != "__init__.py":
                self._follow(local.files[0], optional=optional)
                return
            if not local.files and top in _NO_SUBJECTS:
                return
        elif top in _NO_SUBJECTS:
            return
        if top.isidentifier():
            known = self._found.setdefault(top, Found(name=top, file=str(file), line=line, how=how, optional=optional))
            if known.optional and not optional:
                self._found[top] = msgspec.structs.replace(known, optional=False)

    def _follow_all(self, parts: Sequence[str], base: Path, optional: bool) -> None:
        """Follows the files of one of the workload's own modules, as far as `parts` lead to files."""
        for file in locate([part for part in parts if part], [base]).files:
            self._follow(file, optional=optional)


def _in_order(tree: ast.Module, entered: str | None) -> Iterator[tuple[ast.AST, bool]]:
    """All nodes in order of appearance, each with whether it is conditional; nothing below `if TYPE_CHECKING`."""
    stack: list[tuple[ast.AST, bool]] = [(tree, False)]
    while stack:
        node, conditional = stack.pop()
        yield node, conditional
        children: list[tuple[ast.AST, bool]] = []
        match node:
            case ast.If() if _checks_types(node.test):
                children = [(child, conditional) for child in node.orelse]
            case ast.If(test=ast.UnaryOp(op=ast.Not(), operand=test)) if _checks_types(test):
                children = [(child, conditional) for child in node.body]
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                inside = conditional or node.name != entered
                children = [(child, inside) for child in ast.iter_child_nodes(node)]
            case ast.If() | ast.Try() | ast.TryStar() | ast.Match() | ast.Lambda():
                children = [(child, True) for child in ast.iter_child_nodes(node)]
            case ast.With() if any(map(_suppresses, node.items)):
                children = [(child, True) for child in ast.iter_child_nodes(node)]
            case _:
                children = [(child, conditional) for child in ast.iter_child_nodes(node)]
        stack.extend(reversed(children))


def _checks_types(test: ast.expr) -> bool:
    match test:
        case ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING"):
            return True
    return False


def _suppresses(item: ast.withitem) -> bool:
    match item.context_expr:
        case ast.Call(func=ast.Name(id="suppress") | ast.Attribute(attr="suppress")):
            return True
    return False

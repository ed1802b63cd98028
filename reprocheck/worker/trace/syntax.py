"""What a source file says about its lines: the statement a line belongs to, the names on it, the loops around it."""

import ast

__all__ = ["Source", "Statement"]

_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


class Statement:
    """A simple statement, or the head of a compound one: its lines, the names it reads and sets, its loops."""

    __slots__ = ("is_loop", "last", "line", "loops", "reads", "sets")

    def __init__(self, node, last, loops, is_loop):
        """`last` is the last line of the statement or head; `loops` the enclosing loops, outermost first."""
        self.line = node.lineno
        self.last = last
        self.loops = loops
        self.is_loop = is_loop
        self.reads, self.sets = _names(node)


class Source:
    """The statements of one file, by line. Empty for a file that cannot be read or parsed."""

    def __init__(self, file):
        """Read and parse `file`."""
        self._by_line = {}
        self.ends = {}
        try:
            with open(file, "rb") as stream:
                tree = ast.parse(stream.read())
        except (OSError, SyntaxError, ValueError):
            return
        self._block(tree.body, ())

    def statement(self, line):
        """The statement that line belongs to, or None."""
        return self._by_line.get(line)

    def _block(self, nodes, loops):
        for node in nodes:
            blocks = [getattr(node, name) for name in _BLOCKS if getattr(node, name, None)]
            is_loop = isinstance(node, (ast.For, ast.AsyncFor, ast.While))
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                inner = ()
            else:
                inner = (*loops, node.lineno) if is_loop else loops
            if hasattr(node, "lineno"):
                first = min([item.lineno for block in blocks for item in block if hasattr(item, "lineno")] or [0])
                last = node.end_lineno if not blocks else max(node.lineno, first - 1)
                statement = Statement(node, last, inner if is_loop else loops, is_loop)
                for line in range(node.lineno, last + 1):
                    self._by_line.setdefault(line, statement)
                if is_loop:
                    self.ends[node.lineno] = node.end_lineno
            for name in _BLOCKS:
                block = getattr(node, name, None)
                if isinstance(block, list):
                    # A loop's `else` runs once, after the loop.
                    self._block(block, loops if is_loop and name == "orelse" else inner)


def _names(node):
    """Dotted names a statement reads and sets: `x`, `self.weight`. What lies in nested blocks is not its own."""
    reads, sets = {}, {}
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return (), ()
    stack = [
        child
        for name, field in ast.iter_fields(node)
        if name not in _BLOCKS
        for child in (field if isinstance(field, list) else [field])
        if isinstance(child, ast.AST)
    ]
    if isinstance(node, ast.AugAssign):
        _add(reads, node.target)
    while stack:
        here = stack.pop()
        if isinstance(here, ast.Lambda):
            continue
        if isinstance(here, (ast.Name, ast.Attribute)):
            _add(sets if isinstance(here.ctx, ast.Store) else reads, here)
        if isinstance(here, ast.Subscript) and not isinstance(here.ctx, ast.Load):
            # `a[i] = …` changes `a`.
            _add(reads, here.value)
        stack += ast.iter_child_nodes(here)
    return tuple(sorted(set(reads) | set(sets))), tuple(sorted(sets))


def _add(names, node):
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        names[".".join([node.id, *reversed(parts)])] = None

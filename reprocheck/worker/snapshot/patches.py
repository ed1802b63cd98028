"""Replaced functions: public callables of the numerical namespaces that are not defined by their own package.

Told by where the code really comes from (`__globals__` and the code's file), not by `__module__`, which
`functools.wraps` copies from the original. What a package changes in itself, lazily or not, is no replacement:
`torch.compile` and `torch.manual_seed` change identity on first use. Only `__dict__`s are looked at, so that nothing
lazy is loaded.
"""

import sys

from .. import digest

__all__ = ["WATCHED", "definition", "foreign", "locate", "name", "phases", "read", "renamed", "standard"]

name = "patches"
phases = ("t2", "t3")

WATCHED = (
    *("torch", "torch.nn.functional", "torch.linalg", "torch.fft", "torch.special", "torch.random", "torch.cuda"),
    *("torch.Tensor", "torch.nn.Module", "numpy", "numpy.linalg", "numpy.fft", "numpy.random", "cupy", "cupy.linalg"),
    *("cupy.fft", "cupy.random", "random", "math", "os", "builtins"),
)

# Whose names a package shows as its own: `cupy.float32` is numpy's.
_LENDERS = {"cupy": ("numpy", "cupyx", "cupy_backends")}
# Decorators that leave `__wrapped__` and do nothing to the numbers.
_DECORATORS = ("contextlib", "functools", "typing_extensions", "warnings")

# Of numpy's kinds of callables that are neither functions nor builtins, one each: `ufunc` and dispatched functions.
_NAMED = ("add", "dot")

_FUNCTION = type(lambda: None)
_BUILTIN = type(len)
_MODULE = type(sys)


def read():
    """`NAMESPACE.NAME` for each callable from elsewhere, with its definition; `digest.NAMESPACE` over all of them."""
    found = {}
    for namespace in WATCHED:
        owner = locate(namespace)
        if owner is not None:
            outsiders = foreign(owner, namespace)
            for attribute, where in outsiders.items():
                found[namespace + "." + attribute] = where
            found["digest." + namespace] = digest.short(repr(sorted(outsiders.items()) + renamed(owner)))
    return found


def renamed(owner):
    """`(attribute, function's own name)` where these differ: aliases, and functions put in another's place."""
    numpy = vars(sys.modules["numpy"]) if "numpy" in sys.modules else {}
    kinds = {_FUNCTION, _BUILTIN, *(type(numpy[name]) for name in _NAMED if name in numpy)}
    values = list(vars(owner).items())
    return sorted([(name, value.__name__) for name, value in values if type(value) in kinds and value.__name__ != name])


def locate(namespace):
    """The loaded module or class, or None."""
    module = sys.modules.get(namespace)
    if module is not None:
        return module
    head, _, tail = namespace.rpartition(".")
    module = sys.modules.get(head)
    found = None if module is None else vars(module).get(tail)
    return found if isinstance(found, type) else None


def foreign(owner, namespace):
    """Attribute -> `module.qualname (file:line)` for the callables in `owner` that another package defined."""
    own = _Own(namespace.partition(".")[0])
    private = type(owner) is _MODULE  # `_name` of a module is nobody's business, `__add__` of a class is
    found = {}
    for attribute, value in list(vars(owner).items()):
        kind = type(value)
        if kind is _FUNCTION:
            # The common case, and there are thousands of them.
            if own.file(value.__code__.co_filename, value.__globals__):
                continue
        elif kind is _BUILTIN or issubclass(kind, (_MODULE, str, int)):
            continue
        if private and attribute.startswith("_") and attribute != "__import__":
            continue
        where = _where(value, attribute, own)
        if where is not None:
            found[attribute] = where
    return found


class _Own:
    """Whether code belongs to one package, remembering the answer for each file."""

    def __init__(self, package):
        self.package = package
        self.standard = package in standard()
        module = sys.modules.get(package)
        file = getattr(module, "__file__", None) or ""
        self._folder = file.rpartition("/")[0] + "/" if file and not self.standard else None
        self._files = {}

    def file(self, file, namespace):
        """True for code of the package, by its file; for generated code (`<string>`), by the module it lives in."""
        known = self._files.get(file)
        if known is None:
            if file.startswith("<"):
                return self.module(namespace.get("__name__"))
            known = file.startswith(self._folder) if self._folder else self.module(namespace.get("__name__"))
            self._files[file] = known
        return known

    def module(self, module):
        """True for a module of the package; of a standard module, for any standard module."""
        root = (module or "").partition(".")[0]
        return root == self.package or root in ("builtins", "") or (self.standard and root in standard())

    def lent(self, module):
        """True for a module whose names the package shows as its own."""
        return (module or "").partition(".")[0] in _LENDERS.get(self.package, ())


def _where(value, attribute, own):
    """Where a callable comes from, or None if that is not worth telling."""
    value = _unwrapped(value)
    kind = type(value)
    if kind is _FUNCTION:
        if own.file(value.__code__.co_filename, value.__globals__):
            return None
        module, label = value.__globals__.get("__name__") or "?", value.__name__
        text = "%s.%s (%s:%d)" % (module, value.__qualname__, value.__code__.co_filename, value.__code__.co_firstlineno)
    elif issubclass(kind, type):  # not `isinstance`, which asks a lazy object for its `__class__`
        module, label = value.__module__, value.__name__
        if own.module(module) or own.lent(module):
            return None
        text = "%s.%s" % (module, value.__qualname__)
    elif kind is _BUILTIN or not callable(value):
        return None
    else:
        module, label = kind.__module__, None
        if own.module(module) or module == "typing":
            return None
        text = "%s.%s object" % (module, kind.__qualname__)
    # `from typing import cast` is no replacement of `torch.cast`.
    imported = label == attribute and (module.partition(".")[0] in standard() or own.lent(module))
    return None if imported else text


def _unwrapped(value):
    """The function inside methods, partials and the standard library's wrappers (`lru_cache`, `contextmanager`)."""
    for _ in range(8):
        kind = type(value)
        inner = None
        if kind in (staticmethod, classmethod) or kind.__name__ == "method":
            inner = value.__func__
        elif kind is property:
            inner = value.fget
        elif kind is _FUNCTION:
            if value.__globals__.get("__name__") in _DECORATORS:
                inner = value.__dict__.get("__wrapped__")
        elif kind.__module__ == "functools":
            inner = getattr(value, "func", None) or getattr(value, "__wrapped__", None)
        if inner is None:
            break
        value = inner
    return value


def definition(value):
    """Where any callable was defined, as far as it says so."""
    code = getattr(value, "__code__", None)
    where = " (%s:%d)" % (code.co_filename, code.co_firstlineno) if code is not None else ""
    return "%s.%s%s" % (getattr(value, "__module__", "?"), getattr(value, "__qualname__", "?"), where)


_names: set[str] = set()


def standard():
    """Names of the standard library's modules. Python 3.9 does not list them: those in its folder, then."""
    if not _names:
        listed = getattr(sys, "stdlib_module_names", None)
        if listed is None:
            folder = sys.modules["os"].__file__.rpartition("/")[0]
            listed = [entry.partition(".")[0] for entry in sys.modules["os"].listdir(folder)]
            listed += sys.builtin_module_names
        _names.update(listed)
    return _names

"""Replaced functions: public callables of the numerical namespaces that are not defined by their own package.

Told by where the code really comes from (`__globals__` and the code's file), not by `__module__`, which
`functools.wraps` copies from the original. What a package changes in itself, lazily or not, is no replacement:
`torch.compile` and `torch.manual_seed` change identity on first use. Only `__dict__`s are looked at, so that nothing
lazy is loaded.
"""

import sys

from .. import digest

__all__ = ["WATCHED", "foreign", "name", "phases", "read"]

name = "patches"
phases = ("t2", "t3")

WATCHED = (
    *("torch", "torch.nn.functional", "torch.linalg", "torch.fft", "torch.special", "torch.random", "torch.cuda"),
    *("torch.Tensor", "torch.nn.Module", "numpy", "numpy.linalg", "numpy.fft", "numpy.random", "cupy", "cupy.linalg"),
    *("cupy.fft", "cupy.random", "random", "math", "os", "builtins"),
)

_FUNCTION = type(lambda: None)
_BUILTIN = type(len)
_MODULE = type(sys)


def read():
    """`NAMESPACE.NAME` for each callable from elsewhere, with its definition; `digest.NAMESPACE` over all of them."""
    found = {}
    for namespace in WATCHED:
        owner = _locate(namespace)
        if owner is None:
            continue
        outsiders = foreign(owner, namespace)
        for attribute, where in outsiders.items():
            found[namespace + "." + attribute] = where
        found["digest." + namespace] = digest.short(repr(sorted(outsiders.items())))
    return found


def _locate(namespace):
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
    package = namespace.partition(".")[0]
    own = _Own(package)
    found = {}
    for attribute, value in list(vars(owner).items()):
        kind = type(value)
        if kind is _FUNCTION:
            # The common case, and there are thousands of them.
            if own.file(value.__code__.co_filename, value.__globals__):
                continue
        elif kind is _BUILTIN or kind is _MODULE or kind is str or kind is int or kind is bool:
            continue
        elif attribute.startswith("__") and attribute != "__import__":
            continue
        where = _where(value, attribute, own)
        if where is not None:
            found[attribute] = where
    return found


class _Own:
    """Whether code belongs to one package, remembering the answer for each file."""

    def __init__(self, package):
        self.package = package
        self.standard = package in _standard()
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
            if self._folder:
                known = file.startswith(self._folder)
            else:
                known = self.module(namespace.get("__name__"))
            self._files[file] = known
        return known

    def module(self, module):
        """True for a module of the package; of a standard module, for any standard module."""
        root = (module or "").partition(".")[0]
        return root == self.package or root in ("builtins", "") or (self.standard and root in _standard())


def _where(value, attribute, own):
    """Where a callable comes from, or None if that is not worth telling."""
    for _ in range(8):
        if type(value) in (staticmethod, classmethod):
            value = value.__func__
        elif type(value) is property:
            value = value.fget
        elif getattr(type(value), "__name__", "") == "method":
            value = value.__func__
        else:
            wrapped = _through(value)
            if wrapped is None:
                break
            value = wrapped
    kind = type(value)
    if kind is _FUNCTION:
        if own.file(value.__code__.co_filename, value.__globals__):
            return None
        module = value.__globals__.get("__name__") or "?"
        label = getattr(value, "__name__", "?")
        text = "%s.%s (%s:%d)" % (module, value.__qualname__, value.__code__.co_filename, value.__code__.co_firstlineno)
    elif isinstance(value, type):
        module, label = value.__module__, value.__name__
        if own.module(module):
            return None
        text = "%s.%s" % (module, getattr(value, "__qualname__", label))
    elif kind is _BUILTIN or not callable(value):
        return None
    else:
        module, label = kind.__module__, None
        if own.module(module):
            return None
        inner = getattr(value, "func", None)
        text = "%s.%s object" % (module, kind.__qualname__)
        if isinstance(inner, _FUNCTION):
            text += " of %s.%s (%s:%d)" % (
                *(inner.__globals__.get("__name__"), inner.__qualname__),
                *(inner.__code__.co_filename, inner.__code__.co_firstlineno),
            )
    # `from typing import cast` is no replacement of `torch.cast`.
    return None if label == attribute and (module or "").partition(".")[0] in _standard() else text


def _through(value):
    """What a wrapper of the standard library (`lru_cache`, `contextmanager`) wraps, or None."""
    wrapped = None
    if type(value) is _FUNCTION:
        if value.__globals__.get("__name__") in ("contextlib", "functools"):
            wrapped = value.__dict__.get("__wrapped__")
    elif type(value).__module__ == "functools":
        wrapped = getattr(value, "__wrapped__", None)
    return wrapped


_names = set()


def _standard():
    """Names of the standard library's modules. Python 3.9 does not list them: those in its folder, then."""
    if not _names:
        listed = getattr(sys, "stdlib_module_names", None)
        if listed is None:
            folder = sys.modules["os"].__file__.rpartition("/")[0]
            listed = [entry.partition(".")[0] for entry in sys.modules["os"].listdir(folder)]
            listed += sys.builtin_module_names
        _names.update(listed)
    return _names

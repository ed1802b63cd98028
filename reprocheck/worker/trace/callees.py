"""What is called: whose code it is, its name, whether it may change its arguments, what generator it draws from."""

import sys
import types

from .own import LIBRARY, OTHER, OWN

__all__ = ["generator_state", "is_state", "kind", "may_change", "name"]

_LIBRARIES = ("torch", "numpy", "cupy", "cupyx", "cupy_backends", "scipy", "builtins", "operator", "math", "cmath")
_NUMERIC = ("math", "cmath", "statistics", "random")
_CHANGING = frozenset(
    ("copyto", "put", "place", "putmask", "fill_diagonal", "shuffle", "sort", "fill", "partition", "resize", "byteswap")
)


def kind(own, function):
    """OWN, LIBRARY or OTHER for something that is called."""
    code = getattr(function, "__code__", None)
    if code is None and not isinstance(function, (types.BuiltinFunctionType, type)):
        # An object with a `__call__` of Python's.
        code = getattr(getattr(type(function), "__call__", None), "__code__", None)  # noqa: B004 - its code is wanted
    if isinstance(code, types.CodeType):
        return own.kind(code) if _module(function) not in _NUMERIC else OTHER
    module = _module(function)
    if isinstance(function, type):
        file = getattr(sys.modules.get(getattr(function, "__module__", None)), "__file__", None)
        if file and own.file_kind(file) == OWN:
            return OWN
    if module in _NUMERIC:
        # A toolbox that replaces `math.exp` is what is being looked for.
        return OTHER
    return LIBRARY if module in _LIBRARIES or module in getattr(sys, "stdlib_module_names", ()) else OTHER


def _module(function):
    """The top-level module a callable comes from."""
    found = getattr(function, "__module__", None)
    if not isinstance(found, str):
        owner = getattr(function, "__self__", None)
        found = type(owner if owner is not None else function).__module__
    return found.partition(".")[0]


def name(function):
    """`numpy.linalg.solve`, `numpy.ndarray.sum`, `numpy.add.reduce`, `cupy.RawKernel(saxpy)`."""
    owner = getattr(function, "__self__", None)
    own_name = getattr(function, "__qualname__", None) or getattr(function, "__name__", None)
    module = getattr(function, "__module__", None)
    if type(owner).__name__ == "ufunc":
        return "%s.%s" % (name(owner), own_name.rpartition(".")[2])
    if owner is not None and not isinstance(owner, (type, types.ModuleType)):
        return "%s.%s" % (_type_name(type(owner)), (own_name or "").rpartition(".")[2])
    if type(function).__name__ == "ufunc":
        top = type(function).__module__.partition(".")[0]
        short = getattr(function, "__name__", "ufunc")
        return "%s.%s" % (top, short[len(top) + 1 :] if short.startswith(top + "_") else short)
    if isinstance(own_name, str) and isinstance(module, str):
        return "%s.%s" % (_public(module), own_name)
    called = getattr(function, "name", None) or own_name
    return _type_name(type(function)) + ("(%s)" % called if isinstance(called, str) else "")


def _public(module):
    """`cupy.linalg` of `cupy.linalg._solve`: a library's module as its users know it."""
    parts = module.split(".")
    if parts[0] not in _LIBRARIES:
        return module
    private = next((index for index, part in enumerate(parts) if part.startswith("_")), len(parts))
    return ".".join(parts[:private])


def _type_name(cls):
    """`numpy.ndarray`; the private modules that define a library's types are left out."""
    top = cls.__module__.partition(".")[0]
    return "%s.%s" % (top if top in _LIBRARIES else cls.__module__, cls.__qualname__)


def may_change(function, kind_):
    """Whether a call may have changed the arrays it was given: not what numpy promises to leave alone."""
    if kind_ == LIBRARY and _module(function) == "numpy":
        short = (getattr(function, "__name__", None) or "").rpartition(".")[2]
        return short in _CHANGING
    return True


def is_state(value):
    """Whether a result is a module or an optimiser, whose insides are not what the call computed."""
    torch = sys.modules.get("torch")
    module = getattr(getattr(torch, "nn", None), "Module", None)
    return module is not None and (isinstance(value, module) or hasattr(value, "param_groups"))


def generator_state(owner):
    """A digest of the random generator whose method is called, or None if it is none."""
    numpy = sys.modules.get("numpy")
    random = sys.modules.get("random")
    state = None
    if random is not None and isinstance(owner, getattr(random, "Random", ())):
        state = owner.getstate()
    elif numpy is not None and type(owner).__module__.startswith("numpy.random"):
        if hasattr(owner, "bit_generator"):
            state = owner.bit_generator.state
        elif hasattr(owner, "get_state"):
            state = owner.get_state()
    if state is None:
        return None
    from .. import digest

    return digest.data(repr(state).encode())

"""One key of a snapshot, read alone and as cheaply as it can be: what `blame` looks at after every line."""

import importlib
import sys

__all__ = ["sampler"]

_MISSING = "absent"


def sampler(key):
    """A function without arguments that returns the value of `kind.key` now, `absent` where there is none."""
    kind, _, rest = key.partition(".")
    make = _CHEAP.get(kind)
    found = make(rest) if make is not None else None
    return found if found is not None else _by_reader(kind, rest)


def _reader(module):
    """The reader that is in use already, if there is one: a trial takes the early ones out of `sys.modules`."""
    package = importlib.import_module(__package__ + ".snapshot")
    return getattr(package, module, None) or importlib.import_module(package.__name__ + "." + module)


def _environ(rest):
    view, _, variable = rest.partition(".")
    environ = _reader("environ")
    if view == "python":

        def python():
            value = sys.modules["os"].environ.get(variable)
            return _MISSING if value is None else environ.shown(variable, value)

        return python
    if view == "c":

        def native():
            value = environ.in_c().get(variable)
            return _MISSING if value is None else environ.shown(variable, value)

        return native
    return None


def _process(rest):
    """The one part of the reader that has this key, so that the others are not read again and again."""
    process = _reader("process")
    if rest == "affinity":
        return lambda: sorted(sys.modules["posix"].sched_getaffinity(0))
    for part in process.PARTS:
        if rest in part():
            return lambda: part().get(rest, _MISSING)
    return lambda: process.read().get(rest, _MISSING)


def _torch(rest):
    state = _reader("torch_state")
    path = state.CALLS.get(rest)
    if path is None:
        return None

    def call():
        torch = sys.modules.get("torch")
        if torch is None or "_C" not in vars(torch):
            return _MISSING
        return state.attempt(state.find(torch, path))

    return call


def _patches(rest):
    namespace, _, attribute = rest.rpartition(".")
    if namespace.startswith("digest"):
        return None
    patches = _reader("patches")

    def identity():
        owner = patches.locate(namespace)
        value = None if owner is None else vars(owner).get(attribute)
        return _MISSING if value is None else _Same(value, patches.definition(value))

    return identity


class _Same:
    """Equal when it is the same object; shown by its definition."""

    __slots__ = ("_text", "_value")

    def __init__(self, value, text):
        self._value, self._text = value, text

    def __eq__(self, other):
        return isinstance(other, _Same) and self._value is other._value

    def __hash__(self):
        return id(self._value)

    def __repr__(self):
        return self._text


_CHEAP = {"environ": _environ, "process": _process, "torch": _torch, "patches": _patches}


def _by_reader(kind, rest):
    """Any other key: the readers of its kind, all of them, until one has it."""
    snapshot = importlib.import_module(__package__ + ".snapshot")
    modules = [_reader(one) for one in snapshot.EARLY + snapshot.LATE]
    modules = [one for one in modules if one.name == kind and not (kind == "libraries" and rest == "new")]

    def search():
        for one in modules:
            try:
                found = one.read()
            except Exception as error:
                return {"error": "%s: %s" % (type(error).__name__, error)}
            if rest in found:
                return found[rest]
        return _MISSING

    return search

"""A few keys of a snapshot, read alone and as cheaply as it can be: what `blame` looks at after every line."""

import importlib
import sys

__all__ = ["Sampler"]

_MISSING = "absent"


class Sampler:
    """Reads `kind.key` for some keys; a key that is not there is `absent`."""

    def __init__(self, keys):
        """Find the cheapest way for each key; those without one share a run of their kind's readers."""
        self._alone = {}
        self._shared = {}
        for key in keys:
            kind, _, rest = key.partition(".")
            make = _CHEAP.get(kind)
            read = make(rest) if make is not None else None
            if read is not None:
                self._alone[key] = read
            else:
                self._shared.setdefault(kind, []).append(rest)
        self._readers = {kind: _readers(kind) for kind in self._shared}

    def read(self):
        """Key -> value."""
        values = {key: read() for key, read in self._alone.items()}
        for kind, keys in self._shared.items():
            found = {}
            for reader in self._readers[kind]:
                try:
                    found.update(reader.read())
                except Exception as error:
                    found["error"] = "%s: %s" % (type(error).__name__, error)
            for key in keys:
                values[kind + "." + key] = found.get(key, _MISSING)
        return values


def _readers(kind):
    """The readers of a kind that change nothing by reading: `libraries` and `modules` tell what is new, once."""
    snapshot = importlib.import_module(__package__ + ".snapshot")
    modules = [_reader(one) for one in snapshot.EARLY + snapshot.LATE if one not in ("libraries", "modules")]
    return [one for one in modules if one.name == kind]


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
    path, arguments = state.CALLS.get(rest), []
    if rest.startswith("fp32.") and rest.count(".") == 2 and path is None:
        path, arguments = "_C._get_fp32_precision_getter", rest.split(".")[1:]
    if path is None:
        return None

    def call():
        torch = sys.modules.get("torch")
        if torch is None or "_C" not in vars(torch):
            return _MISSING
        return state.attempt(state.find(torch, path), *arguments)

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


def _libraries(rest):
    if rest != "scope.global":
        return None
    elf = importlib.import_module(__package__ + ".elf")

    def scope():
        with elf.Memory() as memory:
            return [one.path for one in elf.global_scope(memory, elf.objects(memory)) if one.path]

    return scope


_CHEAP = {"environ": _environ, "libraries": _libraries, "process": _process, "torch": _torch, "patches": _patches}

"""Blame: which module, and then which line, changed a piece of state. Only for trials that ask for it: it is slow.

First pass, `start(keys)`: the state is looked at whenever a module's body begins or ends (`sys.setprofile`), so a
change belongs to the body that was executing, whoever made it, Python or C. Calls of known setters are recorded on the
way, with the line outside the setter's own package that made them.

Second pass, `start(keys, modules)`: within the bodies of those modules, and whatever they call, the state is looked at
after every line (`sys.settrace`). A change belongs to the line before the look.
"""

import sys
import time

from .events import Site
from .sampling import Sampler
from .snapshot.patches import standard

__all__ = ["drain", "start", "stop"]

# Python functions: name -> packages whose function it is.
_PYTHON = {
    "set_default_dtype": ("torch",),
    "set_default_tensor_type": ("torch",),
    "set_default_device": ("torch",),
    "set_float32_matmul_precision": ("torch",),
    "use_deterministic_algorithms": ("torch",),
    "set_deterministic_debug_mode": ("torch",),
    "manual_seed": ("torch",),
    "set_printoptions": ("torch", "numpy"),
    "seterr": ("numpy",),
    "seterrcall": ("numpy",),
    "setbufsize": ("numpy",),
    "seed": ("random", "numpy", "cupy"),
    "setstate": ("random",),
    "setlocale": ("locale",),
    "set_start_method": ("multiprocessing",),
    "set_allocator": ("cupy",),
    "filterwarnings": ("warnings",),
    "simplefilter": ("warnings",),
    "__setitem__": ("os",),
    "__delitem__": ("os",),
}
# Built-in functions: name -> modules (or types' modules). Everything of torch named `set_…` or `_set_…` counts, too.
_BUILTIN = {
    "sched_setaffinity": ("posix",),
    "sched_setscheduler": ("posix",),
    "setpriority": ("posix",),
    "nice": ("posix",),
    "umask": ("posix",),
    "chdir": ("posix",),
    "setlocale": ("_locale",),
    "signal": ("_signal",),
    "setrlimit": ("resource",),
    "setswitchinterval": ("sys",),
    "setrecursionlimit": ("sys",),
    "setdlopenflags": ("sys",),
    "set_int_max_str_digits": ("sys",),
    "set_threshold": ("gc",),
    "disable": ("gc",),
    "enable": ("gc",),
    "freeze": ("gc",),
    "stack_size": ("_thread",),
}
_LIBRARIES = ("torch", "numpy", "cupy", "cupyx", "cupy_backends", "mkl", "scipy")
_OWN = ("_reprocheck_worker", "reprocheck.worker")

_found: list[dict[str, object]] = []
_state: dict[str, object] = {
    "since": 0.0,
    "sampler": None,
    "values": {},
    "modules": frozenset(),
    "roots": frozenset(),
    "depth": 0,
    "inner": False,
    "last": None,
}
_bodies: list[Site] = []


def start(keys, modules=(), since=None):
    """Begin to watch `keys` (`kind.key`, as in a snapshot): by module, or by line within `modules`."""
    _state["since"] = time.perf_counter() if since is None else since
    _state["sampler"] = Sampler(keys)
    _state["values"] = _state["sampler"].read()
    _state["modules"] = frozenset(modules)
    _state["roots"] = frozenset(module.partition(".")[0] for module in modules)
    if modules:
        sys.settrace(_trace)
    else:
        sys.setprofile(_profile)


def stop():
    """Look a last time, and watch no longer."""
    (sys.settrace if _state["modules"] else sys.setprofile)(None)
    _look(_state["last"] or (_bodies[-1] if _bodies else Site()))


def drain():
    """What was found since the last call, oldest first.

    Events of kind `change` (`name` is the key, `value` is `before -> after`) and `setter` (`name` is the function,
    `value` its arguments where they are known), with `at`, `file`, `line` (None by module) and `module`.
    """
    taken, _found[:] = _found[:], []
    return taken


def _report(kind, name, value, site):
    at = round(time.perf_counter() - _state["since"], 6)
    _found.append({"kind": kind, "at": at, "name": name, "value": value, **site.fields()})


def _look(site):
    """Compare every key with its last value; what differs is the doing of `site`."""
    values = _state["values"]
    for key, now in _state["sampler"].read().items():
        if now != values[key]:
            _report("change", key, "%s -> %s" % (_short(values[key]), _short(now)), site)
            values[key] = now


def _short(value):
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= 200 else text[:197] + "..."


def _body(frame):
    namespace = frame.f_globals
    return Site(frame.f_code.co_filename, None, namespace.get("__name__"))


def _profile(frame, event, argument):
    code = frame.f_code
    if event == "c_call":
        module = getattr(argument, "__module__", None)
        if module is None:
            owner = getattr(argument, "__self__", None)
            module = getattr(owner, "__name__", None) if type(owner) is type(sys) else type(owner).__module__
        _builtin(argument.__name__, module or "", frame)
    elif event == "call":
        if code.co_name == "<module>":
            _look(_bodies[-1] if _bodies else Site())
            _bodies.append(_body(frame))
        elif code.co_name in _PYTHON:
            root = (frame.f_globals.get("__name__") or "").partition(".")[0]
            if root in _PYTHON[code.co_name]:
                _setter(root + "." + code.co_name, _arguments(frame), root, frame.f_back)
    elif event == "return" and code.co_name == "<module>":
        body = _bodies.pop() if _bodies else _body(frame)
        _look(body)


def _builtin(called, module, frame):
    root = module.partition(".")[0]
    if root in _BUILTIN.get(called, ()) or (root == "torch" and called.startswith(("set_", "_set_"))):
        _setter(module + "." + called, None, root, frame)


def _arguments(frame):
    """The arguments of a Python function that was just called; a value of the environment is left out."""
    code = frame.f_code
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    if code.co_name in ("__setitem__", "__delitem__"):
        names = names[1:2]
    return ", ".join("%s=%s" % (name, _short(frame.f_locals.get(name))) for name in names if name != "self")


def _setter(name, value, root, frame):
    """Record a call; its site is the first frame outside the setter's package, up to the body that is executing."""
    inner = None
    while frame is not None:
        owner = frame.f_globals.get("__name__") or ""
        if owner.startswith(_OWN):
            break
        site = Site(frame.f_code.co_filename, frame.f_lineno, _executing(frame))
        if inner is None:
            inner = site
        package = owner.partition(".")[0]
        if package.lstrip("_") != root.lstrip("_") and package not in ("os", "_collections_abc"):
            _report("setter", name, value, site)
            return
        if frame.f_code.co_name == "<module>":
            break  # the package's own import did it
        frame = frame.f_back
    _report("setter", name, value, inner or Site())


def _executing(frame):
    while frame is not None:
        if frame.f_code.co_name == "<module>":
            return frame.f_globals.get("__name__")
        frame = frame.f_back
    return None


def _trace(frame, _event, _):
    """The global trace function: `call` events. Returns the local one for frames to be watched line by line."""
    if frame.f_code.co_name == "<module>":
        if frame.f_globals.get("__name__") in _state["modules"]:
            _state["depth"] += 1
            _look(_state["last"] or Site())
            return _lines
        if _state["depth"] and not _state["inner"]:
            # A body that is not asked about: everything below it is somebody else's, and may be thousands of calls.
            _state["inner"] = True
            frame.f_trace_lines = False
            return _inner
        return None
    return _lines if _state["depth"] and not _state["inner"] and _watched(frame) else None


def _inner(_frame, event, _):
    if event == "return":
        _state["inner"] = False
    return _inner


def _watched(frame):
    """False for our own frames and for libraries': how they carry out what they were asked for is not the question."""
    owner = frame.f_globals.get("__name__") or ""
    root = owner.partition(".")[0]
    if owner.startswith(_OWN):
        return False
    return root in _state["roots"] or not (root in _LIBRARIES or root in standard())


def _lines(frame, event, _):
    if event in ("line", "return"):
        if _state["last"] is not None:
            _look(_state["last"])
        if event == "line":
            _state["last"] = Site(frame.f_code.co_filename, frame.f_lineno, _executing(frame))
        elif frame.f_code.co_name == "<module>":
            _state["depth"] -= 1
            _state["last"] = None
        else:
            back = frame.f_back
            while back is not None and not _watched(back):
                back = back.f_back
            _state["last"] = Site(back.f_code.co_filename, back.f_lineno, _executing(back)) if back else None
    return _lines

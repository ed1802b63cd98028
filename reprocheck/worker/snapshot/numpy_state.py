"""numpy's settings: which kernels it dispatches to, how it treats errors, and its legacy generator's state.

`numpy.random` is read only where somebody loaded it: numpy 2.4 loads it lazily.
"""

import sys

from .. import digest
from .torch_state import attempt, find

__all__ = ["name", "phases", "read"]

name = "numpy"
phases = ("t1", "t2", "t3")


def read():
    """Every key, or nothing while numpy is not loaded."""
    numpy = sys.modules.get("numpy")
    if numpy is None or "ndarray" not in vars(numpy):
        return {}
    core = sys.modules.get("numpy._core") or sys.modules.get("numpy.core")
    umath = find(core, "_multiarray_umath") if core else None
    multiarray = find(core, "multiarray") if core else None
    found = {"version": vars(numpy).get("__version__", "absent")}
    for state, value in attempt_items(find(numpy, "geterr")).items():
        found["errstate." + state] = value
    found["errcall"] = attempt(lambda: repr(numpy.geterrcall()) if numpy.geterrcall() else None)
    found["print_options"] = attempt_items(find(numpy, "get_printoptions"))
    found["buffer_size"] = attempt(find(numpy, "getbufsize"))
    features = find(umath, "__cpu_features__") if umath else None
    if features:
        found["cpu.enabled"] = sorted(feature for feature, on in features.items() if on)
        found["cpu.baseline"] = list(find(umath, "__cpu_baseline__") or ())
        found["cpu.dispatch"] = list(find(umath, "__cpu_dispatch__") or ())
    if multiarray is not None:
        found["alloc.handler"] = attempt(find(multiarray, "get_handler_name"))
        found["alloc.madvise_hugepage"] = attempt(find(multiarray, "_get_madvise_hugepage"))
    found["promotion"] = attempt(find(multiarray or numpy, "_get_promotion_state"))
    found["rng"] = _legacy_state()
    return found


def attempt_items(function):
    """A getter that returns a dict, as plain data; empty where it is missing or raises."""
    if function is None:
        return {}
    try:
        return {
            str(key): value if isinstance(value, (bool, int, float, str)) else repr(value)
            for key, value in function().items()
        }
    except Exception as error:
        return {"error": "%s: %s" % (type(error).__name__, error)}


def _legacy_state():
    """Digest of the generator behind `numpy.random.rand` and `numpy.random.seed`."""
    random = sys.modules.get("numpy.random")
    get_state = vars(random).get("get_state") if random is not None else None
    if get_state is None:
        return "not loaded"
    try:
        state = get_state(legacy=False)
        inner = state["state"]
        words = inner["key"].tobytes() if "key" in inner else repr(sorted(inner.items())).encode()
        rest = (state.get("bit_generator"), inner.get("pos"), state.get("has_gauss"), state.get("gauss"))
        return digest.data(words + repr(rest).encode())
    except Exception as error:
        return {"error": "%s: %s" % (type(error).__name__, error)}

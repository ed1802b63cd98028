"""cupy's settings, as far as reading them touches no device and freezes nothing (the rest is in `cupy_late`)."""

import sys

from . import process
from .torch_state import attempt, find

__all__ = ["name", "phases", "read"]

name = "cupy"
phases = ("t1", "t2", "t3")


def read():
    """Every key, or nothing while cupy is not loaded."""
    cupy = sys.modules.get("cupy")
    if cupy is None or "ndarray" not in vars(cupy):
        return {}
    core = sys.modules.get("cupy._core")
    found = {
        "version": vars(cupy).get("__version__", "absent"),
        "accelerator.routine": _call(core, "get_routine_accelerators"),
        "accelerator.reduction": _call(core, "get_reduction_accelerators"),
        "alloc.allocator": _allocator(cupy),
        "runtime.static_version": attempt(find(cupy, "cuda.runtime.runtimeGetVersion")),
        "per_thread_stream": _per_thread_stream(),
        "rng": _generators(),
        "preload": _preload(),
    }
    config = sys.modules.get("cupy.fft.config")
    if config is not None:
        found["fft.nd_planning"] = attempt(lambda: config.enable_nd_planning)
        found["fft.multi_gpu"] = attempt(lambda: config.use_multi_gpus)
    return found


def _call(module, function):
    return "absent" if module is None else attempt(vars(module).get(function))


def _attribute(module, attribute):
    owner = sys.modules.get(module)
    return None if owner is None else vars(owner).get(attribute)


def _allocator(cupy):
    """Who serves device memory: `MemoryPool`, `MemoryAsyncPool`, `malloc_managed`, or somebody else's function."""
    get = find(cupy, "cuda.get_allocator")
    if get is None:
        return "absent"
    try:
        allocator = get()
    except Exception as error:
        return {"error": "%s: %s" % (type(error).__name__, error)}
    owner = getattr(allocator, "__self__", None)
    if owner is not None and not isinstance(owner, type(sys)):
        return process.origin(type(owner)) + "." + getattr(allocator, "__name__", "?")
    return process.origin(allocator)


def _per_thread_stream():
    stream = sys.modules.get("cupy_backends.cuda.stream")
    return "absent" if stream is None else attempt(vars(stream).get("is_ptds_enabled", None))


def _generators():
    """Devices that have a generator already; `get_random_state` would make one."""
    states = _attribute("cupy.random._generator", "_random_states")
    return "not loaded" if states is None else sorted(str(device) for device in states)


def _preload():
    """Which CUDA libraries cupy loaded at import, and where it says it found them."""
    libraries = _attribute("cupy._environment", "_preload_libs")
    if libraries is None:
        return "absent"
    return {
        str(one): [str(part) for part in value] if isinstance(value, (list, tuple)) else str(value)
        for one, value in libraries.items()
    }

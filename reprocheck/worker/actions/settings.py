"""Settings of torch, cupy, numpy and the interpreter, by key, through their own setters."""

import os
import sys

from .. import sampling
from . import NotYet

__all__ = ["set"]


def set(action, _):  # noqa: A001 - the verb's name
    """Give the setting `key` (`torch.mode.default_dtype`, as in a snapshot) the value `value`."""
    key, value = action["key"], action["value"]
    kind, _, rest = key.partition(".")
    module = _MODULES.get(key, "_locale" if key.startswith("process.locale.") else None)
    if module is not None:
        __import__(module)
    if kind != "process" and kind not in sys.modules:
        raise NotYet("%s is not loaded" % kind)
    was = _look(key)
    if was != value:
        _KINDS[kind](rest, value)
    now = _look(key)
    return {"was": was, "now": now, "ok": now == (_cpus(value) if rest == "affinity" else value)}


# Snapshots show these only where somebody loaded the module.
_MODULES = {
    "process.gc.enabled": "gc",
    "process.gc.threshold": "gc",
    "process.start_method": "multiprocessing.context",
    "process.warnings.filters": "warnings",
}


def _look(key):
    """The key's value as a snapshot would have it, inside of nested values, too."""
    value = sampling.Sampler([key]).read()[key]
    if value == "absent":
        head, _, tail = key.rpartition(".")
        whole = sampling.Sampler([head]).read()[head] if "." in head else None
        value = whole.get(tail, "absent") if isinstance(whole, dict) else value
    return value


def _torch(key, value):
    torch = sys.modules["torch"]
    exact = _TORCH.get(key)
    if exact is not None:
        exact(torch, value)
        return
    head, _, tail = key.partition(".")
    if head == "fp32" and not tail.startswith("legacy."):
        torch._C._set_fp32_precision_setter(*tail.split("."), value)
    elif head in ("inductor", "dynamo"):
        _configuration("torch._%s.config" % head, tail, value)
    else:
        _mirror(torch, key, value)


def _mirror(torch, key, value):
    """Most getters `_get_…` have a setter `_set_…` beside them."""
    path = sampling._reader("torch_state").CALLS.get(key, "")
    if not path.startswith("_C._get_"):
        raise LookupError("there is no setter for torch.%s" % key)
    setter = getattr(torch._C, "_set_" + path[8:], None)
    if setter is None:
        raise LookupError("this torch has no setter for torch.%s" % key)
    if isinstance(value, list):
        try:
            setter(*value)
        except TypeError:
            setter(value)
        return
    setter(value)


def _sdp(name):
    return lambda torch, value: getattr(torch._C, "_set_sdp_use_" + name)(value)


def _deterministic(torch, algorithms, warn_only):
    torch.use_deterministic_algorithms(algorithms, warn_only=warn_only)


def _dtype(torch, text):
    return getattr(torch, text.rpartition(".")[2])


def _backend(kind):
    """Backends are enumerations, shown as `_BlasBackend.Cublas`."""

    def change(torch, value):
        family, _, member = value.partition(".")
        getattr(torch._C, "_set_%s_preferred_backend" % kind)(getattr(getattr(torch._C, family), member))

    return change


_TORCH = {
    "threads.intra": lambda torch, value: torch.set_num_threads(value),
    "threads.inter": lambda torch, value: torch.set_num_interop_threads(value),
    "deterministic.algorithms": lambda torch, value: _deterministic(
        torch, value, torch.is_deterministic_algorithms_warn_only_enabled()
    ),
    "deterministic.warn_only": lambda torch, value: _deterministic(
        torch, torch.are_deterministic_algorithms_enabled(), value
    ),
    "sdp.flash": _sdp("flash"),
    "sdp.mem_efficient": _sdp("mem_efficient"),
    "sdp.math": _sdp("math"),
    "sdp.cudnn": _sdp("cudnn"),
    "sdp.fa3": _sdp("fa3"),
    "sdp.overrideable": _sdp("overrideable"),
    "backend.blas": _backend("blas"),
    "backend.linalg": _backend("linalg"),
    "backend.opt_einsum": lambda torch, value: setattr(torch.backends.opt_einsum, "enabled", value),
    "backend.opt_einsum_strategy": lambda torch, value: setattr(torch.backends.opt_einsum, "strategy", value),
    "cudnn.benchmark_limit": lambda torch, value: torch._C._cuda_set_cudnn_benchmark_limit(value),
    "cuda.sync_debug": lambda torch, value: torch._C._cuda_set_sync_debug_mode(value),
    "mode.default_dtype": lambda torch, value: torch.set_default_dtype(_dtype(torch, value)),
    "mode.default_device": lambda torch, value: torch.set_default_device(value),
    "mode.grad": lambda torch, value: torch._C._set_grad_enabled(value),
    "mode.anomaly": lambda torch, value: torch.set_anomaly_enabled(value),
    "mode.autocast_cache": lambda torch, value: torch.set_autocast_cache_enabled(value),
    "mode.autocast.cpu": lambda torch, value: torch.set_autocast_enabled("cpu", value),
    "mode.autocast.cuda": lambda torch, value: torch.set_autocast_enabled("cuda", value),
    "mode.autocast_dtype.cpu": lambda torch, value: torch.set_autocast_dtype("cpu", _dtype(torch, value)),
    "mode.autocast_dtype.cuda": lambda torch, value: torch.set_autocast_dtype("cuda", _dtype(torch, value)),
    "mode.multithreaded_backward": lambda torch, value: torch._C._set_multithreading_enabled(value),
    "multiprocessing.sharing": lambda torch, value: torch.multiprocessing.set_sharing_strategy(value),
}


def _configuration(module, path, value):
    owner = sys.modules[module]
    *heads, last = path.split(".")
    for part in heads:
        owner = getattr(owner, part)
    setattr(owner, last, value)


def _cupy(key, value):
    cupy = sys.modules["cupy"]
    if key == "accelerator.routine":
        cupy._core.set_routine_accelerators(value)
    elif key == "accelerator.reduction":
        cupy._core.set_reduction_accelerators(value)
    elif key == "alloc.allocator":
        if not value.endswith("MemoryPool.malloc"):
            raise LookupError("there is no way to make the allocator %s" % value)
        cupy.cuda.set_allocator(cupy.get_default_memory_pool().malloc)
    elif key == "fft.nd_planning":
        cupy.fft.config.enable_nd_planning = value
    elif key == "fft.multi_gpu":
        cupy.fft.config.use_multi_gpus = value
    else:
        raise LookupError("there is no setter for cupy.%s" % key)


def _numpy(key, value):
    numpy = sys.modules["numpy"]
    head, _, tail = key.partition(".")
    if head == "errstate":
        numpy.seterr(**{tail: value})
    elif head == "print_options":
        numpy.set_printoptions(**{tail: value})
    elif head == "buffer_size":
        numpy.setbufsize(value)
    elif key == "alloc.madvise_hugepage":
        numpy._core.multiarray._set_madvise_hugepage(value)
    else:
        raise LookupError("there is no setter for numpy.%s" % key)


def _process(key, value):
    if key.startswith("locale."):
        locale = sys.modules["_locale"]
        locale.setlocale(getattr(locale, "LC_" + key[7:].upper()), value)
        return
    setter = _PROCESS.get(key)
    if setter is None:
        raise LookupError("there is no setter for process.%s" % key)
    setter(value)


def _cpus(value):
    """Numbers as the kernel writes them (`0-3,8`), or a list."""
    if not isinstance(value, str):
        return value
    found = []
    for part in value.split(","):
        low, _, high = part.partition("-")
        found += range(int(low), int(high or low) + 1)
    return found


def _filters(value):
    warnings = sys.modules["warnings"]
    found = []
    for text in value:
        action, _, rest = text.partition(":")
        rest, _, line = rest.rpartition(":")
        rest, _, module = rest.rpartition(":")
        message, _, category = rest.rpartition(":")
        owner, _, name = category.rpartition(".")
        compiled = [
            __import__("re").compile(part, flags) if part else None for part, flags in ((message, 2), (module, 0))
        ]
        found.append((action, compiled[0], getattr(sys.modules[owner], name), compiled[1], int(line)))
    warnings.filters[:] = found
    warnings._filters_mutated() if hasattr(warnings, "_filters_mutated") else warnings._filters_mutated_lock_held()


_PROCESS = {
    "affinity": lambda value: os.sched_setaffinity(0, _cpus(value)),
    "cwd": os.chdir,
    "dlopen_flags": sys.setdlopenflags,
    "gc.enabled": lambda value: getattr(__import__("gc"), "enable" if value else "disable")(),
    "gc.threshold": lambda value: __import__("gc").set_threshold(*value),
    "int_max_str_digits": getattr(sys, "set_int_max_str_digits", None),  # since 3.11
    "nice": lambda value: os.setpriority(os.PRIO_PROCESS, 0, value),
    "path": lambda value: sys.path.__setitem__(slice(None), value),
    "recursion_limit": sys.setrecursionlimit,
    "start_method": lambda value: __import__("multiprocessing").set_start_method(value, force=True),
    "switch_interval": sys.setswitchinterval,
    "umask": lambda value: os.umask(int(value, 8)),
    "warnings.filters": _filters,
}

_KINDS = {"torch": _torch, "cupy": _cupy, "numpy": _numpy, "process": _process}

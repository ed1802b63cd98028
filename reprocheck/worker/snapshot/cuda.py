"""CUDA's libraries, each mapped copy asked for its version; and whether a context exists, without making one.

All of these answer without a device, load nothing and set nothing. cuDNN is not among them: its version getter maps
more libraries (see `torch_late`). `cublasGetProperty` reports the version of the cublasLt that copy is bound to.
"""

from .. import elf, families, native
from .objects import exports, tidy

__all__ = ["name", "phases", "read"]

name = "cuda"
phases = ("t2", "t3")

_PROPERTY = {"cublas": "cublasGetProperty", "cusparse": "cusparseGetProperty"}
_BY_POINTER = {
    "cudart": "cudaRuntimeGetVersion",
    "curand": "curandGetVersion",
    "cufft": "cufftGetVersion",
    "cusolver": "cusolverGetVersion",
    "nccl": "ncclGetVersion",
    "cupti": "cuptiGetVersion",
    "cuda-driver": "cuDriverGetVersion",
}
_BY_TWO = {"nvrtc": "nvrtcVersion", "nvjitlink": "nvJitLinkVersion"}
_BY_VALUE = {"cublaslt": "cublasLtGetVersion", "cutensor": "cutensorGetVersion"}


def read():
    """`version.FAMILY` -> {path of the copy: version}; `context.X` where the driver is mapped."""
    found = {}
    with elf.Memory() as memory:
        for one in elf.objects(memory):
            kinds = {families.PROVES[symbol] for symbol in exports(memory, one)}
            for kind in sorted(kinds):
                version = _version(memory, one, kind)
                if version is not None:
                    found.setdefault("version." + kind, {})[tidy(one.path)] = version
            if "cuda-driver" in kinds:
                found.update(_context(memory, one))
    return found


def _version(memory, one, kind):
    import ctypes

    if kind in _PROPERTY:
        call = native.function(memory, one, _PROPERTY[kind], ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.c_int))
        return None if call is None else ".".join(str(_out(call, part)) for part in range(3))
    if kind in _BY_POINTER:
        call = native.function(memory, one, _BY_POINTER[kind], ctypes.c_int, ctypes.POINTER(ctypes.c_int))
        return None if call is None else _out(call)
    if kind in _BY_VALUE:
        call = native.function(memory, one, _BY_VALUE[kind], ctypes.c_size_t)
        return None if call is None else call()
    if kind in _BY_TWO:
        pointer = ctypes.POINTER(ctypes.c_int)
        call = native.function(memory, one, _BY_TWO[kind], ctypes.c_int, pointer, pointer)
        if call is not None:
            major, minor = ctypes.c_int(-1), ctypes.c_int(-1)
            call(ctypes.byref(major), ctypes.byref(minor))
            return "%d.%d" % (major.value, minor.value)
    return None


def _out(call, *arguments):
    """What `call(…, &value)` stores; a failing call is told by its code."""
    import ctypes

    value = ctypes.c_int(-1)
    code = call(*arguments, ctypes.byref(value))
    return value.value if code == 0 else {"error": "code %d" % code}


def _context(memory, one):
    """The primary context of each device: `cuDevicePrimaryCtxGetState` makes none. Code 3: `cuInit` never ran."""
    import ctypes

    pointer = ctypes.POINTER(ctypes.c_int)
    count = native.function(memory, one, "cuDeviceGetCount", ctypes.c_int, pointer)
    state = native.function(memory, one, "cuDevicePrimaryCtxGetState", ctypes.c_int, ctypes.c_int, pointer, pointer)
    if count is None or state is None:
        return {}
    devices = _out(count)
    if not isinstance(devices, int):
        return {"context": "not initialised" if devices == {"error": "code 3"} else devices}
    found = {"context.devices": devices}
    for device in range(min(devices, 16)):
        flags, active = ctypes.c_int(), ctypes.c_int()
        code = state(device, ctypes.byref(flags), ctypes.byref(active))
        found["context.%d" % device] = (
            {"active": active.value, "flags": flags.value} if code == 0 else {"error": "code %d" % code}
        )
    loading = native.function(memory, one, "cuModuleGetLoadingMode", ctypes.c_int, pointer)
    if loading is not None:
        found["context.module_loading"] = _out(loading)
    return found

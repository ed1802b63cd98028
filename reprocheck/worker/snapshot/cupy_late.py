"""cupy's settings whose getter freezes `CUPY_TF32`, or needs a device."""

import sys

from .. import elf, native
from .objects import exports
from .torch_state import attempt, find

__all__ = ["name", "phases", "read"]

name = "cupy"
phases = ("t3",)

_DTYPES = "efdFD"
_MODES = {
    "math_mode": "cublasGetMathMode",
    "atomics_mode": "cublasGetAtomicsMode",
    "pointer_mode": "cublasGetPointerMode_v2",
}
_MODES["sm_target"] = "cublasGetSmCountTarget"


def read():
    """Compute types; with a device the pools' sizes, the current stream, plan cache and modes of the cuBLAS handle."""
    cupy = sys.modules.get("cupy")
    if cupy is None or "ndarray" not in vars(cupy):
        return {}
    found = {}
    linalg = sys.modules.get("cupy._core._routines_linalg")
    if linalg is not None:
        for dtype in _DTYPES:
            found["compute_type." + dtype] = attempt(_compute_type, linalg, dtype)
    devices = attempt(find(cupy, "cuda.runtime.getDeviceCount"))
    found["devices"] = devices if isinstance(devices, int) else 0
    if not found["devices"]:
        return found
    pool = find(cupy, "get_default_memory_pool")
    for field in ("used_bytes", "total_bytes", "free_bytes", "n_free_blocks", "get_limit"):
        found["pool." + field.replace("get_", "")] = attempt(lambda field=field: getattr(pool(), field)())
    pinned = find(cupy, "get_default_pinned_memory_pool")
    found["pool.pinned_free_blocks"] = attempt(lambda: pinned().n_free_blocks())
    found["stream.is_default"] = attempt(lambda: cupy.cuda.get_current_stream().ptr == 0)
    found["driver"] = attempt(find(cupy, "cuda.runtime.driverGetVersion"))
    found["fft.plan_cache_size"] = attempt(lambda: cupy.fft.config.get_plan_cache().get_curr_size())
    found.update(_handle(sys.modules.get("cupy.cuda.device")))
    return found


def _compute_type(linalg, dtype):
    return linalg.compute_type_to_str(linalg.get_compute_type(dtype))


def _handle(device):
    """Modes of cupy's cuBLAS handle, if it has one: making one would start a context for nothing."""
    handles = None if device is None else getattr(vars(device).get("_thread_local"), "_cublas_handles", None)
    if not handles:
        return {"cublas": "no handle"}
    import ctypes

    found = {}
    handle = ctypes.c_void_p(next(iter(handles.values())))
    with elf.Memory() as memory:
        for one in elf.objects(memory):
            if "cublasCreate_v2" not in exports(memory, one):
                continue
            for key, symbol in _MODES.items():
                pointer = ctypes.POINTER(ctypes.c_int)
                call = native.function(memory, one, symbol, ctypes.c_int, ctypes.c_void_p, pointer)
                if call is not None:
                    value = ctypes.c_int(-1)
                    code = call(handle, ctypes.byref(value))
                    found["cublas." + key] = value.value if code == 0 else {"error": "code %d" % code}
            break
    return found

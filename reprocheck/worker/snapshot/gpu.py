"""The GPUs as the driver's management library (NVML) tells of them, after the outputs are saved.

Asked only where the process has CUDA's driver mapped already: NVML is another library, which nobody may find loaded
that did not ask for it, so this is the last thing that is done. Functions and constants are those of `nvml.h`
(https://docs.nvidia.com/deploy/nvml-api/).
"""

import os

from .. import elf, families
from .objects import exports

__all__ = ["library", "name", "phases", "read"]

name = "gpu"
phases = ("t3",)

library = "libnvidia-ml.so.1"
_TEXT = 96
_OFF_ON = {0: "off", 1: "on"}
_COMPUTE_MODES = {0: "default", 1: "exclusive thread", 2: "prohibited", 3: "exclusive process"}
# key -> (function, what its number means)
_NUMBERS = {
    "compute_mode": ("nvmlDeviceGetComputeMode", _COMPUTE_MODES),
    "persistence": ("nvmlDeviceGetPersistenceMode", _OFF_ON),
    "power_limit_mw": ("nvmlDeviceGetEnforcedPowerLimit", None),
}
# key -> function of two numbers, of which the first is what holds now
_PAIRS = {"ecc": "nvmlDeviceGetEccMode", "mig": "nvmlDeviceGetMigMode"}


def read():
    """`driver`, `count`, and of each device its name, capability and modes; empty without CUDA's driver."""
    with elf.Memory() as memory:
        mapped = any(
            families.PROVES[symbol] == "cuda-driver" for one in elf.objects(memory) for symbol in exports(memory, one)
        )
    return ask() if mapped else {}


def ask(path=None):
    """The same, of the library at `path`, whoever is mapped."""
    import ctypes

    try:
        nvml = ctypes.CDLL(path or library, mode=os.RTLD_LOCAL)
    except OSError as error:
        return {"status": {"error": str(error)[:200]}}
    code = nvml.nvmlInit_v2()
    if code != 0:
        return {"status": {"error": "nvmlInit: code %d" % code}}
    try:
        return _devices(ctypes, nvml)
    finally:
        nvml.nvmlShutdown()


def _devices(ctypes, nvml):
    found = {"driver": _text(ctypes, nvml.nvmlSystemGetDriverVersion)}
    count = _number(ctypes, nvml.nvmlDeviceGetCount_v2)
    found["count"] = count
    for index in range(count if isinstance(count, int) else 0):
        device = ctypes.c_void_p()
        code = nvml.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(index), ctypes.byref(device))
        prefix = "%d." % index
        if code != 0:
            found[prefix + "name"] = {"error": "code %d" % code}
            continue
        found[prefix + "name"] = _text(ctypes, nvml.nvmlDeviceGetName, device)
        found[prefix + "capability"] = _pair(ctypes, nvml, "nvmlDeviceGetCudaComputeCapability", device, both=True)
        for key, (function, meaning) in _NUMBERS.items():
            value = _number(ctypes, getattr(nvml, function, None), device)
            found[prefix + key] = meaning.get(value, value) if meaning and isinstance(value, int) else value
        for key, function in _PAIRS.items():
            value = _pair(ctypes, nvml, function, device)
            found[prefix + key] = _OFF_ON.get(value, value) if isinstance(value, int) else value
    return found


def _text(ctypes, call, *arguments):
    buffer = ctypes.create_string_buffer(_TEXT)
    code = call(*arguments, buffer, ctypes.c_uint(_TEXT))
    return buffer.value.decode("utf-8", "replace") if code == 0 else {"error": "code %d" % code}


def _number(ctypes, call, *arguments):
    if call is None:
        return "absent"
    value = ctypes.c_uint()
    code = call(*arguments, ctypes.byref(value))
    return value.value if code == 0 else {"error": "code %d" % code}


def _pair(ctypes, nvml, function, device, both=False):
    call = getattr(nvml, function, None)
    if call is None:
        return "absent"
    first, second = ctypes.c_int(), ctypes.c_int()
    code = call(device, ctypes.byref(first), ctypes.byref(second))
    if code != 0:
        # 3: this device has no such mode.
        return "not supported" if code == 3 else {"error": "code %d" % code}
    return "%d.%d" % (first.value, second.value) if both else first.value

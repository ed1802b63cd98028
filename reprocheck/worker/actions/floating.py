"""The floating-point control register: flush-to-zero, denormals-are-zero, rounding; here or in OpenMP's threads.

Set through the C library's `fegetenv` and `fesetenv`. Layouts: glibc's sysdeps/x86_64/fpu/bits/fenv.h (x87 control word
at 0, MXCSR at 28) and aarch64's (FPCR at 0).
"""

import ctypes
import posix

from .. import elf, families, native
from ..snapshot.fp_control import control, reader
from ..snapshot.openmp import runtimes

__all__ = ["fp"]

_X86 = {"nearest": 0, "down": 1, "up": 2, "zero": 3}
_ARM = {"nearest": 0, "up": 1, "down": 2, "zero": 3}


def fp(action, _):
    """Change `ftz`, `daz` and `rounding` as far as given, here or (`where` = `workers`) in OpenMP's other threads."""
    wanted = {key: action[key] for key in ("ftz", "daz", "rounding") if action.get(key) is not None}
    with elf.Memory() as memory:
        get, set_ = reader(memory), _writer(memory)
        if action.get("where") == "workers":
            return _workers(memory, get, set_, wanted)
        before = control(get)
        _change(get, set_, wanted)
        return _told(before, control(get), wanted)


def _told(before, after, wanted):
    return {
        "was": before["control"],
        "now": after["control"],
        "ok": all(after["control." + key] == value for key, value in wanted.items() if "control." + key in after),
    }


def _writer(memory):
    for one in sorted(elf.objects(memory), key=lambda one: not families.stem(one.path).startswith("libm")):
        call = native.function(memory, one, "fesetenv", ctypes.c_int, ctypes.c_void_p)
        if call is not None:
            return call
    raise elf.ElfError("no loaded object has fesetenv")


def _change(get, set_, wanted):
    buffer = ctypes.create_string_buffer(64)
    get(buffer)
    data = bytearray(buffer.raw)
    machine = posix.uname().machine
    if machine == "x86_64":
        mxcsr = int.from_bytes(data[28:32], "little")
        x87 = int.from_bytes(data[0:2], "little")
        for key, bit in (("ftz", 0x8000), ("daz", 0x40)):
            if key in wanted:
                mxcsr = mxcsr | bit if wanted[key] else mxcsr & ~bit
        if "rounding" in wanted:
            mode = _X86[wanted["rounding"]]
            mxcsr = mxcsr & ~0x6000 | mode << 13
            x87 = x87 & ~0x0C00 | mode << 10
        data[28:32] = mxcsr.to_bytes(4, "little")
        data[0:2] = x87.to_bytes(2, "little")
    elif machine == "aarch64":
        fpcr = int.from_bytes(data[0:4], "little")
        if "ftz" in wanted or "daz" in wanted:
            on = wanted.get("ftz", wanted.get("daz"))
            fpcr = fpcr | 1 << 24 if on else fpcr & ~(1 << 24)
        if "rounding" in wanted:
            fpcr = fpcr & ~(3 << 22) | _ARM[wanted["rounding"]] << 22
        data[0:4] = fpcr.to_bytes(4, "little")
    else:
        raise NotImplementedError("no layout known for %s" % machine)
    set_(ctypes.create_string_buffer(bytes(data), 64))


def _workers(memory, get, set_, wanted):
    """In every thread but the calling one, of every OpenMP runtime that is loaded; this starts their pools."""
    done = {}
    for runtime in runtimes(memory, elf.objects(memory)):
        number = native.function(memory, runtime, "omp_get_thread_num", ctypes.c_int)
        parallel = native.function(
            *(memory, runtime, "GOMP_parallel", None),
            *(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint),
        )
        if number is None or parallel is None:
            continue
        seen = []
        callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_task(number, get, set_, wanted, seen))
        parallel(ctypes.cast(callback, ctypes.c_void_p), None, 0, 0)
        done[families.stem(runtime.path)] = sorted(seen)
    if not done:
        raise LookupError("no OpenMP runtime is loaded")
    return {"now": done}


def _task(number, get, set_, wanted, seen):
    def task(_):
        if number():
            _change(get, set_, wanted)
            seen.append(control(get)["control"])

    return task

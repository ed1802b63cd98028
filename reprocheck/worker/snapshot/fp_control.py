"""The floating-point control register of this thread, exactly: MXCSR and the x87 control word, or FPCR.

Read by the C library's `fegetenv` into a buffer; nothing is changed. Sticky exception flags are left out: they tell
what was computed, not how. Layout: glibc's sysdeps/x86_64/fpu/bits/fenv.h (MXCSR at 28) and aarch64's (FPCR first).
"""

import posix

from .. import elf, families, native

__all__ = ["control", "name", "phases", "read", "reader"]

name = "fp"
phases = ("t2", "t3")

_STICKY = 0x3F


def read():
    """`control` of the main thread, and what its bits mean."""
    with elf.Memory() as memory:
        return control(reader(memory))


def reader(memory):
    """A callable that fills a buffer with this thread's environment: the C library's `fegetenv`.

    Raises `elf.ElfError` when no loaded object has it.
    """
    import ctypes

    # libm usually; musl has it in its only library.
    for one in sorted(elf.objects(memory), key=lambda one: not families.stem(one.path).startswith("libm")):
        call = native.function(memory, one, "fegetenv", ctypes.c_int, ctypes.c_void_p)
        if call is not None:
            return call
    raise elf.ElfError("no loaded object has fegetenv")


def control(fegetenv):
    """The calling thread's control bits, as a dict of plain values."""
    import ctypes

    buffer = ctypes.create_string_buffer(64)
    fegetenv(buffer)
    data = buffer.raw
    machine = posix.uname().machine
    if machine == "x86_64":
        mxcsr = int.from_bytes(data[28:32], "little") & ~_STICKY
        x87 = int.from_bytes(data[0:2], "little")
        return {
            "control": "0x%04x" % mxcsr,
            "x87_control": "0x%04x" % x87,
            "control.ftz": bool(mxcsr & 0x8000),
            "control.daz": bool(mxcsr & 0x40),
            "control.rounding": ("nearest", "down", "up", "zero")[mxcsr >> 13 & 3],
            "control.unmasked": "0x%02x" % (~mxcsr >> 7 & 0x3F),
        }
    if machine == "aarch64":
        fpcr = int.from_bytes(data[0:4], "little")
        return {
            "control": "0x%08x" % fpcr,
            "control.ftz": bool(fpcr & 1 << 24),
            "control.daz": bool(fpcr & 1 << 24 or fpcr & 1),
            "control.ftz16": bool(fpcr & 1 << 19),
            "control.rounding": ("nearest", "up", "down", "zero")[fpcr >> 22 & 3],
            "control.unmasked": "0x%02x" % (fpcr >> 8 & 0x9F),
        }
    return {"control": {"error": "NotImplementedError: no layout known for %s" % machine}}

"""The machine, as far as it can change a result: CPU, C library, kernel settings, limits of the container."""

import os

from .. import digest, elf
from . import process

__all__ = ["name", "phases", "read"]

name = "host"
phases = ("t3",)

_FILES = {
    "thp.enabled": "/sys/kernel/mm/transparent_hugepage/enabled",
    "aslr": "/proc/sys/kernel/randomize_va_space",
    "governor": "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
    "cgroup.cpu_max": "/sys/fs/cgroup/cpu.max",
    "cgroup.cpuset": "/sys/fs/cgroup/cpuset.cpus.effective",
    "cgroup.memory_max": "/sys/fs/cgroup/memory.max",
    "ld_so_preload": "/etc/ld.so.preload",
}
# Functions of which glibc has variants for several CPUs, chosen when the process starts (GLIBC_TUNABLES can).
_VARIANTS = ("expf", "logf", "powf", "sinf", "cosf", "sin", "cos", "tan", "exp2f", "fma")


def read():
    """Facts about the machine and the kernel; absent files are `absent`."""
    system = os.uname()
    found = {"machine": system.machine, "kernel": system.release, "cpus": os.cpu_count()}
    found.update(_cpu())
    for key, path in _FILES.items():
        try:
            found[key] = _chosen(process.small_file(path).strip())
        except OSError:
            found[key] = "absent"
    for key in ("CS_GNU_LIBC_VERSION", "CS_GNU_LIBPTHREAD_VERSION"):
        try:
            found["libc." + key[3:].lower()] = os.confstr(key)
        except (ValueError, OSError):
            continue
    found.update(_variants())
    return found


def _chosen(text):
    """`madvise` of `always [madvise] never`."""
    inner = text.partition("[")[2].partition("]")[0]
    return inner or text


def _cpu():
    fields = {}
    for line in process.small_file("/proc/cpuinfo").partition("\n\n")[0].splitlines():
        key, _, value = line.partition(":")
        fields[key.strip()] = value.strip()
    flags = fields.get("flags") or fields.get("Features") or ""
    return {
        "cpu.model": fields.get("model name") or fields.get("CPU part") or "unknown",
        "cpu.microcode": fields.get("microcode", "absent"),
        "cpu.flags": digest.short(" ".join(sorted(flags.split()))),
    }


def _variants():
    """Offset of each libm function's chosen variant in the library: equal offsets, equal code."""
    import ctypes

    with elf.Memory() as memory:
        libm = [one for one in elf.objects(memory) if one.path.rpartition("/")[2].startswith("libm.so")]
    if not libm:
        return {}
    library = ctypes.CDLL(libm[0].path, mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
    found = {}
    for symbol in _VARIANTS:
        function = getattr(library, symbol, None)
        if function is not None:
            found["libm." + symbol] = "+%#x" % (ctypes.cast(function, ctypes.c_void_p).value - libm[0].base)
    return found

"""GNU OpenMP runtimes, each copy asked for its settings.

libgomp reads its environment when it is loaded, so that asking changes nothing; LLVM's and Intel's runtimes read theirs
at the first call and are asked in `openmp_late`.
"""

from .. import elf, families, native
from .bindings import labels
from .objects import exports

__all__ = ["name", "phases", "read", "runtimes", "settings"]

name = "openmp"
phases = ("t2", "t3")

_ASK = ("omp_get_max_threads", "omp_get_num_procs", "omp_get_dynamic", "omp_get_max_active_levels", "omp_get_proc_bind")


def read():
    """`FILE.X` for each libgomp: threads, processors, dynamic, levels, proc_bind, schedule."""
    found = {}
    with elf.Memory() as memory:
        loaded = elf.objects(memory)
        short = labels(loaded)
        for one in loaded:
            if "GOMP_parallel" in exports(memory, one) and "__kmpc_fork_call" not in exports(memory, one):
                for key, value in settings(memory, one).items():
                    found[short[one] + "." + key] = value
    return found


def settings(memory, one):
    """The settings of one runtime, by the standard's own getters."""
    import ctypes

    found = {}
    for symbol in _ASK:
        value = native.integer(memory, one, symbol)
        if value is not None:
            found[symbol.partition("get_")[2]] = value
    schedule = native.function(memory, one, "omp_get_schedule", None, ctypes.c_void_p, ctypes.c_void_p)
    if schedule is not None:
        kind, chunk = ctypes.c_int(), ctypes.c_int()
        schedule(ctypes.byref(kind), ctypes.byref(chunk))
        found["schedule"] = "%d,%d" % (kind.value, chunk.value)
    return found


def runtimes(memory, loaded):
    """The loaded objects that are OpenMP runtimes."""
    markers = families.MARKERS["openmp"]
    return [one for one in loaded if any(symbol in markers for symbol in exports(memory, one))]

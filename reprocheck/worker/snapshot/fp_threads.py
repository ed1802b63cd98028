"""The floating-point control register in other threads: a new one, and the workers of each OpenMP runtime in use.

A thread inherits it when it is created. A library that sets flush-to-zero after the pool exists reaches the main
thread only, and half of a tensor is flushed. Asking the workers starts them where they do not exist yet.
"""

import posix

from .. import elf, native
from .bindings import bound, labels
from .fp_control import control, reader
from .openmp import runtimes

__all__ = ["name", "phases", "read"]

name = "fp"
phases = ("t3",)


def read():
    """`new_thread`; for each OpenMP runtime in use `workers.FILE` -> {control: threads}, `workers_started.FILE`."""
    with elf.Memory() as memory:
        fegetenv = reader(memory)
        found = {"new_thread": _new_thread(fegetenv)}
        loaded = elf.objects(memory)
        short = labels(loaded)
        for runtime in _in_use(memory, loaded):
            workers, started = _workers(memory, runtime, fegetenv)
            found["workers." + short[runtime]] = workers
            found["workers_started." + short[runtime]] = started
        return found


def _in_use(memory, loaded):
    """Runtimes somebody computes with: the one libtorch_cpu is bound to; without torch, those that are there."""
    for one in loaded:
        if one.path.endswith("/libtorch_cpu.so"):
            try:
                return bound(memory, one, "openmp")
            except elf.ElfError:
                break
    return runtimes(memory, loaded)


def _new_thread(fegetenv):
    import _thread

    done = _thread.allocate_lock()
    done.acquire()
    seen = []

    def run():
        try:
            seen.append(control(fegetenv)["control"])
        finally:
            done.release()

    _thread.start_new_thread(run, ())
    if not done.acquire(timeout=5):
        return {"error": "TimeoutError: the thread did not answer"}
    return seen[0] if seen else {"error": "RuntimeError: the thread failed"}


def _workers(memory, runtime, fegetenv):
    """Runs a callback in every thread of a parallel region: `GOMP_parallel`, which LLVM's runtime offers as well."""
    import ctypes

    number = native.function(memory, runtime, "omp_get_thread_num", ctypes.c_int)
    parallel = native.function(
        *(memory, runtime, "GOMP_parallel", None),
        *(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint),
    )
    if parallel is None or number is None:
        return {"error": "NotImplementedError: no GOMP_parallel"}, 0
    before = len(posix.listdir("/proc/self/task"))
    seen = []

    def ask(_):
        seen.append((number(), control(fegetenv)["control"]))

    callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(ask)
    parallel(ctypes.cast(callback, ctypes.c_void_p), None, 0, 0)
    counts = {}
    for thread, bits in seen:
        if thread:
            counts[bits] = counts.get(bits, 0) + 1
    return counts, len(posix.listdir("/proc/self/task")) - before

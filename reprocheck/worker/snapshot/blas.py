"""The BLAS libraries that are loaded, each copy asked directly: OpenBLAS, BLIS, and MKL where asking is harmless.

libmkl_rt is left alone here: it loads the rest of MKL, globally, at the first call through it (see `blas_late`).
"""

from .. import elf, families, native
from .bindings import labels
from .objects import exports

__all__ = ["name", "phases", "read"]

name = "blas"
phases = ("t2", "t3")

# numpy's and scipy's wheels carry renamed copies.
_OPENBLAS = (("scipy_openblas_", "64_"), ("scipy_openblas_", ""), ("openblas_", ""), ("openblas_", "64_"))
_LAYERS = ("sequential", "pthreads", "openmp")


def read():
    """`openblas.FILE.X`: version and build, core, threads, threading layer; `mkl.FILE.X`: version, threads."""
    found = {}
    with elf.Memory() as memory:
        loaded = elf.objects(memory)
        short = labels(loaded)
        for one in loaded:
            kinds = {families.PROVES[symbol] for symbol in exports(memory, one)}
            if "openblas" in kinds:
                found.update(_prefixed("openblas." + short[one], _openblas(memory, one)))
            if "mkl" in kinds and not families.stem(one.path).startswith("libmkl_"):
                found.update(_prefixed("mkl." + short[one], mkl(memory, one)))
    return found


def _prefixed(prefix, values):
    return {prefix + "." + key: value for key, value in values.items() if value is not None}


def _openblas(memory, one):
    for head, tail in _OPENBLAS:
        if one.symbol(memory, head + "get_config" + tail) is None:
            continue
        layer = native.integer(memory, one, head + "get_parallel" + tail)
        return {
            "config": native.text(memory, one, head + "get_config" + tail),
            "core": native.text(memory, one, head + "get_corename" + tail),
            "threads": native.integer(memory, one, head + "get_num_threads" + tail),
            "processors": native.integer(memory, one, head + "get_num_procs" + tail),
            "layer": _LAYERS[layer] if layer in (0, 1, 2) else layer,
        }
    return {}


def mkl(memory, one):
    """Version, threads and dynamic adjustment of one MKL. Its thread count was settled when it was loaded."""
    import ctypes

    found = {}
    version = native.function(memory, one, "MKL_Get_Version_String", None, ctypes.c_char_p, ctypes.c_int)
    if version is not None:
        buffer = ctypes.create_string_buffer(256)
        version(buffer, len(buffer))
        found["version"] = buffer.value.decode("utf-8", "replace").strip()
    found["threads"] = native.integer(memory, one, "MKL_Get_Max_Threads")
    found["dynamic"] = native.integer(memory, one, "mkl_serv_get_dynamic")
    return found

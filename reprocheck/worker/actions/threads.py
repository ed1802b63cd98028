"""Thread counts, each by the setter of the library that holds it."""

import ctypes
import sys

from .. import elf, native
from ..snapshot import blas
from ..snapshot.bindings import labels
from . import NotYet

__all__ = ["threads"]


def threads(action, _):
    """Set `count` for `library`: `torch`, `torch.inter`, or `openmp`, `openblas`, `mkl` with `file` as in snapshots."""
    library, count = action["library"], action["count"]
    if library == "torch":
        sys.modules["torch"].set_num_threads(count)
        now = sys.modules["torch"].get_num_threads()
    elif library == "torch.inter":
        torch = sys.modules["torch"]
        if torch.get_num_interop_threads() != count:
            torch.set_num_interop_threads(count)
        now = torch.get_num_interop_threads()
    else:
        with elf.Memory() as memory:
            now = _native(memory, library, action["file"], count)
    return {"now": now, "ok": now == count}


def _native(memory, library, file, count):
    loaded = elf.objects(memory)
    short = labels(loaded)
    one = next((one for one in loaded if short.get(one) == file), None)
    if one is None:
        raise NotYet("%s is not loaded" % file)
    for get, set_ in _pairs(library):
        call = native.function(memory, one, set_, None, ctypes.c_int)
        if call is not None:
            call(count)
            return native.integer(memory, one, get)
    raise LookupError("%s has no setter of its thread count" % file)


def _pairs(library):
    if library == "openmp":
        return [("omp_get_max_threads", "omp_set_num_threads")]
    if library == "mkl":
        return [("MKL_Get_Max_Threads", "MKL_Set_Num_Threads")]
    return [(head + "get_num_threads" + tail, head + "set_num_threads" + tail) for head, tail in blas._OPENBLAS]

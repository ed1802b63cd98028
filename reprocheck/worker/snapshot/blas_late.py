"""What MKL settles at the first question.

That is its reproducibility mode everywhere, and all of libmkl_rt, which loads the rest of MKL into the global scope at
the first call through it.
"""

from .. import elf, families, native
from .bindings import labels
from .blas import mkl
from .objects import exports

__all__ = ["name", "phases", "read"]

name = "blas"
phases = ("t3",)

# mkl_types.h, MKL_CBWR_…; other values are shown as they are.
_CBWR = {1: "off", 2: "auto", 3: "compatible", 4: "sse2", 6: "ssse3", 7: "sse4_1", 8: "sse4_2", 9: "avx", 10: "avx2"}
_CBWR.update({11: "avx512_mic", 12: "avx512", 13: "avx512_mic_e1", 14: "avx512_e1"})
_STRICT = 0x10000


def read():
    """`mkl.FILE.cbwr` for each MKL; version and threads of libmkl_rt."""
    found = {}
    with elf.Memory() as memory:
        loaded = elf.objects(memory)
        short = labels(loaded)
        for one in loaded:
            symbols = exports(memory, one)
            if "MKL_Get_Version_String" not in symbols and "mkl_get_version_string" not in symbols:
                continue
            stem = families.stem(one.path)
            if stem.startswith("libmkl_") and stem != "libmkl_rt":
                continue
            values = mkl(memory, one) if stem == "libmkl_rt" else {}
            values["cbwr"] = _cbwr(memory, one)
            for key, value in values.items():
                if value is not None:
                    found["mkl." + short[one] + "." + key] = value
    return found


def _cbwr(memory, one):
    for symbol in ("mkl_serv_cbwr_get", "MKL_CBWR_Get"):
        code = native.integer(memory, one, symbol, -1)  # MKL_CBWR_ALL
        if code is not None:
            text = _CBWR.get(code & ~_STRICT, str(code & ~_STRICT))
            return text + ",strict" if code > 0 and code & _STRICT else text
    return None

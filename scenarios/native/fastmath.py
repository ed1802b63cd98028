"""Subject of `ftz_pool`: a package that loads a library built with `-ffast-math`."""

import ctypes

from native import compiled

LIBRARY = ctypes.CDLL(str(compiled("fastmath.c", "libfastmath.so")))

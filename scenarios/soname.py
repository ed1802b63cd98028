# /// script
# requires-python = ">=3.11"
# dependencies = ["numpy"]
#
# [tool.reprocheck]
# imports = ["native.alpha", "native.beta"]
# workload = "run"
# expect = "order-dependent"
# story = "Two packages ship a libdot.so.1 each; the loader keeps the first, and both compute with it."
# ///
"""Two libraries with one name.

What it shows: the packages `native.alpha` and `native.beta` each bring a `libdot.so.1` beside the library that needs
it, found by RUNPATH `$ORIGIN`, as wheels do. The loader compares a needed name with the names (SONAME) of what is
loaded before it searches any folder, so the second package gets the first one's copy. One vendor adds up in single
precision, the other in double: the order decides how both compute. This is how `libgomp.so.1`, `libcublas.so.12` and
many others are shared without anybody asking (`lightgbm_openmp`, `cublas_binding`).

What it asserts: both packages return the same bits, so they share one copy; the result is right within the rounding of
single precision.

What to expect: `order-dependent`. What it needs: Linux with glibc, a C compiler, numpy; about a second a trial.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from native import alpha, beta

SIZES = (1_000, 100_003, 4_000_003)


def run() -> dict[str, Any]:
    rng = np.random.default_rng(41)
    outputs: dict[str, Any] = {"alpha": {}, "beta": {}}
    for n in SIZES:
        x, y = rng.random((2, n), dtype=np.float32)
        exact = float(x.astype(np.float64) @ y.astype(np.float64)) / n
        for name, package in (("alpha", alpha), ("beta", beta)):
            value = package.scaled_dot(x.ctypes.data, y.ctypes.data, n)
            assert abs(value - exact) < 1e-2 * exact, f"{name}: {value} instead of {exact}"
            outputs[name][str(n)] = np.float32(value)
        assert outputs["alpha"][str(n)] == outputs["beta"][str(n)], "the packages use two copies of libdot.so.1"
    return outputs

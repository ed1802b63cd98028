# /// script
# requires-python = ">=3.11"
# dependencies = ["torch==2.13.0", "numpy", "mkl==2026.2.0", "mkl-service==2.8.0"]
#
# [tool.reprocheck]
# imports = ["mkl", "torch"]
# workload = "run"
# expect = "order-dependent"
# story = "Importing mkl before torch swaps the BLAS, LAPACK, FFT and OpenMP that torch runs on."
# ///
"""A real import-order dependence, on any x86-64 machine and without a GPU.

What it shows: `mkl` (from `mkl-service`, or through `mkl_fft`) loads `libmkl_rt.so` with `RTLD_GLOBAL`.
torch's CPU build carries an older MKL of its own, statically linked, with its symbols visible. So when `mkl`
comes first, torch's calls to `sgetrf_`, `dsyevd_`, `DftiComputeForward`, … are bound to the newer library, and
its parallel regions run on Intel's OpenMP instead of GNU's. When torch comes first, it is bound to its own
copies at once (Python loads extension modules with `RTLD_NOW`), and the later `import mkl` changes nothing.

What to expect: `order-dependent`. Factorisations (solve, svd, eigh) and the FFT differ on every CPU seen; which
matrix products and vector functions join them depends on the CPU, because both MKLs pick code by processor.
Everything of numpy agrees: its OpenBLAS has names of its own. Identical runs agree bit for bit.

What it needs: x86-64 Linux, torch's CPU build from PyPI's or PyTorch's index, and about 4 seconds a trial.
"""

from __future__ import annotations

import battery


def run() -> dict[str, object]:
    return {"torch": battery.torch_outputs(), "numpy": battery.numpy_outputs()}

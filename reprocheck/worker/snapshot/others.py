"""Threads and switches of other numerical libraries, where somebody loaded them."""

import sys

from .torch_state import attempt, find

__all__ = ["name", "phases", "read"]

name = "others"
phases = ("t3",)

_CALLS = {
    "cv2.threads": ("cv2", "getNumThreads"),
    "cv2.optimized": ("cv2", "useOptimized"),
    "numexpr.threads": ("numexpr", "get_num_threads"),
    "numba.layer": ("numba", "threading_layer"),
    "scipy.fft_workers": ("scipy.fft", "get_workers"),
}
_FIELDS = {
    "numexpr.default_threads": ("numexpr", "nthreads"),
    "numba.threads": ("numba", "config.NUMBA_NUM_THREADS"),
    "numba.threading": ("numba", "config.THREADING_LAYER"),
    "jax.x64": ("jax", "config.jax_enable_x64"),
    "jax.matmul_precision": ("jax", "config.jax_default_matmul_precision"),
}


def read():
    """Only keys of libraries that are loaded."""
    found = {}
    for key, (module, path) in _CALLS.items():
        owner = sys.modules.get(module)
        if owner is not None:
            found[key] = attempt(find(owner, path))
    for key, (module, path) in _FIELDS.items():
        owner = sys.modules.get(module)
        if owner is not None:
            found[key] = attempt(_get, owner, path)
    return found


def _get(owner, path):
    for part in path.split("."):
        owner = getattr(owner, part, "absent")
    return owner

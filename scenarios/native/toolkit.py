"""Subject of `cublas_binding`: a package that loads the CUDA toolkit's cuBLAS by its path, as simulation codes do."""

import ctypes
import os
from pathlib import Path

FOLDERS = ("nvidia/*/lib", "lib", "lib64")  # of the wheel nvidia-cublas, of conda, of a toolkit
VARIABLES = ("SCENARIO_CUDA_TOOLKIT", "CUDA_HOME", "CUDA_PATH")


def _cublas() -> Path:
    """The newest `libcublas.so.N` of the toolkit; RuntimeError, in one sentence, if there is none."""
    named = [os.environ[variable] for variable in VARIABLES if os.environ.get(variable)]
    toolkit = Path([*named, "/usr/local/cuda"][0])
    found = [file for folder in FOLDERS for file in sorted(toolkit.glob(f"{folder}/libcublas.so.[0-9][0-9]"))]
    if not found:
        raise RuntimeError(
            f"There is no lib64/libcublas.so.N in `{toolkit}`: let SCENARIO_CUDA_TOOLKIT name a CUDA toolkit's folder."
        )
    return found[-1]


CUBLAS = _cublas()
ctypes.CDLL(str(CUBLAS))

"""The readers: one small module per kind of state, each with `name`, `phases` and `read()`.

`EARLY` ones are loaded before the first subject, `LATE` ones after the last, `LAST` ones when the outputs are on
disk. A reader never imports the library it reads; several readers may serve one kind, with different keys.
"""

__all__ = ["EARLY", "LAST", "LATE"]

EARLY = ("environ", "libraries", "process", "fp", "modules")
"""Read at t0 and after each subject. Only builtins, `sys`, `posix` and raw `/proc` reads."""

LATE = ("objects", "bindings", "torch_state", "numpy_state", "cupy_state", "fp_control", "openmp", "blas", "patches")
"""Read before the workload and after its outputs; they freeze nothing, load no library and start no thread."""

LAST = ()
"""Read after the outputs only: they freeze an environment variable, load a library, or start threads."""

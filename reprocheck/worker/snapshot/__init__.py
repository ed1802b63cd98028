"""The readers: one small module per kind of state, each with `name`, `phases` and `read()`.

`EARLY` ones are loaded before the first subject, `LATE` ones after the last, `LAST` ones when the outputs are on
disk. A reader never imports the library it reads; several readers may serve one kind, with different keys.
"""

import sys

__all__ = ["EARLY", "LAST", "LATE", "WHEN_LOADED", "quiet"]

EARLY = ("environ", "libraries", "process", "fp", "modules")
"""Read at t0 and after each subject. Only builtins, `sys`, `posix` and raw `/proc` reads."""

WHEN_LOADED = {"torch": "torch_state", "numpy": "numpy_state", "cupy": "cupy_state"}
"""Library -> reader that may run after a subject, too, once the library is there: it says which import changed what."""

LATE = (
    "objects",
    "bindings",
    "torch_state",
    "numpy_state",
    "cupy_state",
    "fp_control",
    "openmp",
    "blas",
    "cuda",
    "patches",
)
"""Read before the workload and after its outputs; they freeze nothing, load no library and start no thread."""

LAST = ("torch_late", "cupy_late", "blas_late", "openmp_late", "fp_threads", "others", "environ_all", "host", "gpu")
"""Read after the outputs only: they freeze an environment variable, load a library, or start threads."""


class quiet:  # noqa: N801 - a context manager, used like a function
    """No garbage is collected while a snapshot is taken: `with snapshot.quiet(): …`.

    A pass over the user's heap would cost more than all readers together, and run the user's finalisers at a moment of
    our choosing.
    """

    active = False
    """True while collection is off because of us, and not by the user's wish."""

    def __enter__(self):
        gc = sys.modules.get("gc")
        self._gc = gc if gc is not None and gc.isenabled() else None
        if self._gc is not None:
            self._gc.disable()
            quiet.active = True
        return self

    def __exit__(self, *_):
        if self._gc is not None:
            self._gc.enable()
            quiet.active = False

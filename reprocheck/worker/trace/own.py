"""Which code is the workload's own, and where in it something happened.

Own is the workload's file and what lies beside or below it (for a module, its package), without the subjects, installed
packages and the standard library: the code its author can change. A toolbox whose import is being permuted is not own.
"""

import os
import sys

__all__ = ["LIBRARY", "OTHER", "OWN", "Own"]

LIBRARY, OWN, OTHER = 0, 1, 2
_LIBRARIES = ("torch", "numpy", "cupy", "cupyx", "cupy_backends", "scipy", "functorch", "triton")


class Own:
    """Sorts code objects, and finds the line of the workload that a frame was called from."""

    def __init__(self, job):
        """`job` as the worker got it; the workload is already loaded."""
        target = job["target"]
        # By address, since hashing a code object costs more than all else here; held, so that none is given away.
        self._kinds = {}
        self._held = []
        self._files = {}
        file, self._roots = target["path"], ()
        if target["kind"] == "module":
            file = getattr(sys.modules[target["module"]], "__file__", None)
            package = sys.modules[target["module"].partition(".")[0]]
            self._roots = tuple(_folder(path) for path in getattr(package, "__path__", ()))
        elif file:
            self._roots = (_folder(os.path.dirname(file)),)
        self._file = file and os.path.abspath(file)
        self._subjects = tuple(path for name in job["subjects"] for path in _places(sys.modules.get(name)))
        self._standard = _folder(os.path.dirname(os.__file__))
        self._worker = _folder(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

    def kind(self, code):
        """OWN, LIBRARY (the array libraries, Python's own), or OTHER: somebody else's code, such as a toolbox."""
        found = self._kinds.get(id(code))
        if found is None:
            self._held.append(code)
            found = self._kinds[id(code)] = self.file_kind(code.co_filename)
        return found

    def file_kind(self, file):
        """The same for everything in a file."""
        found = self._files.get(file)
        if found is None:
            found = self._files[file] = self._sorted(file)
        return found

    def _sorted(self, file):
        if file.startswith("<"):
            return LIBRARY
        if not file.endswith(".py") and file != self._file:
            # Compiled from Cython, under a path that only its builder had.
            return LIBRARY if _package(file) in _LIBRARIES else OTHER
        file = os.path.abspath(file)
        if file == self._file:
            return OWN
        if file.startswith(self._worker) or (file.startswith(self._standard) and "-packages/" not in file):
            return LIBRARY
        if not file.startswith(self._subjects):
            for root in self._roots:
                if file.startswith(root) and not _installed(file[len(root) :]):
                    return OWN
        return LIBRARY if _package(file) in _LIBRARIES else OTHER

    def site(self, frame):
        """`(own code, line, other code, line)`: the innermost of the workload, and of a toolbox it went through."""
        other, other_line = None, 0
        kinds = self._kinds
        while frame is not None:
            code = frame.f_code
            kind = kinds.get(id(code))
            if kind is None:
                kind = self.kind(code)
            if kind == OWN:
                return code, frame.f_lineno, other, other_line
            if kind == OTHER and other is None:
                other, other_line = code, frame.f_lineno
            frame = frame.f_back
        return None, 0, other, other_line


def _folder(path):
    return os.path.abspath(path) + "/"


def _package(file):
    """The top-level package of an installed file."""
    return file.rpartition("-packages/")[2].partition("/")[0].partition(".")[0]


def _places(module):
    """The folders of a package, or the file of a plain module."""
    if hasattr(module, "__path__"):
        return [_folder(path) for path in module.__path__]
    file = getattr(module, "__file__", None)
    return [os.path.abspath(file)] if file else []


def _installed(path):
    """Whether a path below the workload's folder belongs to an environment that is kept there."""
    return "-packages/" in path or path.startswith("lib/python")

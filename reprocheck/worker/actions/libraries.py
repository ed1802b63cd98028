"""Native libraries: loading one before anybody else does, and keeping the others out of the global scope."""

import ctypes
import os
import sys

from .. import elf

__all__ = ["load", "local", "skip"]

_RTLD_NOW = 2


def load(action, _):
    """`dlopen` the file `path`, visible to all libraries loaded later (`everywhere`) or to those that need its name."""
    path = action["path"]
    mode = (ctypes.RTLD_GLOBAL if action["everywhere"] else ctypes.RTLD_LOCAL) | _RTLD_NOW
    with elf.Memory() as memory:
        before = {one.path for one in elf.objects(memory)}
        ctypes.CDLL(path, mode=mode)
        new = [one.path for one in elf.objects(memory) if one.path not in before]
    return {"was": "loaded" if path in before else "not loaded", "now": new}


def skip(action, _):
    """From now on `ctypes` does not load the files in `paths`: whoever asks for one gets the program itself."""
    opened, paths = ctypes._dlopen, set(action["paths"])

    def dlopen(name, mode=ctypes.RTLD_LOCAL):
        found = os.path.normpath(os.fsdecode(name)) if name is not None else None
        return opened(None if found in paths else name, mode)

    ctypes._dlopen = dlopen
    return {}


def local(_, __):
    """From now on nobody loads a library into the global scope: not by `sys.setdlopenflags`, not by `ctypes`."""
    set_flags, opened = sys.setdlopenflags, ctypes._dlopen

    def setdlopenflags(flags):
        set_flags(flags & ~ctypes.RTLD_GLOBAL)

    def dlopen(name, mode=ctypes.RTLD_LOCAL):
        return opened(name, mode & ~ctypes.RTLD_GLOBAL)

    sys.setdlopenflags(sys.getdlopenflags() & ~ctypes.RTLD_GLOBAL)
    sys.setdlopenflags = setdlopenflags
    ctypes._dlopen = dlopen
    return {}

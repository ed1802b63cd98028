"""Native libraries: loading one before anybody else does, and keeping the others out of the global scope."""

import ctypes
import sys

from .. import elf

__all__ = ["load", "local"]

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

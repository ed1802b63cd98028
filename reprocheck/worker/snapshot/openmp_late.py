"""LLVM's and Intel's OpenMP runtimes, asked for their settings: they read their environment at the first such call."""

from .. import elf
from .bindings import labels
from .objects import exports
from .openmp import settings

__all__ = ["name", "phases", "read"]

name = "openmp"
phases = ("t3",)


def read():
    """`FILE.X` as for libgomp."""
    found = {}
    with elf.Memory() as memory:
        loaded = elf.objects(memory)
        short = labels(loaded)
        for one in loaded:
            if "__kmpc_fork_call" in exports(memory, one):
                for key, value in settings(memory, one).items():
                    found[short[one] + "." + key] = value
    return found

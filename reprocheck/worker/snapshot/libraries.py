"""Native libraries as they come in: the new ones since the last reading, in load order, and the global scope.

What is in each object (SONAME, build id, duplicates, bindings) is read later, by `objects` and `bindings`.
"""

from .. import elf

__all__ = ["name", "phases", "read"]

name = "libraries"
phases = ("t0", "t1", "t2", "t3")

_seen: set[str] = set()


def read():
    """`count`, `new` (paths in load order), `gone`, and `scope.global` (paths in the order of look-up)."""
    with elf.Memory() as memory:
        loaded = elf.objects(memory)
        found = {"count": len(loaded)}
        now = {one.path for one in loaded}
        found["new"] = [one.path for one in loaded if one.path and one.path not in _seen]
        gone = sorted(_seen - now)
        if gone:
            found["gone"] = gone
        _seen.clear()
        _seen.update(now)
        try:
            found["scope.global"] = [one.path for one in elf.global_scope(memory, loaded) if one.path]
        except elf.ElfError as error:
            found["scope.global"] = {"error": "ElfError: %s" % error}
        return found

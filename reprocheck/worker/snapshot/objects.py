"""What is in each loaded object, which libraries are there twice, and which provide what.

Equal files are told by device and inode, not by path: one file may be mapped under two spellings.
"""

import os

from .. import elf, families

__all__ = ["exports", "identity", "name", "phases", "read", "tidy"]

name = "libraries"
phases = ("t2", "t3")

_HASHES = {symbol: elf.gnu_hash(symbol) for symbol in families.PROVES}
# Every process has two of these, one on top of the other, and that is how it is meant to be.
_NEVER_TWICE = ("libm", "malloc")


def read():
    """`objects`, `family.X` and `scope.X` (providers), `duplicate.soname.X`, `duplicate.family.X`."""
    with elf.Memory() as memory:
        # Neither the program itself nor the kernel's vDSO, which has a name but no file.
        loaded = [one for one in elf.objects(memory) if "/" in one.path]
        found = {"objects": [_describe(memory, one) for one in loaded]}
        found.update(_duplicate_sonames(loaded))
        found.update(_families(memory, loaded))
        return found


def tidy(path):
    """A path without `..` in it; the loader leaves RUNPATHs of `$ORIGIN/../lib` in there."""
    return os.path.normpath(path) if "/." in path else path


def identity(one):
    """`device:inode` of an object's file, or None where it has none any more."""
    if "file" not in one.facts:
        try:
            status = os.stat(one.path)
            one.facts["file"] = "%x:%d" % (status.st_dev, status.st_ino)
        except OSError:
            one.facts["file"] = None
    return one.facts["file"]


def exports(memory, one):
    """The family markers that an object defines, as a list of symbols. Kept: it never changes."""
    found = one.facts.get("exports")
    if found is None:
        try:
            found = one.symbols(memory).exported(memory, _HASHES)
        except elf.ElfError:
            found = []
        one.facts["exports"] = found
    return found


def _interpreters_own(one):
    """True for the standard library's extension modules: dozens of them, the same ones in every trial."""
    return "/lib-dynload/" in one.path


def _describe(memory, one):
    known = one.facts.get("described")
    if known is None:
        known = {"path": tidy(one.path)}
        if _interpreters_own(one):
            one.facts["exports"] = []
            one.facts["described"] = known
            return known
        try:
            soname, needed, rpath, runpath = one.names(memory)
            facts = {"soname": soname, "needed": list(needed), "rpath": rpath, "runpath": runpath}
            facts["build_id"] = one.build_id(memory)
        except elf.ElfError as error:
            facts = {"error": "ElfError: %s" % error}
        facts["file"] = identity(one)
        known.update((key, value) for key, value in facts.items() if value)
        one.facts["described"] = known
    return known


def _duplicate_sonames(loaded):
    by_soname = {}
    for one in loaded:
        soname = one.facts["described"].get("soname")
        if soname:
            by_soname.setdefault(soname, {}).setdefault(identity(one) or one.path, one)
    return {
        "duplicate.soname." + soname: [tidy(one.path) for one in copies.values()]
        for soname, copies in by_soname.items()
        if len(copies) > 1
    }


def _families(memory, loaded):
    found = {}
    providers = {}
    for one in loaded:
        for symbol in exports(memory, one):
            providers.setdefault(families.PROVES[symbol], {})[one] = None
    try:
        scope = elf.global_scope(memory, elf.objects(memory))
    except elf.ElfError as error:
        scope = []
        found["scope"] = {"error": "ElfError: %s" % error}
    for kind, ones in providers.items():
        copies = {}
        for one in ones:
            copies.setdefault(identity(one) or one.path, one)
        paths = [tidy(one.path) for one in copies.values()]
        found["family." + kind] = paths
        if len(paths) > 1 and kind not in _NEVER_TWICE:
            found["duplicate.family." + kind] = paths
        first = [one for one in scope if one in ones]
        if first:
            found["scope." + kind] = tidy(first[0].path)
    return found

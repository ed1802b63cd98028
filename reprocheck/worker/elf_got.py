"""Which object a consumer's imported symbols are really bound to, read from its global offset table.

The set of mapped libraries does not tell: two copies with one SONAME may be there, and the first one loaded wins.
x86-64 (AMD64 ABI, table 4.10) and aarch64 (AAELF64); relocations with addend.
"""

import sys

from . import elf

__all__ = ["bindings"]

_DT_PLTRELSZ, _DT_STRSZ, _DT_RELA, _DT_RELASZ, _DT_JMPREL, _DT_RELACOUNT = 2, 10, 7, 8, 23, 0x6FFFFFF9
_GLOB_DAT = (6, 1025)  # of x86-64 and aarch64; neither number means a slot on the other machine
_BULK = 20_000


def bindings(memory, consumer, owners, providers, family, exported=()):
    """Family -> {path of the object bound to: number of symbols}, for the symbols that `consumer` calls.

    `providers` are the loaded objects that may be the answer, `family` maps a symbol's name (bytes) to its family or
    None, `owners` is an `elf.Owners`. `exported` are names (strings) that the consumer may define itself and that
    another object may take over (libtorch_cpu's MKL does). A slot that is not bound yet (lazy binding) counts under
    the path `unbound`.

    Raises `elf.ElfError` when the consumer's tables can't be read.
    """
    known = consumer.facts.get("slots")
    if known is None:
        known = consumer.facts["slots"] = list(_family_slots(memory, consumer, providers, family, exported))
    counts = {}
    for kind, address, own in known:
        target = owners(int.from_bytes(memory.read(address, 8), "little"))
        path = "unbound" if target is None or (target is consumer and not own) else target.path
        paths = counts.setdefault(kind, {})
        paths[path] = paths.get(path, 0) + 1
    return counts


def _family_slots(memory, consumer, providers, family, exported):
    """`(family, address of the slot, consumer defines the symbol itself)`. Tables never change, slots may."""
    symbols = consumer.symbols(memory)
    own = {}
    for name in exported:
        found = symbols.find(memory, name)
        if found is not None:
            own[found[0]] = name.encode()
    indices, offsets = _slots(memory, consumer, symbols.first or sys.maxsize, own)
    # Most of a large library's symbols are bound to objects that provide no family: their names need no look.
    spans = [one.span(memory) for one in {*providers, consumer}]
    values = _values(memory, [consumer.base + offset for offset in offsets])
    places = [
        at
        for at, value in enumerate(values)
        if any(start <= value < end for start, end in spans) or indices[at] in own
    ]
    names = _names(memory, consumer, symbols, {indices[at] for at in places if indices[at] not in own})
    names.update(own)
    for at in places:
        kind = family(names[indices[at]])
        if kind is not None:
            yield kind, consumer.base + offsets[at], indices[at] in own


def _values(memory, addresses):
    """The words at some addresses, mostly neighbours: one read where that is not too much."""
    if not addresses:
        return []
    first, last = min(addresses), max(addresses)
    if last - first > 64 * 1024 + 2048 * len(addresses):
        return [int.from_bytes(memory.read(address, 8), "little") for address in addresses]
    words = memory.words(first, (last - first) // 8 + 1)
    return [words[(address - first) // 8] for address in addresses]


def _slots(memory, consumer, first, own):
    """Symbol indices, and the slots' offsets, for undefined symbols (index below `first`) and those in `own`.

    Lists of integers, not of pairs: tens of thousands of tuples would set off a collection of the user's heap.
    """
    found, slots = [], []
    tags = consumer.tags(memory)
    jumps = consumer.pointer(memory, _DT_JMPREL)
    if jumps is not None:
        offsets, _, column = _columns(memory, jumps, tags.get(_DT_PLTRELSZ, 0) // 24)
        indices = column.tolist()
        places = [at for at, index in enumerate(indices) if index < first and index]
        raw = column.tobytes()
        for index in own:
            places += _positions(raw, index)
        found += [indices[at] for at in places]
        slots += [offsets[3 * at] for at in places]
    rest = consumer.pointer(memory, _DT_RELA)
    if rest is not None:
        # Relative relocations, by far the most, come first and have no symbol.
        skipped = tags.get(_DT_RELACOUNT, 0)
        start, number = rest + 24 * skipped, tags.get(_DT_RELASZ, 0) // 24 - skipped
        # Pointers outside the procedure linkage table: code built with -fno-plt. Where there is a linkage table they
        # are no more than functions whose address is taken, and not worth milliseconds.
        if number > _BULK and found:
            number = 0
        offsets, types, indices = _columns(memory, start, number)
        indices = indices.tolist()
        places = [at for at, kind in enumerate(types.tolist()) if kind in _GLOB_DAT]
        places = [at for at in places if indices[at] and (indices[at] < first or indices[at] in own)]
        found += [indices[at] for at in places]
        slots += [offsets[3 * at] for at in places]
    return found, slots


def _columns(memory, address, number):
    """Of `number` relocations, as views: the 64-bit words (offset, info, addend), the types, the symbol indices."""
    view = memoryview(memory.read(address, 24 * number) if number > 0 else b"")
    halves = view.cast("I")
    return view.cast("Q"), halves[2::6], halves[3::6]


def _positions(column, index):
    """Where `index` is in a column of 32-bit numbers (bytes): a search in C instead of a loop over all of them."""
    pattern = index.to_bytes(4, "little")
    at = column.find(pattern)
    while at >= 0:
        if at % 4 == 0:
            yield at // 4
        at = column.find(pattern, at + 1)


def _names(memory, consumer, symbols, indices):
    """Symbol index -> name (bytes), with few reads."""
    if not indices:
        return {}
    if symbols.symbols is None or symbols.strings is None:
        raise elf.ElfError("%s has no symbol table" % consumer.path)
    last = max(indices)
    table = memoryview(memory.read(symbols.symbols, 24 * (last + 1))).cast("I")
    offsets = {index: table[6 * index] for index in indices}
    size = consumer.tags(memory).get(_DT_STRSZ, 0)
    if 0 < size < 2048 * len(offsets):
        strings = memory.read(symbols.strings, size)
        return {index: strings[at : strings.index(b"\0", at)] for index, at in offsets.items()}
    return {index: memory.some(symbols.strings + at, 256).partition(b"\0")[0] for index, at in offsets.items()}

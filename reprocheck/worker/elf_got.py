"""Which object a consumer's imported symbols are really bound to, read from its global offset table.

The set of mapped libraries does not tell: two copies with one SONAME may be there, and the first one loaded wins.
x86-64 (AMD64 ABI, table 4.10) and aarch64 (AAELF64); relocations with addend.
"""

import bisect
import sys

from . import elf, families

__all__ = ["Owners", "bindings"]

_DT_PLTRELSZ, _DT_STRSZ, _DT_RELA, _DT_RELASZ, _DT_JMPREL, _DT_RELACOUNT = 2, 10, 7, 8, 23, 0x6FFFFFF9
_GLOB_DAT = (6, 1025)  # of x86-64 and aarch64; neither number means a slot on the other machine
_BULK = 20_000


class Owners:
    """Address -> the object that holds it."""

    def __init__(self, memory, loaded):
        spans = []
        for one in loaded:
            try:
                spans.append((*one.span(memory), one))
            except elf.ElfError:
                continue  # the vDSO of an odd kernel, or an object unloaded meanwhile: its addresses have no owner
        spans.sort(key=lambda span: span[0])
        self._spans = spans
        self._starts = [span[0] for span in spans]

    def __call__(self, address):
        """The object at `address`, or None."""
        at = bisect.bisect_right(self._starts, address)
        if at:
            _, end, one = self._spans[at - 1]
            if address < end:
                return one
        return None


def bindings(memory, consumer, owners, providers, exported=()):
    """Family -> {path of the object bound to: number of symbols}, for the symbols that `consumer` calls.

    `providers` are the loaded objects that may be the answer, `owners` is an `Owners`. `exported` are names that
    the consumer may define itself and that another object may take over (libtorch_cpu's MKL does). A slot that is not
    bound yet (lazy binding) counts under the path `unbound`.

    Raises `elf.ElfError` when the consumer's tables can't be read.
    """
    known = consumer.facts.get("slots")
    if known is None:
        known = consumer.facts["slots"] = list(_family_slots(memory, consumer, providers, exported))
    counts = {}
    for kind, address, own in known:
        target = owners(int.from_bytes(memory.read(address, 8), "little"))
        path = "unbound" if target is None or (target is consumer and not own) else target.path
        paths = counts.setdefault(kind, {})
        paths[path] = paths.get(path, 0) + 1
    return counts


def _family_slots(memory, consumer, providers, exported):
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
    places = [at for at, index in enumerate(indices) if index in own]
    for start, end in spans:
        places += [at for at, value in enumerate(values) if start <= value < end and indices[at] not in own]
    names = _names(memory, consumer, symbols, {indices[at] for at in places if indices[at] not in own})
    names.update(own)
    for at in places:
        kind = families.family(names[indices[at]])
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
        data = _table(memory, jumps, tags.get(_DT_PLTRELSZ, 0) // 24)
        offsets, indices = data.cast("Q"), data.cast("I")[3::6]
        places = [at for at in _below(data, first) if 0 < indices[at] < first]
        column = indices.tobytes() if own else b""
        for index in own:
            places += _equal(column, index)
        found += [indices[at] for at in places]
        slots += [offsets[3 * at] for at in places]
    rest = consumer.pointer(memory, _DT_RELA)
    if rest is not None:
        # Relative relocations, by far the most, come first and have no symbol.
        skipped = tags.get(_DT_RELACOUNT, 0)
        start, number = rest + 24 * skipped, tags.get(_DT_RELASZ, 0) // 24 - skipped
        # Pointers outside the procedure linkage table: code built with -fno-plt. Where there is a linkage table they
        # are no more than functions whose address is taken, and not worth milliseconds.
        data = _table(memory, start, 0 if number > _BULK and found else number)
        offsets, indices = data.cast("Q"), data.cast("I")[3::6]
        places = [at for at, kind in enumerate(data.cast("I")[2::6].tolist()) if kind in _GLOB_DAT]
        places = [at for at in places if indices[at] and (indices[at] < first or indices[at] in own)]
        found += [indices[at] for at in places]
        slots += [offsets[3 * at] for at in places]
    return found, slots


def _table(memory, address, number):
    """`number` relocations of 24 bytes: offset (8), type (4), symbol index (4), addend (8)."""
    return memoryview(memory.read(address, 24 * number) if number > 0 else b"")


def _below(table, first):
    """Entries whose symbol index may be below `first`: a superset, found without a loop over tens of thousands.

    An index is small when its upper bytes are; whole columns of bytes are compared at once, as one long integer each.
    """
    number = len(table) // 24
    if first > 0xFFFF:
        return range(number)
    zero = bytes([0] + [1] * 255)
    low = bytes([0] * ((first >> 8) + 1) + [1] * (255 - (first >> 8)))
    large = 0
    for column, classes in ((13, low), (14, zero), (15, zero)):
        large |= int.from_bytes(table[column::24].tobytes().translate(classes), "little")
    return list(_zeros(large.to_bytes(number, "little")))


def _zeros(data):
    at = data.find(0)
    while at >= 0:
        yield at
        at = data.find(0, at + 1)


def _equal(column, index):
    """Where `index` stands in a column of 32-bit numbers (bytes)."""
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

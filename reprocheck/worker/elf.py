"""The ELF images of this very process, read without ctypes and without taking the dynamic linker's lock.

Everything goes through `pread` on `/proc/self/mem`: an address that is no longer mapped is an error, never a
segmentation fault, and no Python callback ever runs under the linker's lock (`dl_iterate_phdr` with one can
deadlock against a thread that imports). The chain is auxv (AT_PHDR) -> DT_DEBUG -> `r_debug` -> `link_map`, see
`<link.h>` and https://refspecs.linuxfoundation.org/elf/gabi4+/ch5.dynamic.html. 64-bit little-endian only.

Used before the first subject is imported, so nothing but `posix` is imported here.
"""

import posix

__all__ = ["ElfError", "Loaded", "Memory", "count", "global_scope", "gnu_hash", "objects"]

_AT_PHDR, _AT_PHNUM = 3, 5
_PT_LOAD, _PT_DYNAMIC, _PT_NOTE, _PT_PHDR = 1, 2, 4, 6
_DT_NEEDED, _DT_HASH, _DT_STRTAB, _DT_SYMTAB, _DT_SONAME, _DT_RPATH = 1, 4, 5, 6, 14, 15
_DT_DEBUG, _DT_RUNPATH, _DT_GNU_HASH = 21, 29, 0x6FFFFEF5
_MANY = 100_000  # more objects, or longer hash chains, than this mean that garbage is being read


class ElfError(Exception):
    """The process's own images can't be read, or don't look as `<link.h>` says."""


class Memory:
    """This process's memory. A context manager, for one reading only: a workload may close descriptors."""

    __slots__ = ("_fd",)

    def __init__(self):
        try:
            self._fd = posix.open("/proc/self/mem", posix.O_RDONLY | posix.O_CLOEXEC)
        except OSError as error:
            raise ElfError("/proc/self/mem can't be opened: " + str(error)) from None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        posix.close(self._fd)

    def some(self, address, size):
        """Up to `size` bytes at `address`; fewer where the mapping ends."""
        try:
            return posix.pread(self._fd, size, address)
        except (OSError, OverflowError) as error:
            raise ElfError("memory at %#x can't be read: %s" % (address, error)) from None

    def read(self, address, size):
        """Exactly `size` bytes at `address`."""
        data = self.some(address, size)
        if len(data) != size:
            raise ElfError("memory at %#x ends after %d of %d bytes" % (address, len(data), size))
        return data

    def words(self, address, number):
        """`number` unsigned 64-bit words at `address`."""
        return memoryview(self.read(address, 8 * number)).cast("Q")

    def text(self, address):
        """The NUL-terminated string at `address`, decoded as file names are."""
        parts = []
        size = 128
        while True:
            part = self.some(address, size)
            end = part.find(b"\0")
            if end >= 0:
                parts.append(part[:end])
                return b"".join(parts).decode("utf-8", "surrogateescape")
            if len(part) != size or len(parts) > 64:
                raise ElfError("no string at %#x" % address)
            parts.append(part)
            address += size
            size = 4096


class Loaded:
    """One loaded object, in the order of loading.

    `order` (0 is the program), `base` (load bias), `path` (empty for the program), `ld` (its dynamic section) and
    `link` (its `link_map`) are there at once; the rest is read on first use and kept, for an object never changes.
    """

    __slots__ = ("_hash", "_names", "_segments", "_tags", "base", "facts", "ld", "link", "name", "order", "path")

    def __init__(self, order, path, entry):
        """`entry`: address of the `link_map`, and its l_addr, l_name and l_ld."""
        self.order, self.path = order, path
        self.link, self.base, self.name, self.ld = entry
        self.facts = {}  # for readers that keep what they found out about this object
        self._tags = self._names = self._segments = self._hash = None

    def __repr__(self):
        return "<Loaded %d %s at %#x>" % (self.order, self.path or "(program)", self.base)

    def tags(self, memory):
        """Dynamic tag -> value (the first one of a tag; NEEDED is a list)."""
        if self._tags is None:
            self._tags = _dynamic(memory, self.ld)
        return self._tags

    def pointer(self, memory, tag):
        """The address a dynamic tag holds, or None. glibc relocates it in place, except in the vDSO and on musl."""
        value = self.tags(memory).get(tag)
        if value is None:
            return None
        return value + self.base if value < self.base else value

    def names(self, memory):
        """`(soname, needed, rpath, runpath)`: strings or None, and a tuple of strings."""
        if self._names is None:
            tags = self.tags(memory)
            needed = tags[_DT_NEEDED]
            offsets = [*needed, *(tags[tag] for tag in (_DT_SONAME, _DT_RPATH, _DT_RUNPATH) if tag in tags)]
            strings = self._strings(memory, offsets)
            self._names = (
                strings.get(tags.get(_DT_SONAME)),
                tuple(strings[offset] for offset in needed),
                strings.get(tags.get(_DT_RPATH)),
                strings.get(tags.get(_DT_RUNPATH)),
            )
        return self._names

    def _strings(self, memory, offsets):
        table = self.pointer(memory, _DT_STRTAB)
        if table is None or not offsets:
            return {}
        first, last = min(offsets), max(offsets)
        if last - first > 8192:
            return {offset: memory.text(table + offset) for offset in offsets}
        block = memory.some(table + first, last - first + 512)  # one read instead of one for each string
        strings = {}
        for offset in offsets:
            end = block.find(b"\0", offset - first)
            raw = block[offset - first : end].decode("utf-8", "surrogateescape")
            strings[offset] = raw if end >= 0 else memory.text(table + offset)
        return strings

    def segments(self, memory):
        """Program headers as tuples `(type, offset, address, memory size, alignment)`; addresses are absolute."""
        if self._segments is None:
            self._segments = self._read_segments(memory)
        return self._segments

    def _read_segments(self, memory):
        if self.order == 0:
            address, number = _headers()
            data = memory.read(address, 56 * number)
        else:
            head = memory.some(self.base, 1024)
            if head[:4] != b"\x7fELF" or head[4:6] != b"\x02\x01":
                raise ElfError("no 64-bit little-endian ELF header at %#x" % self.base)
            offset, number = int.from_bytes(head[32:40], "little"), int.from_bytes(head[56:58], "little")
            data = head[offset : offset + 56 * number]
            if len(data) < 56 * number:
                data = self._file(offset, 56 * number)  # patchelf moves the table away from the mapped first page
        words = memoryview(data).cast("Q").tolist()
        return [
            (words[at] & 0xFFFFFFFF, words[at + 1], words[at + 2] + self.base, words[at + 5], words[at + 6])
            for at in range(0, 7 * number, 7)
        ]

    def _file(self, offset, size):
        try:
            fd = posix.open(self.path, posix.O_RDONLY | posix.O_CLOEXEC)
            try:
                data = posix.pread(fd, size, offset)
            finally:
                posix.close(fd)
        except OSError as error:
            raise ElfError("program headers of %s can't be read: %s" % (self.path, error)) from None
        if len(data) != size:
            raise ElfError("program headers of %s are cut off" % self.path)
        return data

    def span(self, memory):
        """`(start, end)`: the addresses this object's segments lie in."""
        loads = [(address, address + size) for kind, _, address, size, _ in self.segments(memory) if kind == _PT_LOAD]
        if not loads:
            raise ElfError("%s has no segment" % self.path)
        return min(loads)[0], max(end for _, end in loads)

    def build_id(self, memory):
        """Hexadecimal GNU build id, or None."""
        for kind, _, address, size, align in self.segments(memory):
            if kind == _PT_NOTE and size <= 65536:
                found = _build_id(memory.read(address, size), 8 if align == 8 else 4)
                if found:
                    return found
        return None

    def symbols(self, memory):
        """The symbol table of this object."""
        if self._hash is None:
            self._hash = _Symbols(memory, self)
        return self._hash

    def symbol(self, memory, name):
        """Absolute address of an exported symbol, or None. For an indirect function, of its resolver."""
        found = self.symbols(memory).find(memory, name)
        return None if found is None else found[1] + self.base


class _Symbols:
    """Dynamic symbols found by name: the GNU hash table, else the System V one."""

    __slots__ = ("_bloom", "_bloom_shift", "_buckets", "_chains", "_gnu", "_table", "first", "strings", "symbols")

    def __init__(self, memory, loaded):
        self.symbols = loaded.pointer(memory, _DT_SYMTAB)
        self.strings = loaded.pointer(memory, _DT_STRTAB)
        gnu, sysv = loaded.pointer(memory, _DT_GNU_HASH), loaded.pointer(memory, _DT_HASH)
        self._gnu = gnu is not None
        self._table = gnu if gnu is not None else sysv
        self.first = 0  # index of the first symbol that the GNU table covers; undefined ones come before it
        if self._table is None or self.symbols is None or self.strings is None:
            self._table = None
            return
        head = memoryview(memory.read(self._table, 16)).cast("I")
        self._buckets = head[0]
        if self._gnu:
            self.first, bloom_words, self._bloom_shift = head[1], head[2], head[3]
            if not bloom_words or bloom_words > _MANY * 64 or self._buckets > _MANY * 64:
                raise ElfError("the GNU hash table at %#x makes no sense" % self._table)
            # Small filters are kept: whether an object exports any of forty names then costs one read.
            self._bloom = memory.words(self._table + 16, bloom_words).tolist() if bloom_words <= 512 else bloom_words
            self._chains = self._table + 16 + 8 * bloom_words + 4 * self._buckets

    def find(self, memory, name, gnu=None):
        """`(index, value, info)` of a defined symbol, or None. `gnu` is its GNU hash, if it is known already."""
        if self._table is None or not self._buckets:
            return None
        if self._gnu:
            return self._find_gnu(memory, name, gnu_hash(name) if gnu is None else gnu)
        return self._find_sysv(memory, name)

    def exported(self, memory, names):
        """Those of `names` (name -> GNU hash) that are defined here."""
        if self._table is None or not self._buckets:
            return []
        if not self._gnu or isinstance(self._bloom, int):
            return [name for name, value in names.items() if self.find(memory, name, value)]
        bloom, size, shift = self._bloom, len(self._bloom), self._bloom_shift
        return [
            name
            for name, value in names.items()
            if (bloom[(value >> 6) % size] >> (value & 63))
            & (bloom[(value >> 6) % size] >> ((value >> shift) & 63))
            & 1
            and self.find(memory, name, value)
        ]

    def _find_gnu(self, memory, name, value):
        bloom = self._bloom
        if isinstance(bloom, int):
            word = memory.words(self._table + 16 + 8 * ((value >> 6) % bloom), 1)[0]
        else:
            word = bloom[(value >> 6) % len(bloom)]
        if not (word >> (value & 63)) & (word >> ((value >> self._bloom_shift) & 63)) & 1:
            return None
        bucket = self._chains - 4 * self._buckets + 4 * (value % self._buckets)
        index = int.from_bytes(memory.read(bucket, 4), "little")
        if index < self.first or index == 0:
            return None
        for _ in range(_MANY):
            block = memory.some(self._chains + 4 * (index - self.first), 64)  # most chains are this short
            for chain in memoryview(block[: len(block) & ~3]).cast("I"):
                if (chain | 1) == (value | 1):
                    found = self._check(memory, index, name)
                    if found is not None:
                        return found
                if chain & 1:
                    return None
                index += 1
        raise ElfError("the GNU hash table at %#x has an endless chain" % self._table)

    def _find_sysv(self, memory, name):
        value = 0
        for byte in name.encode():
            value = (value << 4) + byte
            value = (value ^ ((value >> 24) & 0xF0)) & 0x0FFFFFFF
        buckets = self._table + 8
        index = int.from_bytes(memory.read(buckets + 4 * (value % self._buckets), 4), "little")
        for _ in range(_MANY):
            if not index:
                return None
            found = self._check(memory, index, name)
            if found is not None:
                return found
            index = int.from_bytes(memory.read(buckets + 4 * (self._buckets + index), 4), "little")
        raise ElfError("the hash table at %#x has an endless chain" % self._table)

    def _check(self, memory, index, name):
        entry = memory.read(self.symbols + 24 * index, 24)
        if not int.from_bytes(entry[6:8], "little"):
            return None  # undefined here
        raw = name.encode() + b"\0"
        if memory.some(self.strings + int.from_bytes(entry[:4], "little"), len(raw)) != raw:
            return None
        return index, int.from_bytes(entry[8:16], "little"), entry[4]


_known: dict[tuple[int, ...], Loaded] = {}  # by `entry`: a later walk parses new objects only
_last: list[Loaded] = []  # what the last walk found
# Addresses that never change, once they are known.
_debug_at: list[int] = []
_headers_at: list[tuple[int, int]] = []
_namespace_at: list["int | None"] = []


def objects(memory):
    """The loaded objects, in the order of loading; objects seen before are the same `Loaded` again."""
    if _last and _unchanged(memory):
        return list(_last)
    debug = _debug(memory)
    for _ in range(3):
        found = _walk(memory, int.from_bytes(memory.read(debug + 8, 8), "little"))
        if found is not None:
            _last[:] = found
            return found
    raise ElfError("the list of loaded objects kept changing while it was read")


def _unchanged(memory):
    """True when nothing came or went since the last walk: glibc counts the same, and the list still ends as it did."""
    namespace = _namespace_at[0] if _namespace_at else None
    if namespace is None or int.from_bytes(memory.read(namespace + 8, 4), "little") != len(_last):
        return False
    tail = _last[-1]
    return list(memory.words(tail.link, 5)) == [
        tail.base,
        tail.name,
        tail.ld,
        0,
        _last[-2].link if len(_last) > 1 else 0,
    ]


def _walk(memory, link):
    found = []
    previous = 0
    while link:
        base, name, ld, following, back = memory.words(link, 5)
        if back != previous or len(found) > _MANY:
            return None  # an object was unloaded under our feet
        key = (link, base, name, ld)
        one = _known.get(key)
        if one is None:
            if not ld:
                return None
            one = Loaded(len(found), memory.text(name) if name else "", key)
            _known[key] = one
        one.order = len(found)
        found.append(one)
        previous, link = link, following
    if not found:
        raise ElfError("no object is loaded, says r_debug")
    return found


def count(memory):
    """How many objects are loaded, at the price of one read; None where the C library does not keep count."""
    namespace = _namespace(memory)
    return None if namespace is None else int.from_bytes(memory.read(namespace + 8, 4), "little")


def global_scope(memory, loaded):
    """Those of `loaded` that make up the global symbol scope, in the order of look-up.

    glibc keeps it in `_rtld_global`, whose first member is the main namespace "forever" (elf/ldsodefs.h). What is
    read there is believed only if head and number of objects agree with the public list.
    """
    namespace = _namespace(memory)
    if namespace is None:
        raise ElfError("this C library does not show its global scope")
    head, _, scope = memory.words(namespace, 3)
    if head != loaded[0].link:
        raise ElfError("the global scope's head is another object")
    address, number = memory.words(scope, 2)
    number &= 0xFFFFFFFF
    if not 0 < number <= _MANY:
        raise ElfError("the global scope's size makes no sense")
    by_link = {one.link: one for one in loaded}
    try:
        return [by_link[link] for link in memory.words(address, number)]
    except KeyError:
        raise ElfError("the global scope names an object that is not loaded") from None


def _namespace(memory):
    """Address of the main namespace in `_rtld_global`, or None."""
    if not _namespace_at:
        debug = _debug(memory)
        head, interpreter = memory.words(debug + 8, 1)[0], memory.words(debug + 32, 1)[0]
        loaded = objects(memory)
        owners = [one for one in loaded if one.base == interpreter and one.order]
        found = owners[0].symbol(memory, "_rtld_global") if owners else None
        if found is not None and memory.words(found, 2).tolist() != [head, len(loaded)]:
            return None  # an unknown layout, or another thread is loading something just now
        _namespace_at.append(found)
    return _namespace_at[0]


def _debug(memory):
    """Address of `r_debug`."""
    if not _debug_at:
        address, number = _headers()
        base, ld = 0, None
        headers = memory.words(address, 7 * number)
        for at in range(0, 7 * number, 7):
            kind = headers[at] & 0xFFFFFFFF
            if kind == _PT_PHDR:
                base = address - headers[at + 2]
            elif kind == _PT_DYNAMIC:
                ld = headers[at + 2]
        if ld is None:
            raise ElfError("the program is statically linked")
        program = Loaded(0, "", (0, base, 0, ld + base))
        # A program started as an argument of ld.so has the linker's headers in auxv: no DT_DEBUG, but the symbol.
        debug = program.tags(memory).get(_DT_DEBUG) or program.symbol(memory, "_r_debug")
        if not debug:
            raise ElfError("the dynamic linker shows no r_debug")
        _debug_at.append(debug)
    return _debug_at[0]


def _headers():
    """Address and number of the program's headers, from the auxiliary vector."""
    if not _headers_at:
        try:
            fd = posix.open("/proc/self/auxv", posix.O_RDONLY | posix.O_CLOEXEC)
            try:
                words = memoryview(posix.read(fd, 4096)).cast("Q")
            finally:
                posix.close(fd)
        except OSError as error:
            raise ElfError("/proc/self/auxv can't be read: " + str(error)) from None
        entries = {words[at]: words[at + 1] for at in range(0, len(words) - 1, 2)}
        if _AT_PHDR not in entries or _AT_PHNUM not in entries:
            raise ElfError("auxv has no program headers")
        _headers_at.append((entries[_AT_PHDR], entries[_AT_PHNUM]))
    return _headers_at[0]


def _dynamic(memory, address):
    words = []
    for _ in range(256):
        block = memory.some(address + 8 * len(words), 1024)
        words += memoryview(block[: len(block) & ~15]).cast("Q").tolist()
        tags = words[::2]
        if 0 in tags:
            end = tags.index(0)
            values = words[1 : 2 * end : 2]
            found = dict(zip(reversed(tags[:end]), reversed(values)))  # the first one of a tag counts
            found[_DT_NEEDED] = [value for tag, value in zip(tags, values) if tag == _DT_NEEDED]
            return found
        if not block:
            break
    raise ElfError("the dynamic section has no end")


def _build_id(notes, align):
    at = 0
    while at + 12 <= len(notes):
        name_size, size, kind = memoryview(notes[at : at + 12]).cast("I")
        name = notes[at + 12 : at + 12 + name_size]
        start = at + 12 + (name_size + align - 1) // align * align
        if kind == 3 and name == b"GNU\0":
            return notes[start : start + size].hex()
        at = start + (size + align - 1) // align * align
    return None


def gnu_hash(name):
    """The GNU hash of a symbol's name (h * 33 + c from 5381, 32 bits)."""
    value = 5381
    for byte in name.encode():
        value = (value * 33 + byte) & 0xFFFFFFFF
    return value

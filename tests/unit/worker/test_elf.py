"""The reader of our own images against what the C library itself says."""

# The worker has no annotations: it runs on interpreters that would have to load `typing` for them.
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import ctypes
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from reprocheck.worker import elf, elf_got


class _Info(ctypes.Structure):
    _fields_ = [("addr", ctypes.c_size_t), ("name", ctypes.c_char_p)]


def loader_says() -> list[tuple[int, str]]:
    """(load bias, path) of each object, from `dl_iterate_phdr`. Harmless here: no other thread is loading."""
    seen: list[tuple[int, str]] = []
    prototype = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Info), ctypes.c_size_t, ctypes.c_void_p)

    def visit(info: Any, _size: int, _data: object) -> int:
        seen.append((info.contents.addr, os.fsdecode(info.contents.name or b"")))
        return 0

    ctypes.CDLL(None).dl_iterate_phdr(prototype(visit), None)
    return seen


@pytest.fixture
def memory() -> Iterator[elf.Memory]:
    with elf.Memory() as opened:
        yield opened


def named(memory: elf.Memory, part: str) -> elf.Loaded:
    found: list[elf.Loaded] = [one for one in elf.objects(memory) if part in one.path.rpartition("/")[2]]
    if not found:
        pytest.skip(f"no {part} in this process")
    return found[0]


def test_same_objects_in_the_same_order(memory: elf.Memory) -> None:
    assert [(one.base, one.path) for one in elf.objects(memory)] == loader_says()


def test_counts_what_it_lists(memory: elf.Memory) -> None:
    assert elf.count(memory) in (None, len(elf.objects(memory)))


def test_a_second_walk_returns_the_same_objects(memory: elf.Memory) -> None:
    assert elf.objects(memory) == elf.objects(memory)


def test_order_zero_is_the_program(memory: elf.Memory) -> None:
    program = elf.objects(memory)[0]
    assert program.order == 0
    assert program.path == ""
    assert program.span(memory)[0] <= program.ld < program.span(memory)[1]


def test_names_of_libc(memory: elf.Memory) -> None:
    soname, needed, _, _ = named(memory, "libc.so").names(memory)
    assert soname == "libc.so.6"
    assert any(one.startswith("ld-linux") for one in needed)


def test_build_id_is_hexadecimal(memory: elf.Memory) -> None:
    found = named(memory, "libc.so").build_id(memory)
    assert found is not None
    assert len(bytes.fromhex(found)) in (16, 20)


def test_every_object_can_be_described(memory: elf.Memory) -> None:
    for one in elf.objects(memory):
        one.names(memory)
        one.build_id(memory)
        start, end = one.span(memory)
        assert start < end


@pytest.mark.parametrize("symbol", ["environ", "printf", "malloc", "qsort"])
def test_symbol_has_the_address_dlsym_gives(memory: elf.Memory, symbol: str) -> None:
    libc = ctypes.CDLL("libc.so.6")
    expected = ctypes.cast(getattr(libc, symbol), ctypes.c_void_p).value
    assert named(memory, "libc.so").symbol(memory, symbol) == expected


@pytest.mark.parametrize("symbol", ["no_such_symbol", "", "printf\x00", "é"])
def test_unknown_symbol_is_none(memory: elf.Memory, symbol: str) -> None:
    assert named(memory, "libc.so").symbol(memory, symbol) is None


def test_undefined_symbol_is_not_an_export(memory: elf.Memory) -> None:
    extension = named(memory, "_ctypes")
    assert extension.symbol(memory, "malloc") is None
    assert extension.symbol(memory, "PyInit__ctypes") is not None


def test_exported_finds_all_at_once(memory: elf.Memory) -> None:
    hashes = {name: elf.gnu_hash(name) for name in ("malloc", "free", "cublasCreate_v2", "sgemm_")}
    assert named(memory, "libc.so").symbols(memory).exported(memory, hashes) == ["malloc", "free"]


@pytest.mark.parametrize(("name", "value"), [("", 5381), ("printf", 0x156B2BB8), ("exit", 0x7C967E3F)])
def test_gnu_hash_of_known_names(name: str, value: int) -> None:
    assert elf.gnu_hash(name) == value


def test_global_scope_begins_with_the_program(memory: elf.Memory) -> None:
    loaded = elf.objects(memory)
    scope = elf.global_scope(memory, loaded)
    assert scope[0] is loaded[0]
    assert named(memory, "libc.so") in scope
    assert named(memory, "_ctypes") not in scope


@pytest.mark.parametrize("address", [0, 8, 0x10, 2**47 + 4096, 2**64 - 8])
def test_unmapped_memory_is_a_clean_error(memory: elf.Memory, address: int) -> None:
    with pytest.raises(elf.ElfError):
        memory.read(address, 8)
    with pytest.raises(elf.ElfError):
        memory.text(address)


def test_read_across_the_end_of_a_mapping(memory: elf.Memory) -> None:
    start, end = next(
        (int(start, 16), int(end, 16))
        for start, end in (line.split()[0].split("-") for line in Path("/proc/self/maps").read_text().splitlines())
        if int(end, 16) < 2**47
    )
    data = memory.some(end - 16, 64)
    assert len(data) in (16, 64)
    assert start < end


def test_long_text(memory: elf.Memory) -> None:
    buffer = ctypes.create_string_buffer(b"x" * 9000)
    assert memory.text(ctypes.addressof(buffer)) == "x" * 9000


def test_owner_of_an_address(memory: elf.Memory) -> None:
    owners = elf_got.Owners(memory, elf.objects(memory))
    libc = named(memory, "libc.so")
    address = libc.symbol(memory, "malloc")
    assert owners(address) is libc
    assert owners(1) is None
    assert owners(2**63) is None
    heap = ctypes.create_string_buffer(1 << 20)
    assert owners(ctypes.addressof(heap)) is None


def test_somebody_is_bound_to_malloc_of_libc(memory: elf.Memory) -> None:
    loaded = elf.objects(memory)
    owners = elf_got.Owners(memory, loaded)
    libc = named(memory, "libc.so")
    paths = {
        path
        for one in loaded[1:]
        for path in elf_got.bindings(memory, one, owners, [libc]).get("malloc", {})
        if path != "unbound"
    }
    assert paths == {libc.path}


def test_walks_survive_a_thread_that_loads(tmp_path: Path, memory: elf.Memory) -> None:
    """`dl_iterate_phdr` with a Python callback hangs here within seconds (the lock order is the other way round)."""
    import _ctypes

    source = named(memory, "_ctypes").path
    copies = [str(tmp_path / f"copy{number}.so") for number in range(60)]
    for copy in copies:
        shutil.copy(source, copy)
    before = len(elf.objects(memory))
    failures: list[BaseException] = []
    done = threading.Event()

    def guarded(work: Callable[[], object]) -> Callable[[], None]:
        def run() -> None:
            try:
                work()
            except BaseException as error:
                failures.append(error)

        return run

    def load() -> None:
        for copy in copies:
            _ctypes.dlopen(copy, os.RTLD_NOW)
        done.set()

    thread = threading.Thread(target=guarded(load), daemon=True)
    thread.start()
    walks = 0
    while not done.is_set() or not walks:
        loaded = elf.objects(memory)
        for one in loaded:
            one.names(memory)
        elf.global_scope(memory, loaded)
        walks += 1
        assert not failures
    thread.join(10)
    assert not thread.is_alive()
    assert len(elf.objects(memory)) == before + len(copies)

"""Reading safetensors files as untrusted input: every number of the header is checked before a byte of data is mapped.

Format: https://github.com/huggingface/safetensors#format (8 bytes header length, JSON header, data without holes).
"""

from __future__ import annotations

import json
import math
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import BinaryIO, NoReturn

from reprocheck.errors import StoreError

__all__ = ["MAX_HEADER", "SafetensorsFile", "Tensor", "map_bytes", "read_header"]

MAX_HEADER = 100_000_000
"""Longest header the format's own library accepts."""
MAX_AXES = 64
"""As many as numpy has."""

BITS = {
    **dict.fromkeys(("F4",), 4),
    **dict.fromkeys(("F6_E2M3", "F6_E3M2"), 6),
    **dict.fromkeys(("BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"), 8),
    **dict.fromkeys(("U16", "I16", "F16", "BF16"), 16),
    **dict.fromkeys(("U32", "I32", "F32"), 32),
    **dict.fromkeys(("U64", "I64", "F64", "C64"), 64),
}
"""Storage dtype -> bits of one element."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor: storage dtype and shape, and where its bytes lie in the file."""

    code: str
    shape: tuple[int, ...]
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class SafetensorsFile:
    """A checked header; the data stays on disk until `map_bytes` is asked for it."""

    path: Path
    metadata: dict[str, str]
    tensors: dict[str, Tensor]


def read_header(path: Path, *, max_header: int = MAX_HEADER) -> SafetensorsFile:
    """The tensors a file holds, each proved to lie inside it: nothing overlaps, nothing is left over.

    Raises:
        StoreError: the file can't be read or isn't a sound safetensors file.
    """
    with _opened(path) as (file, size):
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > size - 8:
            _reject(path, "it ends before its header does")
        if length > max_header:
            _reject(path, f"its header claims {length} bytes, more than the {max_header} allowed")
        text = file.read(length)
    header = _parse(path, text)
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        _reject(path, "its __metadata__ is not a map of strings")
    tensors = {name: _tensor(path, name, entry, 8 + length) for name, entry in header.items()}
    end = 8 + length
    for name, tensor in sorted(tensors.items(), key=lambda item: (item[1].start, item[1].stop)):
        if tensor.start != end:
            _reject(path, f"tensor {name[:80]!r} does not begin where the data before it ends")
        end = tensor.stop
    if end != size:
        _reject(path, f"its tensors end at byte {end} and the file at byte {size}")
    return SafetensorsFile(path, metadata, tensors)


def map_bytes(path: Path, start: int, stop: int) -> tuple[mmap | None, memoryview]:
    """A fresh read-only map of the whole file, and its bytes `start` to `stop`; no map where these are equal.

    Raises:
        StoreError: the file can't be read or is shorter than that.
    """
    if start == stop:
        return None, memoryview(b"")
    with _opened(path) as (file, size):
        if size < stop:
            raise StoreError(f"{path} became shorter while it was read; compare again when it is complete.")
        mapped = mmap(file.fileno(), 0, access=ACCESS_READ)
    return mapped, memoryview(mapped)[start:stop]


@contextmanager
def _opened(path: Path) -> Iterator[tuple[BinaryIO, int]]:
    """The open file and its size. Only regular files: opening a pipe or device could block or act."""
    try:
        # O_NONBLOCK: a pipe put in a file's place must not hang the reader.
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            os.close(fd)
            raise StoreError(f"{path} is not a regular file; name a .safetensors file.")
        with os.fdopen(fd, "rb") as file:
            yield file, status.st_size
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise StoreError(f"{path} can't be read ({reason}); check the path and its permissions.") from error


def _parse(path: Path, text: bytes) -> dict[str, object]:
    def closed(pairs: list[tuple[str, object]]) -> dict[str, object]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise ValueError("a name occurs twice")
        return found

    try:
        header = json.loads(text.decode("utf-8"), object_pairs_hook=closed)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        _reject(path, f"its header is not valid JSON ({reason[:120]})")
    if not isinstance(header, dict):
        _reject(path, "its header is not a JSON object")
    return header


def _tensor(path: Path, name: str, entry: object, base: int) -> Tensor:
    label = f"tensor {name[:80]!r}"
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        _reject(path, f"{label} is not described by dtype, shape and data_offsets")
    code, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(code, str) or code not in BITS:
        _reject(path, f"{label} has the unknown dtype {str(code)[:40]!r}")
    if not _naturals(shape) or len(shape) > MAX_AXES:
        _reject(path, f"{label} has a shape that is not a list of at most {MAX_AXES} sizes")
    if not _naturals(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        _reject(path, f"{label} has data_offsets that are not a begin and an end")
    start, stop = offsets
    if math.prod(shape) * BITS[code] != (stop - start) * 8:
        _reject(path, f"{label} has {stop - start} bytes, which is not what {code} of shape {shape} takes")
    return Tensor(code, tuple(shape), base + start, base + stop)


def _naturals(value: object) -> bool:
    """True for a list of sizes: integers (no booleans) from 0 to 2^63 - 1."""
    return isinstance(value, list) and all(type(item) is int and 0 <= item < 2**63 for item in value)


def _reject(path: Path, why: str) -> NoReturn:
    raise StoreError(f"{path} is not a sound safetensors file: {why}; write it again or leave it out.")

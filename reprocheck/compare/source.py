"""Where the elements of one output come from: a stored object, another file's tensor, or an array in memory.

Nothing is read until a comparison opens a source, and then chunk by chunk. Mapped pages that were passed are given
back, so the resident size stays flat however large the array is (the page cache keeps them).
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from reprocheck.compare.dtypes import DType, from_storage, lookup
from reprocheck.errors import StoreError
from reprocheck.store.safetensors import SafetensorsFile, map_bytes, read_header

__all__ = ["OBJECT_TENSOR", "Reader", "Source"]

OBJECT_TENSOR = "value"
"""Name of the only tensor in a stored object."""
_OBJECT_HEADER = 1 << 16
_RELEASE_EVERY = 8 << 20

Bytes = NDArray[np.uint8]


class Reader(Protocol):
    """Elements of an opened source as flat bytes, in C order."""

    def read(self, start: int, stop: int) -> Bytes:
        """The bytes of elements `start` to `stop`: contiguous, valid until the next call."""
        ...

    def release(self, stop: int) -> None:
        """Say that elements before `stop` were passed, so that mapped pages may go; reading them still works."""
        ...


@dataclass(frozen=True, slots=True)
class Source:
    """An output's logical dtype and shape, and how to get at its elements."""

    dtype: DType
    shape: tuple[int, ...]
    open: Callable[[], Reader]
    """Opens the elements; raises `StoreError` if the file behind them is gone."""

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @classmethod
    def from_object(cls, path: Path) -> Source:
        """The output in a stored object: a safetensors file with one tensor called `value`.

        Raises:
            StoreError: the file is missing, damaged, or not such an object.
        """
        file = read_header(path, max_header=_OBJECT_HEADER)
        if set(file.tensors) != {OBJECT_TENSOR}:
            raise StoreError(f"{path} is not a stored output (one tensor called `value`); the run folder is damaged.")
        return cls.from_tensor(file, OBJECT_TENSOR, dtype=file.metadata.get("dtype"))

    @classmethod
    def from_tensor(cls, file: SafetensorsFile, name: str, *, dtype: str | None = None) -> Source:
        """One tensor of a safetensors file, read as logical `dtype` (None: as its storage says).

        Raises:
            StoreError: the tensor does not hold such a dtype.
        """
        tensor = file.tensors[name]
        try:
            logical, shape = from_storage(tensor.code, tensor.shape, dtype)
        except ValueError as error:
            raise StoreError(f"{file.path}: tensor {name[:80]!r} {error}; store it in another dtype.") from None
        return cls.from_mapped(file.path, tensor.start, logical, shape)

    @classmethod
    def from_mapped(cls, path: Path, offset: int, dtype: DType, shape: tuple[int, ...]) -> Source:
        """Elements in C order and little-endian from byte `offset` of a file, mapped when opened."""
        return cls(dtype, shape, lambda: _Mapped(path, offset, math.prod(shape), dtype.itemsize))

    @classmethod
    def from_numpy(cls, array: NDArray[Any], dtype: str | None = None) -> Source:
        """An array in memory, of any strides and byte order; complex long doubles become pairs (one more axis of 2).

        With `dtype`, the array's bytes are that dtype's storage (uint16 for bfloat16, pairs of float16 for complex32).

        Raises:
            TypeError: the dtype is not one that reprocheck compares (the text completes "x …").
        """
        if dtype is None and array.dtype.kind == "c" and array.dtype.itemsize > 16:
            array = np.stack([array.real, array.imag], axis=-1)
        logical = _logical(array.dtype) if dtype is None else lookup(dtype)
        if logical is None or logical.itemsize == 0:
            raise TypeError(f"has dtype {dtype or array.dtype}, which reprocheck does not compare")
        shape = array.shape
        if logical.itemsize != array.dtype.itemsize:
            units = logical.itemsize // array.dtype.itemsize
            if not shape or shape[-1] != units:
                raise TypeError(f"has shape {shape}, whose last axis is not the {units} units of a {logical.name}")
            shape = shape[:-1]
        return cls(logical, shape, lambda: _Held(array, logical.itemsize))


def _logical(dtype: np.dtype[Any]) -> DType | None:
    """The logical dtype of a numpy dtype."""
    if dtype.kind in "SU":  # fixed-width text: an element is equal or it is not
        return DType(dtype.newbyteorder("=").str, "exact", dtype.itemsize)
    if dtype.kind in "mM":
        return lookup(dtype.newbyteorder("=").str[1:].replace("m8", "timedelta64").replace("M8", "datetime64"))
    if dtype.kind == "f" and dtype.itemsize == 16:
        layout = {63: "longdouble", 112: "binary128"}.get(np.finfo(np.longdouble).nmant)
        return lookup(layout) if layout else None
    return lookup(dtype.name)


class _Mapped:
    """A tensor's bytes in a map of its file."""

    def __init__(self, path: Path, offset: int, size: int, itemsize: int) -> None:
        """Map `size` elements from byte `offset` on; raises `StoreError` if they are not there (any more)."""
        self._map, data = map_bytes(path, offset, offset + size * itemsize)
        self._bytes: Bytes = np.frombuffer(data, np.uint8)
        self._offset = offset
        self._itemsize = itemsize
        self._released = 0

    def read(self, start: int, stop: int) -> Bytes:
        return self._bytes[start * self._itemsize : stop * self._itemsize]

    def release(self, stop: int) -> None:
        end = (self._offset + stop * self._itemsize) // mmap.PAGESIZE * mmap.PAGESIZE
        if self._map is not None and end - self._released >= _RELEASE_EVERY:
            self._map.madvise(mmap.MADV_DONTNEED, self._released, end - self._released)
            self._released = end


class _Held:
    """An array in memory; what is not contiguous or of the other byte order is copied a chunk at a time."""

    def __init__(self, array: NDArray[Any], itemsize: int) -> None:
        self._units = itemsize // array.dtype.itemsize
        self._native = array.dtype.newbyteorder("=")
        plain = array.flags.c_contiguous and array.dtype.isnative
        self._flat = array.reshape(-1) if plain else array.flat

    def read(self, start: int, stop: int) -> Bytes:
        chunk: NDArray[Any] = self._flat[start * self._units : stop * self._units]
        return chunk.astype(self._native, copy=False).view(np.uint8)

    def release(self, stop: int) -> None:
        pass

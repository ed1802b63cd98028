"""Finding the elements whose bits differ, in one pass over both inputs.

Comparing 64-bit words finds the few places that matter at memory speed; only those are looked at as elements.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reprocheck.compare.dtypes import DType
from reprocheck.compare.source import Bytes, Reader

__all__ = ["Batch", "differing_elements"]

_BATCH = 1 << 16
"""Elements handed over at a time: keeps the temporaries of what follows in the cache and below 16 MiB."""
_WORD = np.dtype(np.uint64)


@dataclass(frozen=True, slots=True)
class Batch:
    """Some differing elements, in C order: flat indices, and their bytes on both sides, one row an element."""

    index: NDArray[np.int64]
    a: Bytes
    b: Bytes

    def __len__(self) -> int:
        return len(self.index)


def differing_elements(a: Reader, b: Reader, dtype: DType, size: int, chunk_bytes: int) -> Iterator[Batch]:
    """Batches of all elements whose bits differ among the first `size`, ascending and complete.

    Reads chunks of about `chunk_bytes` from either side. Padding inside an element does not count.
    """
    # A multiple of 64 elements keeps every chunk on a word boundary.
    step = max(64, chunk_bytes // dtype.itemsize // 64 * 64)
    waiting: list[Batch] = []
    count = 0
    for start in range(0, size, step):
        stop = min(start + step, size)
        for found in _scan(a.read(start, stop), b.read(start, stop), dtype, start):
            waiting.append(found)
            count += len(found)
            if count >= _BATCH:
                yield _joined(waiting)
                waiting, count = [], 0
        a.release(stop)
        b.release(stop)
    if waiting:
        yield _joined(waiting)


def _scan(a: Bytes, b: Bytes, dtype: DType, start: int) -> Iterator[Batch]:
    """The differing elements of one chunk that begins at element `start`, at most `_BATCH` at a time."""
    itemsize = dtype.itemsize
    unit = itemsize if itemsize in (1, 2, 4, 8) else 8 if itemsize % 8 == 0 else 1
    words = len(a) // 8 * 8
    hits = np.flatnonzero(_aligned(a[:words].view(_WORD)) != _aligned(b[:words].view(_WORD)))
    tail = a[words:].tobytes() != b[words:].tobytes()
    if not len(hits) and not tail:
        return
    raw_a, raw_b = (_aligned(side.view(f"u{unit}")) for side in (a, b))
    # Words to units; the few units after the last whole word ride along with the last slice.
    lanes = 8 // unit
    per_slice = _BATCH // lanes
    last = -1
    for at in range(0, max(1, len(hits)), per_slice):
        units = hits[at : at + per_slice]
        if lanes > 1:
            units = (units[:, np.newaxis] * lanes + np.arange(lanes)).reshape(-1)
            if tail and at + per_slice >= len(hits):
                units = np.concatenate([units, np.arange(words // unit, len(raw_a))])
            units = units[raw_a[units] != raw_b[units]]
        if itemsize == unit:
            found = units
            rows_a, rows_b = (raw[found].view(np.uint8).reshape(-1, unit) for raw in (raw_a, raw_b))
        else:
            found = units // (itemsize // unit)
            # Several units of one element, perhaps cut apart by a slice's end, are one difference.
            found, last = found[np.diff(found, prepend=last) > 0], int(found[-1]) if len(found) else last
            rows_a, rows_b = (side.reshape(-1, itemsize)[found] for side in (a, b))
        if dtype.form is not None and dtype.form.integer_bit:
            different = (rows_a[:, :10] != rows_b[:, :10]).any(axis=1)
            found, rows_a, rows_b = found[different], rows_a[different], rows_b[different]
        if len(found):
            yield Batch(found + start, rows_a, rows_b)


def _aligned(array: NDArray[Any]) -> NDArray[Any]:
    """The array at an address its dtype likes; a tensor may begin anywhere in its file."""
    return array if array.flags.aligned else array.copy()


def _joined(batches: list[Batch]) -> Batch:
    if len(batches) == 1:
        return batches[0]
    return Batch(
        np.concatenate([batch.index for batch in batches]),
        np.concatenate([batch.a for batch in batches]),
        np.concatenate([batch.b for batch in batches]),
    )

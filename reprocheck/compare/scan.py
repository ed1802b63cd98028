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
        found = _scan(a.read(start, stop), b.read(start, stop), dtype, start)
        a.release(stop)
        b.release(stop)
        if found is None:
            continue
        waiting.append(found)
        count += len(found)
        if count >= _BATCH:
            yield from _split(_joined(waiting))
            waiting, count = [], 0
    if waiting:
        yield from _split(_joined(waiting))


def _scan(a: Bytes, b: Bytes, dtype: DType, start: int) -> Batch | None:
    """The differing elements of one chunk that begins at element `start`."""
    words = len(a) // 8 * 8
    hits = np.flatnonzero(_aligned(a[:words].view(_WORD)) != _aligned(b[:words].view(_WORD)))
    if not len(hits) and a[words:].tobytes() == b[words:].tobytes():
        return None
    itemsize = dtype.itemsize
    unit = itemsize if itemsize in (1, 2, 4, 8) else 8 if itemsize % 8 == 0 else 1
    raw_a, raw_b = (_aligned(side.view(f"u{unit}")) for side in (a, b))
    if unit < 8:
        lanes = 8 // unit
        hits = (hits[:, np.newaxis] * lanes + np.arange(lanes)).reshape(-1)
        hits = np.concatenate([hits, np.arange(words // unit, len(raw_a))])
        hits = hits[raw_a[hits] != raw_b[hits]]
    if itemsize == unit:
        rows_a, rows_b = (raw[hits].view(np.uint8).reshape(-1, unit) for raw in (raw_a, raw_b))
    else:
        hits //= itemsize // unit
        hits = hits[np.diff(hits, prepend=-1) > 0]
        rows_a, rows_b = (side.reshape(-1, itemsize)[hits] for side in (a, b))
    if dtype.form is not None and dtype.form.integer_bit:
        different = (rows_a[:, :10] != rows_b[:, :10]).any(axis=1)
        hits, rows_a, rows_b = hits[different], rows_a[different], rows_b[different]
    return Batch(hits + start, rows_a, rows_b) if len(hits) else None


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


def _split(batch: Batch) -> Iterator[Batch]:
    for start in range(0, len(batch), _BATCH):
        part = slice(start, start + _BATCH)
        yield Batch(batch.index[part], batch.a[part], batch.b[part])

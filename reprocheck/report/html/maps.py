"""Where in an array the differences are, on a grid small enough to be drawn: pure arithmetic, no plotting."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reprocheck.compare.dtypes import DType
from reprocheck.compare.numbers import numbers
from reprocheck.compare.scan import differing_elements
from reprocheck.compare.source import Bytes, Reader, Source
from reprocheck.model import Difference

__all__ = ["Map", "difference_maps"]

ROWS, COLUMNS = 120, 200
BINS = 300
MOST = 1 << 23
"""Elements read for one map; of a larger array every band of rows is represented by its first ones."""
_CHUNK = 1 << 22


@dataclass(frozen=True, slots=True)
class Map:
    """Distances over one array, or one slice of it: the largest in each cell of a grid."""

    values: NDArray[np.float64]
    """(rows, columns), or (bins,) of a profile: 0 where all elements are equal, NaN where NaN or infinity changed."""
    unit: str
    """`ulp`, `difference` or `differs`."""
    shape: tuple[int, ...]
    """What the grid stands for."""
    index: tuple[int, ...] = ()
    """Leading indices of the slice."""
    thinned: bool = False
    """True when only some rows of each band were read."""


def difference_maps(a: Source, b: Source, detail: Difference) -> tuple[Map, ...]:
    """Maps of how `a` differs from the reference `b`: one of a vector or matrix, the telling slices of more axes.

    Slices are those of the worst and of the first differing element. Nothing for scalars, text, arrays that differ
    in shape or dtype, and rows too long to be read for a picture.

    Raises:
        StoreError: a file behind a source can't be read.
    """
    dtype = a.dtype
    if dtype.kind == "text" or a.shape != b.shape or dtype.name != b.dtype.name or detail.kind != "values":
        return ()
    axes = [length for length in a.shape if length > 1]
    if not axes:
        return ()
    if len(axes) == 1:
        return (_profile(a, b, a.size),)
    rows, columns = axes[-2:]
    if columns * min(rows, ROWS) > 4 * MOST:
        return ()
    if len(axes) == 2:
        return (_image(a, b, 0, (rows, columns), ()),)
    places = [place for place in (detail.worst_index, detail.first_index) if place is not None]
    starts: dict[int, tuple[int, ...]] = {}
    for place in places:
        flat = int(np.ravel_multi_index(place, a.shape)) // (rows * columns)
        # Axes of length 1 carry no place; the others before the last two name the slice.
        named = [(at, length) for at, length in zip(place, a.shape, strict=True) if length > 1]
        starts[flat] = tuple(at for at, _ in named[:-2])
    return tuple(_image(a, b, flat * rows * columns, (rows, columns), index) for flat, index in starts.items())


def _profile(a: Source, b: Source, size: int) -> Map:
    bins = min(BINS, size)
    edges = [number * size // bins for number in range(bins + 1)]
    each = max(1, MOST // bins)
    thinned = size > MOST
    ranges = [(start, min(stop, start + each)) for start, stop in itertools.pairwise(edges)]
    values = np.zeros(bins)
    for index, distance in _distances(a, b, ranges if thinned else [(0, size)]):
        _raise(values, np.searchsorted(np.array(edges), index, side="right") - 1, distance)
    return Map(values=values, unit=_unit(a.dtype), shape=(size,), thinned=thinned)


def _image(a: Source, b: Source, start: int, shape: tuple[int, int], index: tuple[int, ...]) -> Map:
    rows, columns = shape
    height, width = min(ROWS, rows), min(COLUMNS, columns)
    thinned = rows * columns > MOST
    if thinned:
        each = max(1, MOST // (height * columns))
        edges = [band * rows // height for band in range(height + 1)]
        bands = [(first, min(last, first + each)) for first, last in itertools.pairwise(edges)]
    else:
        bands = [(0, rows)]
    values = np.zeros(height * width)
    ranges = [(start + first * columns, start + last * columns) for first, last in bands]
    for flat, distance in _distances(a, b, ranges):
        row, column = np.divmod(flat - start, columns)
        _raise(values, (row * height // rows) * width + column * width // columns, distance)
    return Map(values=values.reshape(height, width), unit=_unit(a.dtype), shape=shape, index=index, thinned=thinned)


def _raise(values: NDArray[np.float64], cells: NDArray[np.int64], distance: NDArray[np.float64]) -> None:
    """Take in distances; a NaN wins over every number."""
    with np.errstate(invalid="ignore"):
        np.maximum.at(values, cells, distance)


def _unit(dtype: DType) -> str:
    return {"float": "ulp", "integer": "difference", "time": "difference"}.get(dtype.kind, "differs")


def _distances(
    a: Source, b: Source, ranges: list[tuple[int, int]]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float64]]]:
    """Flat indices and distances of all differing elements in the ranges."""
    left, right = a.open(), b.open()
    for start, stop in ranges:
        for batch in differing_elements(_Part(left, start), _Part(right, start), a.dtype, stop - start, _CHUNK):
            with np.errstate(all="ignore"):
                found = numbers(a.dtype, batch)
                if found is None:
                    distance = np.ones(len(batch))
                else:
                    raw = found.ulp if found.ulp is not None else found.distance
                    # What differs by no distance (the sign of zero, the payload of a NaN) still differs.
                    distance = np.maximum(raw.astype(np.float64), 0.5 if found.ulp is not None else math.ulp(0.0))
                    distance[found.nan_changed | found.inf_changed] = np.nan
            yield batch.index + start, distance


class _Part:
    """A reader whose first element is another's element `start`."""

    def __init__(self, reader: Reader, start: int) -> None:
        self._reader = reader
        self._start = start

    def read(self, start: int, stop: int) -> Bytes:
        return self._reader.read(self._start + start, self._start + stop)

    def release(self, stop: int) -> None:
        self._reader.release(self._start + stop)

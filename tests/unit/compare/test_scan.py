from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from reprocheck.compare.dtypes import DType
from reprocheck.compare.scan import differing_elements
from reprocheck.compare.source import Source


def found(a: bytes, b: bytes, itemsize: int, chunk_bytes: int = 64) -> list[int]:
    dtype = DType("opaque", "exact", itemsize)
    sides = [np.frombuffer(side, np.uint8) for side in (a, b)]
    readers = [Source.from_numpy(side if itemsize == 1 else side.view(f"S{itemsize}")).open() for side in sides]
    indices: list[int] = []
    for batch in differing_elements(readers[0], readers[1], dtype, len(a) // itemsize, chunk_bytes):
        assert len(batch) == len(batch.a) == len(batch.b) > 0
        for index, x, y in zip(batch.index.tolist(), batch.a, batch.b, strict=True):
            span = slice(index * itemsize, (index + 1) * itemsize)
            assert (x.tobytes(), y.tobytes()) == (a[span], b[span])
        indices += batch.index.tolist()
    return indices


@settings(deadline=None)
@given(
    itemsize=st.sampled_from([1, 2, 3, 4, 5, 7, 8, 12, 16, 20, 24, 32, 100]),
    size=st.integers(1, 300),
    data=st.data(),
    chunk_bytes=st.sampled_from([1, 100, 5000]),
)
def test_every_differing_element_once_and_in_order(
    itemsize: int, size: int, data: st.DataObject, chunk_bytes: int
) -> None:
    a = bytes(1 + i % 250 for i in range(size * itemsize))
    b = bytearray(a)
    for at in data.draw(st.sets(st.integers(0, len(a) - 1), max_size=20)):
        b[at] ^= 255
    expected = [i for i in range(size) if a[i * itemsize : (i + 1) * itemsize] != b[i * itemsize : (i + 1) * itemsize]]
    assert found(a, bytes(b), itemsize, chunk_bytes) == expected


@pytest.mark.parametrize("itemsize", [1, 4, 12, 16, 24])
def test_more_differences_than_fit_in_a_batch(itemsize: int) -> None:
    size = (3 << 20) // itemsize
    a, b = b"a" * (size * itemsize), b"b" * (size * itemsize)
    assert found(a, b, itemsize, chunk_bytes=1 << 21) == list(range(size))

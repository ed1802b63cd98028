from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from reprocheck.compare.source import Source
from reprocheck.errors import StoreError

X87 = np.finfo(np.longdouble).nmant == 63


def everything(source: Source) -> bytes:
    return source.open().read(0, source.size).tobytes()


def test_a_stored_object_has_its_logical_dtype_and_shape(store_object: Callable[..., Path]) -> None:
    data = np.arange(12, dtype=np.float32)
    source = Source.from_object(store_object("F32", (2, 3, 2), data, "complex64"))
    assert (source.dtype.name, source.shape, source.size) == ("complex64", (2, 3), 6)
    assert everything(source) == data.tobytes()
    scalar = Source.from_object(store_object("I64", (), np.int64(5).tobytes()))
    assert (scalar.shape, scalar.size, everything(scalar)) == ((), 1, np.int64(5).tobytes())
    empty = Source.from_object(store_object("F64", (0, 7), b""))
    assert (empty.size, everything(empty)) == (0, b"")


def test_objects_that_are_none(store_object: Callable[..., Path], tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot hold complex64"):
        Source.from_object(store_object("F32", (3,), bytes(12), "complex64"))
    with pytest.raises(StoreError, match="unknown dtype"):
        Source.from_object(store_object("F32", (3,), bytes(12), "float33"))
    header = b'{"other":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}'
    path = tmp_path / "other.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + b"x")
    with pytest.raises(StoreError, match="one tensor called `value`"):
        Source.from_object(path)
    path.write_bytes((10**6).to_bytes(8, "little") + b"{" + b" " * 10**6)
    with pytest.raises(StoreError, match="more than the 65536"):
        Source.from_object(path)


def test_mapped_pages_that_were_passed_can_be_read_again(tmp_path: Path) -> None:
    data = np.random.default_rng(0).integers(0, 256, 40 << 20, np.uint8)
    path = tmp_path / "data"
    path.write_bytes(data.tobytes())
    dtype = Source.from_numpy(data).dtype
    reader = Source.from_mapped(path, 100, dtype, (len(data) - 100,)).open()
    for stop in range(0, len(data) - 100, 3 << 20):
        reader.release(stop)
    assert (reader.read(0, 1 << 20) == data[100 : 100 + (1 << 20)]).all()


def test_strides_and_byte_order_are_taken_away_in_chunks() -> None:
    array = np.arange(24, dtype=">f4").reshape(2, 3, 4)[:, ::-1, ::2]
    source = Source.from_numpy(array)
    plain = np.ascontiguousarray(array).astype("<f4").tobytes()
    assert source.dtype.name == "float32"
    assert everything(source) == plain
    reader = source.open()
    assert b"".join(reader.read(at, min(at + 5, 12)).tobytes() for at in range(0, 12, 5)) == plain


@pytest.mark.skipif(not X87, reason="the long double of this machine is not x87's")
def test_long_doubles_and_pairs_of_them() -> None:
    assert Source.from_numpy(np.zeros(3, np.longdouble)).dtype.name == "longdouble"
    pairs = Source.from_numpy(np.zeros(3, np.clongdouble))
    assert (pairs.dtype.name, pairs.shape) == ("longdouble", (3, 2))


def test_storage_given_a_dtype() -> None:
    assert Source.from_numpy(np.zeros((4, 2), np.float16), "complex32").shape == (4,)
    assert Source.from_numpy(np.zeros(4, np.uint16), "bfloat16").shape == (4,)
    assert Source.from_numpy(np.zeros((4, 16), np.uint8), "binary128").size == 4


@pytest.mark.parametrize(
    ("array", "dtype", "words"),
    [
        (np.array([None]), None, "object"),
        (np.zeros(2, "V4"), None, "V4"),
        (np.zeros(2, [("a", "f4")]), None, "does not compare"),
        (np.zeros(3, np.float16), "complex32", "last axis"),
        (np.zeros((), np.uint8), "longdouble", "last axis"),
        (np.zeros(3), "float99", "float99"),
    ],
)
def test_arrays_that_are_not_compared(
    array: np.ndarray[tuple[int, ...], np.dtype[np.void]], dtype: str, words: str
) -> None:
    with pytest.raises(TypeError, match=words):
        Source.from_numpy(array, dtype)


def test_sizes_beyond_memory_are_only_numbers() -> None:
    source = Source.from_numpy(np.broadcast_to(np.float32(1.0), (1 << 40, 3)))
    assert source.size == 3 << 40
    assert math.prod(source.shape) == source.size
    assert source.open().read(5, 7).tobytes() == np.ones(2, np.float32).tobytes()

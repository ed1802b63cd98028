from __future__ import annotations

import math

import numpy as np
import pytest

from reprocheck.compare.dtypes import TABLE, from_storage, lookup
from reprocheck.store.safetensors import BITS


@pytest.mark.parametrize("dtype", TABLE.values(), ids=lambda dtype: dtype.name)
def test_storage_holds_exactly_one_element(dtype: object) -> None:
    entry = TABLE[dtype.name]  # type: ignore[attr-defined]
    assert math.prod(entry.axes) * BITS[entry.code] == 8 * entry.itemsize
    assert from_storage(entry.code, (3, *entry.axes), entry.name) == (entry, (3,))


@pytest.mark.parametrize("dtype", [d for d in TABLE.values() if d.native], ids=lambda dtype: dtype.name)
def test_native_storage_needs_no_name(dtype: object) -> None:
    entry = TABLE[dtype.name]  # type: ignore[attr-defined]
    assert from_storage(entry.code, (2, 3), None) == (entry, (2, 3))


def test_sizes_are_numpys() -> None:
    for name in (
        "bool",
        "int8",
        "uint16",
        "int32",
        "uint64",
        "float16",
        "float32",
        "float64",
        "complex64",
        "complex128",
    ):
        assert TABLE[name].itemsize == np.dtype(name).itemsize
        assert TABLE[name].signed == (np.dtype(name).kind == "i")


def test_times_are_looked_up_by_unit() -> None:
    instant, span = lookup("datetime64[ns]"), lookup("timedelta64[25s]")
    assert instant is not None
    assert span is not None
    assert (instant.code, instant.itemsize, instant.tolerant) == ("I64", 8, False)
    assert span.tolerant
    assert lookup("timedelta64") is not None
    for name in ("datetime64[]", "datetime64[parsec]", "datetime64[0s]", "datetime64[ns]; x", "float24", ""):
        assert lookup(name) is None


@pytest.mark.parametrize(
    ("code", "shape", "name", "expected"),
    [
        ("C64", (2, 3), "complex64", (2, 3)),
        ("F4", (2, 6), "float4_e2m1fn_x2", (2, 3)),
        ("F8_E8M0", (5,), "float8_e8m0fnu", (5,)),
        ("F8_E4M3FNUZ", (), "float8_e4m3fnuz", ()),
    ],
)
def test_storage_that_other_programs_write(
    code: str, shape: tuple[int, ...], name: str, expected: tuple[int, ...]
) -> None:
    assert from_storage(code, shape, None) == (TABLE[name], expected)


@pytest.mark.parametrize(
    ("code", "shape", "name", "words"),
    [
        ("F6_E2M3", (4,), None, "does not compare"),
        ("F4", (3,), None, "whole bytes"),
        ("F4", (), None, "whole bytes"),
        ("F32", (4,), "complex64", "cannot hold complex64"),
        ("F64", (4, 2), "complex64", "cannot hold complex64"),
        ("F32", (4,), "float64", "cannot hold float64"),
        ("U8", (4, 10), "longdouble", "cannot hold longdouble"),
        ("U8", (2, 2), "str", "cannot hold str"),
        ("U8", (), "int", "cannot hold int"),
        ("F32", (4,), "<script>", "unknown dtype"),
    ],
)
def test_storage_that_cannot_be_what_it_says(code: str, shape: tuple[int, ...], name: str | None, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        from_storage(code, shape, name)


def test_the_worker_writes_what_the_table_says() -> None:
    leaves = pytest.importorskip("reprocheck.worker.leaves")
    for entry in (*TABLE.values(), lookup("datetime64[ns]"), lookup("timedelta64[3s]")):
        assert entry is not None
        if entry.name == "binary128":
            continue  # only on machines whose long double it is
        shape = (5,) if entry.kind == "text" else (5, 7)
        leaf = leaves.Leaf(entry.name, shape, b"", "")
        assert (leaf.stored, leaf.stored_shape) == (entry.code, (*shape, *entry.axes)), entry.name
        named = entry.name if leaf.dtype != leaf.plain_dtype else None
        assert from_storage(leaf.stored, leaf.stored_shape, named) == (entry, shape)

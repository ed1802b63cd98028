from __future__ import annotations

import math
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest

from reprocheck.compare.arrays import compare, compare_maps
from reprocheck.compare.dtypes import TABLE
from reprocheck.compare.measure import SMALLEST
from reprocheck.compare.source import Source
from reprocheck.errors import StoreError
from reprocheck.model import Difference, PassesAt, Tolerance
from tests.unit.compare.conftest import needed_by

EXACT = Tolerance()
X87 = np.finfo(np.longdouble).nmant == 63


def raw_source(name: str, raw: bytes) -> Source:
    units = TABLE[name].itemsize
    return Source.from_numpy(
        np.frombuffer(raw, np.uint8).reshape(-1, units) if units > 1 else np.frombuffer(raw, np.uint8), name
    )


def both(a: object, b: object, tolerance: Tolerance = EXACT, **options: int) -> Difference:
    return compare(Source.from_numpy(np.asarray(a)), Source.from_numpy(np.asarray(b)), tolerance, **options)


@pytest.mark.parametrize("name", ["float32", "float64", "float16", "uint8", "int64", "complex128", "bfloat16"])
@pytest.mark.parametrize("every", [1, 997])
def test_large_arrays_are_covered_to_the_last_element(name: str, every: int) -> None:
    size = 300_001
    itemsize = TABLE[name].itemsize
    a = np.random.default_rng(0).integers(0, 60, (size, itemsize), np.uint8)
    b = a.copy()
    b[::every, 0] ^= 1
    b[-1, 0] ^= 3
    found = compare(raw_source(name, a.tobytes()), raw_source(name, b.tobytes()), EXACT)
    changed = np.flatnonzero((a != b).any(axis=1))
    assert found.differing == len(changed)
    assert found.first_index == (0,)
    assert found.size == size


def test_numbers_a_person_checks_by_hand() -> None:
    reference = np.array([[1.0, 2.0, 4.0], [0.0, -8.0, 100.0]], np.float32)
    changed = reference.copy()
    changed[0, 2] = np.nextafter(np.float32(4), np.float32(5))
    changed[1, 0] = -0.0
    changed[1, 2] = 101.0
    found = both(changed, reference, Tolerance(rtol=0.02))
    assert found == Difference(
        kind="values",
        dtype="float32",
        shape=(2, 3),
        other_dtype="float32",
        other_shape=(2, 3),
        size=6,
        differing=3,
        max_ulp=131072,
        ulp_histogram={"1": 1, "65537-131072": 1},
        max_abs=1.0,
        max_rel=0.01,
        mean_abs=(1.0 + 2.0**-21) / 3,
        first_index=(0, 2),
        first_values=("4.0000005", "4.0"),
        first_hex=("0x1.000002p+2", "0x1.000000p+2"),
        worst_index=(1, 2),
        worst_values=("101.0", "100.0"),
        signed_zero=1,
        passes_at=PassesAt(rtol=0.01, atol=1.0, ulp=131072),
        within=True,
    )


def test_equal_arrays() -> None:
    found = both([1.0, math.nan], [1.0, math.nan])
    assert (found.kind, found.within, found.differing, found.size) == ("equal", True, 0, 2)
    assert (found.max_ulp, found.max_abs, found.max_rel, needed_by(found)) == (0, 0.0, 0.0, None)
    assert both([1, 2], [1, 2]).max_ulp is None
    assert both([True], [True]).max_abs is None


@pytest.mark.parametrize("shape", [(0,), (3, 0, 2), (0, 2**40)])
def test_arrays_without_elements_are_equal(shape: tuple[int, ...]) -> None:
    found = both(np.empty(shape, np.float32), np.empty(shape, np.float32))
    assert (found.kind, found.size, found.within) == ("equal", 0, True)


def test_a_scalar_has_the_empty_index() -> None:
    found = both(np.float64(1.0), np.float64(2.0))
    assert (found.first_index, found.worst_index, found.shape) == ((), (), ())


def test_other_shape_and_other_dtype_never_pass() -> None:
    loose = Tolerance(rtol=1e300, atol=1e300, ulp=2**63)
    found = both(np.zeros((2, 3)), np.zeros((3, 2)), loose)
    assert (found.kind, found.within, needed_by(found)) == ("shape", False, None)
    assert (found.shape, found.other_shape) == ((2, 3), (3, 2))
    found = both(np.zeros(3, np.float32), np.zeros((2, 2)), loose)
    assert (found.kind, found.within, found.dtype, found.other_dtype) == ("dtype", False, "float32", "float64")


def test_nan_everywhere_is_equal_to_itself_and_payloads_are_counted() -> None:
    quiet = np.full(1000, np.nan, np.float32)
    assert both(quiet, quiet).kind == "equal"
    other = quiet.copy()
    other.view(np.uint32)[::2] |= 1
    found = both(other, quiet)
    assert (found.differing, found.nan_payload, found.nan_changed, found.within) == (500, 500, 0, False)
    assert (found.max_ulp, found.max_abs, found.worst_index) == (None, None, None)
    assert needed_by(found) == Tolerance(rtol=SMALLEST, atol=SMALLEST, ulp=1)
    assert both(other, quiet, Tolerance(ulp=1)).within


@pytest.mark.parametrize(("a", "b"), [(math.nan, 1.0), (1.0, math.nan), (math.inf, 1.0), (math.inf, -math.inf)])
def test_a_change_to_or_from_nan_and_infinity_never_passes(a: float, b: float) -> None:
    found = both([a, 1.0], [b, 1.0], Tolerance(rtol=1e300, atol=1e300, ulp=2**63))
    assert (found.within, needed_by(found)) == (False, None)
    assert (found.nan_changed, found.inf_changed) == ((1, 0) if math.isnan(a) or math.isnan(b) else (0, 1))


def test_the_largest_float_and_infinity_are_neighbours_but_do_not_agree() -> None:
    assert not both([np.finfo(np.float32).max], [np.inf], Tolerance(ulp=10)).within


def test_nan_becoming_infinity_is_counted_once() -> None:
    found = both([math.nan], [math.inf])
    assert (found.nan_changed, found.inf_changed) == (1, 0)


def test_overflowing_differences_are_infinite_and_pass_by_ulp_alone() -> None:
    found = both([1.7e308], [-1.7e308])
    assert found.max_abs == np.finfo(np.float64).max
    needed = needed_by(found)
    assert needed is not None
    assert (needed.rtol, needed.atol) == (math.inf, math.inf)
    assert both([1.7e308], [-1.7e308], Tolerance(ulp=needed.ulp)).within


def test_a_modulus_that_overflows_does_not_excuse_everything() -> None:
    big = np.finfo(np.float64).max
    found = both([complex(0, big)], [complex(big, big)])
    needed = needed_by(found)
    assert needed is not None
    assert (needed.rtol, found.max_rel) == (1.0, 1.0)
    assert both([complex(0, big)], [complex(big, big)], Tolerance(atol=needed.atol)).within


def test_a_reference_of_zero_leaves_no_relative_tolerance() -> None:
    found = both([1e-9, 1.0], [0.0, 1.0])
    needed = needed_by(found)
    assert needed is not None
    assert (needed.rtol, needed.atol) == (math.inf, 1e-9)
    assert found.max_rel is None


def test_extreme_integers_do_not_overflow() -> None:
    low, high = -(2**63), 2**63 - 1
    found = both(np.array([low, high, 0]), np.array([high, low, 0]))
    assert found.max_abs == 2.0**64
    needed = needed_by(found)
    assert needed is not None
    assert both(np.array([low]), np.array([high]), Tolerance(atol=needed.atol)).within
    # 2^64 - 1 is not within 2^64 - 2048, the float below 2^64.
    assert not both(np.array([low]), np.array([high]), Tolerance(atol=2.0**64 - 2048)).within
    assert not both(np.array([low]), np.array([high]), Tolerance(ulp=2**63)).within
    found = both(np.array([2**64 - 1], np.uint64), np.array([0], np.uint64))
    assert (found.max_abs, found.first_values) == (2.0**64, ("18446744073709551615", "0"))


def test_neighbouring_large_integers_are_told_apart_exactly() -> None:
    a, b = np.array([2**62 + 1]), np.array([2**62])
    assert both(a, b).max_abs == 1.0
    assert both(a, b, Tolerance(atol=1.0)).within
    assert not both(a, b, Tolerance(atol=0.999)).within


def test_booleans_are_equal_or_not() -> None:
    found = both([True, False, True], [True, True, True], Tolerance(rtol=1.0, atol=1.0, ulp=9))
    assert (found.kind, found.within, found.differing, found.first_index) == ("values", False, 1, (1,))
    assert (found.first_values, found.first_hex, needed_by(found)) == (("False", "True"), ("0x00", "0x01"), None)
    assert (found.max_abs, found.worst_index) == (None, None)


def test_times() -> None:
    a = np.array(["2026-12-01T00:00:00", "2026-12-02", "NaT"], "datetime64[s]")
    b = np.array(["2026-12-01T00:00:01", "NaT", "NaT"], "datetime64[s]")
    found = both(a, b, Tolerance(rtol=1.0, atol=10.0))
    assert (found.dtype, found.differing, found.nan_changed, found.within) == ("datetime64[s]", 2, 1, False)
    assert (found.max_abs, needed_by(found)) == (1.0, None)
    assert found.first_values == ("2026-12-01T00:00:00", "2026-12-01T00:00:01")
    spans = both(np.array([5, 7], "timedelta64[ms]"), np.array([5, 8], "timedelta64[ms]"), Tolerance(atol=1.0))
    assert (spans.within, needed_by(spans)) == (True, Tolerance(rtol=0.125, atol=1.0))
    assert not both(np.array([5], "m8[ms]"), np.array(["NaT"], "m8[ms]"), Tolerance(atol=1e300)).within
    assert both(np.array([5], "m8[ms]"), np.array([5], "m8[s]")).kind == "dtype"


def test_text_elements() -> None:
    found = both(np.array(["ab", "cdé", "x"]), np.array(["ab", "cdf", "x"]))
    assert (found.dtype, found.differing, found.first_values) == ("<U3", 1, ("'cdé'", "'cdf'"))
    found = both(np.array([b"ab", b"cd"]), np.array([b"ab", b"ce"]), Tolerance(atol=10.0))
    assert (found.within, found.first_index, found.first_values) == (False, (1,), ("b'cd'", "b'ce'"))


def test_complex_numbers_are_measured_by_modulus_and_part() -> None:
    a, b = np.array([3 + 4j, 1 + 1j]), np.array([0j, 1 + np.nextafter(1, 2) * 1j])
    found = both(a, b)
    assert found.max_abs == 5.0
    assert both(a[1:], b[1:]).max_ulp == 1
    assert found.first_values == ("(3.0+4.0j)", "(0.0+0.0j)")
    assert found.first_hex is not None
    assert found.first_hex[0] == "(0x1.8000000000000p+1, 0x1.0000000000000p+2)"
    half_nan = both([complex(math.nan, 1.0)], [complex(math.nan, 2.0)])
    assert (half_nan.max_abs, half_nan.nan_changed) == (1.0, 0)


@pytest.mark.skipif(not X87, reason="the long double of this machine is not x87's")
def test_padding_of_long_doubles_does_not_count() -> None:
    a = np.array([1.0, 2.0, 3.0], np.longdouble)
    b = a.copy()
    b.view(np.uint8).reshape(-1, 16)[:, 10:] = 77
    assert both(a, b).kind == "equal"
    b[1] = np.nextafter(b[1], np.longdouble(3))
    b.view(np.uint8).reshape(-1, 16)[:, 10:] = 77
    found = both(a, b)
    assert (found.differing, found.max_ulp, found.first_index) == (1, 1, (1,))
    assert found.max_abs == 2.0**-62
    assert found.first_values is not None
    assert np.longdouble(found.first_values[1]) == b[1]
    assert found.dtype == "longdouble"


def test_long_doubles_of_another_machine_compare_by_bits_and_ulp() -> None:
    foreign = "binary128" if X87 else "longdouble"
    one = (0x3FFF << 112).to_bytes(16, "little") if X87 else (0x3FFF << 64 | 1 << 63).to_bytes(16, "little")
    near = (int.from_bytes(one, "little") + 1).to_bytes(16, "little")
    zero, minus = bytes(16), bytes(15) + b"\x80" if X87 else bytes(9) + b"\x80" + bytes(6)
    a, b = raw_source(foreign, one + zero), raw_source(foreign, near + minus)
    found = compare(a, b, EXACT)
    assert (found.differing, found.max_ulp, found.signed_zero) == (2, 1, 1)
    assert (found.max_abs, found.max_rel, found.mean_abs) == (None, None, None)
    assert needed_by(found) == Tolerance(rtol=math.inf, atol=math.inf, ulp=1)
    assert compare(a, b, Tolerance(ulp=1)).within
    assert not compare(a, b, Tolerance(rtol=1.0)).within


def test_the_two_numbers_of_a_4_bit_byte() -> None:
    a, b = (Source.from_numpy(np.array([byte], np.uint8), "float4_e2m1fn_x2") for byte in (0x21, 0x31))
    found = compare(a, b, EXACT)
    assert (found.first_values, found.max_ulp, found.max_abs) == (("(0.5, 1.0)", "(0.5, 1.5)"), 1, 0.5)


def test_stored_objects_are_compared_through_maps(store_object: Callable[..., Path]) -> None:
    a = np.arange(100_000, dtype=np.float32)
    b = a.copy()
    b[[5, 99_999]] += 0.5
    left, right = (Source.from_object(store_object("F32", a.shape, side)) for side in (a, b))
    found = compare(left, right, EXACT)
    assert (found.differing, found.first_index, found.max_abs) == (2, (5,), 0.5)


def test_a_tensor_at_an_odd_address_compares_alike(tmp_path: Path) -> None:
    a = np.random.default_rng(1).standard_normal(10_000)
    b = a.copy()
    b[777] += 1.0
    sources = []
    for name, side in (("a", a), ("b", b)):
        path = tmp_path / name
        path.write_bytes(b"xyz" + side.tobytes())
        sources.append(Source.from_mapped(path, 3, TABLE["float64"], a.shape))
    found = compare(sources[0], sources[1], EXACT)
    assert (found.differing, found.first_index) == (1, (777,))


def test_missing_outputs_and_order_of_names() -> None:
    one, two = Source.from_numpy(np.zeros(2, np.float32)), Source.from_numpy(np.ones(3))
    asked: list[str] = []

    def tolerance_for(name: str) -> Tolerance:
        asked.append(name)
        return EXACT

    found = compare_maps({"x": one, "a": one}, {"b": two, "a": one}, tolerance_for)
    assert list(found) == ["x", "a", "b"]
    assert asked == ["a"]
    assert found["a"].kind == "equal"
    extra, lost = found["x"], found["b"]
    assert (extra.kind, extra.dtype, extra.shape, extra.other_dtype, extra.other_shape) == (
        "missing",
        "float32",
        (2,),
        "",
        (),
    )
    assert (lost.kind, lost.dtype, lost.shape, lost.other_dtype, lost.other_shape) == (
        "missing",
        "",
        (),
        "float64",
        (3,),
    )
    assert not extra.within
    assert needed_by(extra) is None


def test_nothing_is_opened_before_it_is_compared(store_object: Callable[..., Path]) -> None:
    path = store_object("F32", (2,), np.zeros(2, np.float32))
    source = Source.from_object(path)
    path.unlink()
    with pytest.raises(StoreError, match="can't be read"):
        compare(source, source, EXACT)


@pytest.mark.parametrize(
    ("name", "step"), [("float32", 1000), ("float32", 1), ("uint8", 1), ("float8_e5m2", 1), ("complex128", 1)]
)
def test_memory_does_not_grow_with_the_arrays(name: str, step: int) -> None:
    itemsize = TABLE[name].itemsize
    a = np.random.default_rng(0).integers(0, 100, (16 << 20) // itemsize * itemsize, np.uint8)
    b = a.copy()
    b[:: step * itemsize] ^= 1
    left, right = (Source.from_numpy(side.reshape(-1, itemsize) if itemsize > 1 else side, name) for side in (a, b))
    tracemalloc.start()
    try:
        compare(left, right, Tolerance(rtol=1e-3))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 40 << 20


def test_what_overflows_keeps_its_json() -> None:
    found = both([1.7e308, 1e-9], [-1.7e308, 0.0])
    assert msgspec.json.decode(msgspec.json.encode(found), type=Difference) == found
    assert (found.passes_at, found.max_abs) == (PassesAt(ulp=needed_ulp(found)), np.finfo(np.float64).max)


def needed_ulp(found: Difference) -> int:
    assert found.passes_at is not None
    assert found.passes_at.ulp is not None
    return found.passes_at.ulp

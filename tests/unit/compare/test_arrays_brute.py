"""Properties of `arrays.compare`, against the same comparison written a second time, an element at a time."""

from __future__ import annotations

import math
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from reprocheck.compare.arrays import compare
from reprocheck.compare.dtypes import TABLE
from reprocheck.compare.measure import SMALLEST
from reprocheck.compare.source import Source
from reprocheck.model import Difference, Tolerance
from tests.unit.compare.conftest import needed_by

EXACT = Tolerance()
X87 = np.finfo(np.longdouble).nmant == 63

# name -> (exponent bits, mantissa bits, bias, kind of specials)
LAYOUTS = {
    "float16": (5, 10, 15, "ieee"),
    "bfloat16": (8, 7, 127, "ieee"),
    "float32": (8, 23, 127, "ieee"),
    "float64": (11, 52, 1023, "ieee"),
    "float8_e4m3fn": (4, 3, 7, "all-ones"),
    "float8_e5m2": (5, 2, 15, "ieee"),
    "float8_e4m3fnuz": (4, 3, 8, "negative-zero"),
    "float8_e5m2fnuz": (5, 2, 16, "negative-zero"),
    "float4_e2m1fn_x2": (2, 1, 1, "none"),
}
LAYOUTS["complex32"], LAYOUTS["complex64"], LAYOUTS["complex128"] = (
    LAYOUTS["float16"],
    LAYOUTS["float32"],
    LAYOUTS["float64"],
)
INTEGERS = {f"{sign}int{bits}": (bits, sign == "") for sign in ("", "u") for bits in (8, 16, 32, 64)}


def value_of(name: str, pattern: int) -> float:
    """The value of one part."""
    if name == "float8_e8m0fnu":
        return math.nan if pattern == 255 else 2.0 ** (pattern - 127)
    exponent_bits, mantissa_bits, bias, specials = LAYOUTS[name]
    sign = -1.0 if pattern >> (exponent_bits + mantissa_bits) else 1.0
    exponent = pattern >> mantissa_bits & ((1 << exponent_bits) - 1)
    mantissa = pattern & ((1 << mantissa_bits) - 1)
    top = exponent == (1 << exponent_bits) - 1
    if specials == "ieee" and top:
        return math.nan if mantissa else sign * math.inf
    if specials == "all-ones" and top and mantissa == (1 << mantissa_bits) - 1:
        return math.nan
    if specials == "negative-zero" and sign < 0 and exponent == mantissa == 0:
        return math.nan
    if exponent:
        return sign * math.ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits)
    return sign * math.ldexp(mantissa, 1 - bias - mantissa_bits)


def rank_of(name: str, pattern: int) -> int:
    """Signed position among the values."""
    if name == "float8_e8m0fnu":
        return pattern
    exponent_bits, mantissa_bits, _, _ = LAYOUTS[name]
    sign_bit = 1 << (exponent_bits + mantissa_bits)
    return -(pattern - sign_bit) if pattern & sign_bit else pattern


def parts_of(name: str, element: bytes) -> list[int]:
    """The bit patterns of an element's parts."""
    if name == "float4_e2m1fn_x2":
        return [element[0] & 15, element[0] >> 4]
    if name.startswith("complex"):
        half = len(element) // 2
        return [int.from_bytes(element[:half], "little"), int.from_bytes(element[half:], "little")]
    return [int.from_bytes(element, "little")]


@dataclass
class Expected:
    differing: int = 0
    failing: int = 0
    nan_changed: int = 0
    nan_payload: int = 0
    inf_changed: int = 0
    signed_zero: int = 0
    max_ulp: int | None = None
    max_abs: float | None = None
    max_rel: float | None = None
    first: int | None = None
    worst: int | None = None
    worst_rank: int = -1
    distances: list[float] = field(default_factory=list)
    ulps: list[int] = field(default_factory=list)


def expect(name: str, itemsize: int, a: bytes, b: bytes, tolerance: Tolerance) -> Expected:
    """Compare two runs of elements; float and integer dtypes, without the 16-byte floats."""
    result = Expected()
    for index in range(len(a) // itemsize):
        x, y = (side[index * itemsize : (index + 1) * itemsize] for side in (a, b))
        if x == y:
            continue
        result.differing += 1
        result.first = index if result.first is None else result.first
        accepted = (
            integer(name, index, (x, y), tolerance, result)
            if name in INTEGERS
            else floating(name, index, (x, y), tolerance, result)
        )
        result.failing += not (accepted and not tolerance.exact)
    return result


def integer(name: str, index: int, sides: tuple[bytes, bytes], tolerance: Tolerance, result: Expected) -> bool:
    signed = INTEGERS[name][1]
    a, b = (int.from_bytes(side, "little", signed=signed) for side in sides)
    note(result, index, abs(a - b), float(abs(a - b)), abs(float(b)))
    return abs(a - b) <= tolerance.atol + tolerance.rtol * abs(float(b))


def floating(name: str, index: int, sides: tuple[bytes, bytes], tolerance: Tolerance, result: Expected) -> bool:
    pairs = [
        (p, q, value_of(name, p), value_of(name, q))
        for p, q in zip(*(parts_of(name, side) for side in sides), strict=True)
    ]
    if any(math.isnan(u) != math.isnan(v) for _, _, u, v in pairs):
        result.nan_changed += 1
        return False
    if any(u != v and (math.isinf(u) or math.isinf(v)) for _, _, u, v in pairs if not math.isnan(u)):
        result.inf_changed += 1
        return False
    payload = any(p != q and math.isnan(u) for p, q, u, _ in pairs)
    result.nan_payload += payload
    finite = [(p, q, u, v) for p, q, u, v in pairs if math.isfinite(u)]
    if not finite:
        return True
    ulp = max(abs(rank_of(name, p) - rank_of(name, q)) for p, q, _, _ in finite)
    distance = modulus([abs(u - v) for _, _, u, v in finite])
    scale = min(modulus([abs(v) for _, _, _, v in finite]), sys.float_info.max)
    result.signed_zero += ulp == 0 and not payload
    result.max_ulp = max(result.max_ulp or 0, ulp)
    result.ulps.append(ulp)
    note(result, index, ulp, distance, scale)
    close = math.isfinite(distance) and distance <= tolerance.atol + tolerance.rtol * scale
    return close or 0 < tolerance.ulp >= ulp


def note(result: Expected, index: int, rank: int, distance: float, scale: float) -> None:
    if rank > result.worst_rank:
        result.worst_rank, result.worst = rank, index
    result.distances.append(distance)
    result.max_abs = max(result.max_abs or 0.0, distance)
    if scale > 0 and distance > 0:
        with np.errstate(over="ignore"):
            result.max_rel = max(result.max_rel or 0.0, float(np.float64(distance) / scale))


def modulus(parts: list[float]) -> float:
    # numpy's hypot: Python's own differs in the last bit.
    with np.errstate(over="ignore"):
        return parts[0] if len(parts) == 1 else float(np.hypot(parts[0], parts[1]))


def interesting(name: str) -> list[int]:
    """Patterns where mistakes hide: zeros, neighbours, subnormals, the largest, infinities, several NaN."""
    if name in INTEGERS:
        bits = INTEGERS[name][0]
        return sorted({0, 1, 2, 2**bits - 1, 2**bits - 2, 2 ** (bits - 1), 2 ** (bits - 1) - 1, 2 ** (bits - 1) + 1})
    if name == "float8_e8m0fnu":
        return [0, 1, 127, 128, 254, 255]
    exponent_bits, mantissa_bits, bias, _ = LAYOUTS[name]
    sign = 1 << (exponent_bits + mantissa_bits)
    one = bias << mantissa_bits
    top = ((1 << exponent_bits) - 1) << mantissa_bits
    low = {
        0,
        1,
        2,
        (1 << mantissa_bits) - 1,
        1 << mantissa_bits,
        one,
        one + 1,
        one - 1,
        top - 1,
        top,
        top + 1,
        sign - 1,
    }
    return sorted({pattern | flag for pattern in low for flag in (0, sign)})


def pack(name: str, patterns: list[int]) -> bytes:
    """Part patterns as stored bytes (4-bit parts: two per byte)."""
    if name == "float4_e2m1fn_x2":
        return bytes(low | high << 4 for low, high in zip(patterns[::2], patterns[1::2], strict=True))
    size = part_size(name)
    return b"".join(struct.pack("<Q", pattern)[:size] for pattern in patterns)


def part_size(name: str) -> int:
    if name in INTEGERS:
        return INTEGERS[name][0] // 8
    if name == "float8_e8m0fnu":
        return 1
    exponent_bits, mantissa_bits, _, _ = LAYOUTS[name]
    return max(8, 1 + exponent_bits + mantissa_bits) // 8


NUMERIC = [*LAYOUTS, "float8_e8m0fnu", *INTEGERS]


def raw_source(name: str, raw: bytes) -> Source:
    units = TABLE[name].itemsize
    return Source.from_numpy(
        np.frombuffer(raw, np.uint8).reshape(-1, units) if units > 1 else np.frombuffer(raw, np.uint8), name
    )


def both(a: object, b: object, tolerance: Tolerance = EXACT, **options: int) -> Difference:
    return compare(Source.from_numpy(np.asarray(a)), Source.from_numpy(np.asarray(b)), tolerance, **options)


@dataclass
class Case:
    name: str
    a: bytes
    b: bytes

    def compare(self, tolerance: Tolerance = EXACT, chunk_bytes: int = 64) -> Difference:
        return compare(raw_source(self.name, self.a), raw_source(self.name, self.b), tolerance, chunk_bytes=chunk_bytes)


@st.composite
def cases(draw: st.DrawFn, names: list[str] = NUMERIC) -> Case:
    """Two arrays of one dtype that share some elements and have nasty values."""
    name = draw(st.sampled_from(names))
    parts = TABLE[name].parts
    size = draw(st.integers(1, 40)) * parts
    top = 2 ** (4 if name == "float4_e2m1fn_x2" else 8 * part_size(name))
    pattern = st.one_of(st.sampled_from(interesting(name)), st.integers(0, top - 1))
    a = draw(st.lists(pattern, min_size=size, max_size=size))
    change = st.one_of(pattern.map(lambda p: lambda _: p), st.integers(-3, 3).map(lambda d: lambda p: (p + d) % top))
    changes: dict[int, Callable[[int], int]] = draw(st.dictionaries(st.integers(0, size - 1), change, max_size=size))
    b = [changes[i](pattern) if i in changes else pattern for i, pattern in enumerate(a)]
    return Case(name, pack(name, a), pack(name, b))


tolerances = st.builds(
    Tolerance,
    rtol=st.sampled_from([0.0, SMALLEST, 1e-7, 1e-3, 1.0, 1e300]),
    atol=st.sampled_from([0.0, SMALLEST, 1e-40, 1e-7, 1.0, 3.0, 2.0**63, 1e308]),
    ulp=st.sampled_from([0, 1, 2, 10, 2**62, 2**64 - 1]),
)


@settings(max_examples=300, deadline=None)
@given(case=cases(), tolerance=tolerances)
def test_agrees_with_the_plain_comparison(case: Case, tolerance: Tolerance) -> None:
    found = case.compare(tolerance)
    itemsize = TABLE[case.name].itemsize
    expected = expect(case.name, itemsize, case.a, case.b, tolerance)
    assert found.size == len(case.a) // itemsize
    assert found.differing == expected.differing
    assert found.kind == ("values" if expected.differing else "equal")
    assert found.within == (expected.failing == 0)
    for name in ("nan_changed", "nan_payload", "inf_changed", "signed_zero"):
        assert getattr(found, name) == getattr(expected, name), name
    if not expected.differing:
        return
    for name in ("max_ulp", "max_abs", "max_rel"):
        value = getattr(expected, name)
        assert getattr(found, name) == (sys.float_info.max if value == math.inf else value), name
    assert found.first_index == (expected.first,)
    assert found.worst_index == (None if expected.worst is None else (expected.worst,))
    buckets: dict[str, int] = {}
    for ulp in sorted(filter(None, expected.ulps)):
        power = (ulp - 1).bit_length()
        label = str(ulp) if power <= 1 else f"{2 ** (power - 1) + 1}-{2**power}"
        buckets[label] = buckets.get(label, 0) + 1
    assert found.ulp_histogram == buckets
    if not expected.distances:
        assert found.mean_abs is None
    elif math.isinf(mean := sum(expected.distances) / len(expected.distances)):
        assert found.mean_abs == sys.float_info.max
        assert mean == math.inf
    else:
        assert found.mean_abs == pytest.approx(mean, rel=1e-12)


@settings(max_examples=300, deadline=None)
@given(case=cases())
def test_what_passes_at_names_really_passes_and_nothing_smaller_does(case: Case) -> None:
    check_passes_at(case.compare, case.name)


def check_passes_at(run: Callable[[Tolerance], Difference], name: str) -> None:
    found = run(EXACT)
    needed = needed_by(found)
    if not found.differing:
        assert needed is None
        return
    if needed is None:
        assert found.nan_changed or found.inf_changed
        assert not run(Tolerance(rtol=1e300, atol=1e308, ulp=2**64 - 1)).within
        return
    harmless = TABLE[name].parts == 1 and found.signed_zero + found.nan_payload == found.differing
    if math.isfinite(needed.rtol):
        assert run(Tolerance(rtol=needed.rtol)).within
        # Where products fall below the normal range, rounding makes steps larger than this.
        if needed.rtol > SMALLEST and name not in ("float64", "complex128", "longdouble"):
            assert not run(Tolerance(rtol=needed.rtol * (1 - 1e-12))).within
    else:
        assert not run(Tolerance(rtol=1.7e308)).within
    if math.isfinite(needed.atol):
        assert run(Tolerance(atol=needed.atol)).within
        assert needed.atol == SMALLEST or not run(Tolerance(atol=math.nextafter(needed.atol, 0.0))).within
    else:
        assert not run(Tolerance(atol=1.7e308)).within
    if name in INTEGERS:
        assert needed.ulp == 0
    else:
        assert run(Tolerance(ulp=needed.ulp)).within
        assert not run(Tolerance(ulp=needed.ulp - 1)).within
    assert not harmless or (needed.rtol, needed.atol) == (SMALLEST, SMALLEST)


@given(a=st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=50), data=st.data())
def test_the_smallest_rtol_of_ordinary_float64_is_sharp(a: list[float], data: st.DataObject) -> None:
    b = [x * data.draw(st.floats(0.5, 2.0)) for x in a]
    needed = needed_by(both(a, b))
    if needed is not None:
        assert both(a, b, Tolerance(rtol=needed.rtol)).within
        assert not both(a, b, Tolerance(rtol=needed.rtol * (1 - 1e-12))).within


@settings(max_examples=60, deadline=None)
@given(case=cases(), chunks=st.sampled_from([1, 64, 100, 1 << 20]))
def test_the_chunk_size_does_not_matter(case: Case, chunks: int) -> None:
    # But for the mean, whose sum may round differently.
    one, other = case.compare(), case.compare(chunk_bytes=chunks)
    left, right = ({f: getattr(d, f) for f in d.__struct_fields__ if f != "mean_abs"} for d in (one, other))
    assert left == right


long_doubles = st.builds(
    lambda x, y, power: (
        (np.longdouble(x) + np.longdouble(y) * np.longdouble(2.0**-53)) * np.ldexp(np.longdouble(1), power)
    ),
    st.sampled_from([0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan]) | st.floats(-2.0, 2.0),
    st.floats(-1.0, 1.0),
    st.sampled_from([0, 0, 0, 5, -16440, 16380]),
)


@pytest.mark.skipif(not X87, reason="the long double of this machine is not x87's")
@settings(max_examples=300, deadline=None)
@given(a=st.lists(long_doubles, min_size=1, max_size=8), b=st.lists(long_doubles, min_size=1, max_size=8))
def test_what_long_doubles_pass_at_really_passes(a: list[np.longdouble], b: list[np.longdouble]) -> None:
    size = min(len(a), len(b))
    left, right = np.array(a[:size], np.longdouble), np.array(b[:size], np.longdouble)
    check_passes_at(lambda tolerance: both(left, right, tolerance), "longdouble")
    found = both(left, right)
    changed = np.isnan(left) != np.isnan(right)
    infinite = ~changed & ~np.isnan(left) & (left != right) & (np.isinf(left) | np.isinf(right))
    assert (found.nan_changed, found.inf_changed) == (changed.sum(), infinite.sum())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30, deadline=None)
@given(case=cases())
def test_stored_and_held_arrays_give_the_same_answer(case: Case, store_object: Callable[..., Path]) -> None:
    dtype = TABLE[case.name]
    shape = (len(case.a) // dtype.itemsize, *dtype.axes)
    named = None if dtype.native else case.name
    a, b = (Source.from_object(store_object(dtype.code, shape, side, named)) for side in (case.a, case.b))
    assert compare(a, b, EXACT) == case.compare(chunk_bytes=1 << 20)

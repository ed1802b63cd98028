from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from reprocheck.compare.dtypes import TABLE
from reprocheck.compare.floats import ULP_LIMIT, Bits, FloatFormat, exact_value

FORMS = {dtype.form.name: dtype.form for dtype in TABLE.values() if dtype.form}
SMALL = [form for form in FORMS.values() if form.width <= 16]
X87 = np.finfo(np.longdouble).nmant == 63

# All finite magnitudes of the 4- and 8-bit formats, from the tables of the OCP specifications.
LARGEST = {
    "float4_e2m1fn": 6.0,
    "float8_e4m3fn": 448.0,
    "float8_e5m2": 57344.0,
    "float8_e4m3fnuz": 240.0,
    "float8_e5m2fnuz": 57344.0,
    "float8_e8m0fnu": 2.0**127,
    "float16": 65504.0,
    "bfloat16": float.fromhex("0x1.fep127"),
}
SMALLEST = {
    "float4_e2m1fn": 0.5,
    "float8_e4m3fn": 2.0**-9,
    "float8_e5m2": 2.0**-16,
    "float8_e4m3fnuz": 2.0**-10,
    "float8_e5m2fnuz": 2.0**-17,
    "float8_e8m0fnu": 2.0**-127,
    "float16": 2.0**-24,
    "bfloat16": 2.0**-133,
}
# inf patterns, NaN patterns.
SPECIALS = {
    "float4_e2m1fn": (0, 0),
    "float8_e4m3fn": (0, 2),
    "float8_e5m2": (2, 6),
    "float8_e4m3fnuz": (0, 1),
    "float8_e5m2fnuz": (0, 1),
    "float8_e8m0fnu": (0, 1),
    "float16": (2, 2 * 1023),
    "bfloat16": (2, 2 * 127),
}


def every(form: FloatFormat) -> Bits:
    return np.arange(1 << form.width, dtype=f"u{max(8, form.width) // 8}")


def decoded(form: FloatFormat, bits: Bits) -> NDArray[np.float64]:
    values = form.decode(bits)
    assert values is not None
    return values.astype(np.float64, copy=False)


@pytest.mark.parametrize("form", SMALL, ids=lambda form: form.name)
def test_values_and_specials_are_those_of_the_specification(form: FloatFormat) -> None:
    bits = every(form)
    values = decoded(form, bits)
    finite = values[np.isfinite(values)]
    assert finite.max() == LARGEST[form.name]
    assert finite[finite > 0].min() == SMALLEST[form.name]
    assert (int(form.is_inf(bits).sum()), int(form.is_nan(bits).sum())) == SPECIALS[form.name]
    assert (np.isnan(values) == form.is_nan(bits)).all()
    assert (np.isinf(values) == form.is_inf(bits)).all()


@pytest.mark.parametrize("form", SMALL, ids=lambda form: form.name)
def test_distances_count_the_values_between_for_every_pair_of_a_sample(form: FloatFormat) -> None:
    bits = every(form)
    finite = bits[~(form.is_nan(bits) | form.is_inf(bits))]
    ranks = {value: rank for rank, value in enumerate(np.unique(decoded(form, finite)))}
    sample = finite if len(finite) <= 256 else np.random.default_rng(0).choice(finite, 300, replace=False)
    a, b = (side.reshape(-1) for side in np.meshgrid(sample, sample))
    rank_a, rank_b = (np.array([ranks[value] for value in decoded(form, side)]) for side in (a, b))
    assert (form.distance(a, b) == np.abs(rank_a - rank_b).astype(np.uint64)).all()


@pytest.mark.parametrize("form", SMALL, ids=lambda form: form.name)
def test_order_is_monotone_and_joins_the_zeros(form: FloatFormat) -> None:
    bits = every(form)
    bits = bits[~form.is_nan(bits)]
    values, order = decoded(form, bits), form.ordered(bits)
    by_value = np.argsort(values, kind="stable")
    steps = np.diff(order[by_value])
    assert (steps >= 0).all()
    assert ((steps == 0) == (np.diff(values[by_value]) == 0)).all()


@pytest.mark.parametrize(
    "name",
    ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu", "float16"],
)
def test_values_are_those_of_torch(name: str) -> None:
    torch = pytest.importorskip("torch")
    form = FORMS[name]
    bits = every(form)
    raw = torch.from_numpy(bits.view(f"i{bits.itemsize}").copy())
    expected = raw.view(getattr(torch, name)).to(torch.float64).numpy()
    np.testing.assert_array_equal(decoded(form, bits), expected)


NUMPY: dict[str, type[np.floating[Any]]] = {"float16": np.float16, "float32": np.float32, "float64": np.float64}


@given(
    name=st.sampled_from(sorted(NUMPY)),
    start=st.floats(allow_nan=False, allow_infinity=False, width=16),
    scale=st.sampled_from([1.0, 2.0**-24, 3.1, 1e-40]),
    steps=st.integers(0, 40),
    up=st.booleans(),
)
def test_a_walk_of_n_neighbours_is_n_units(name: str, start: float, scale: float, steps: int, up: bool) -> None:
    kind = NUMPY[name]
    here = begin = np.array([start * scale], kind)
    for _ in range(steps):
        here = np.nextafter(here, kind(math.inf if up else -math.inf))
    if not np.isfinite(here[0]):
        return
    unsigned = f"u{begin.itemsize}"
    assert int(FORMS[name].distance(begin.view(unsigned), here.view(unsigned))[0]) == steps


@given(name=st.sampled_from(["float32", "float64"]), value=st.floats(min_value=1e-30, max_value=1e30))
def test_one_spacing_is_one_unit(name: str, value: float) -> None:
    kind = NUMPY[name]
    here = np.array([value], kind)
    unsigned = f"u{here.itemsize}"
    there = here + np.spacing(here)
    assert int(FORMS[name].distance(here.view(unsigned), there.view(unsigned))[0]) == 1


@given(a=st.floats(allow_nan=False), b=st.floats(allow_nan=False))
def test_float64_order_agrees_with_the_values(a: float, b: float) -> None:
    bits = np.array([a, b]).view(np.uint64)
    first, second = FORMS["float64"].ordered(bits)
    assert (first < second) == (a < b)
    assert (first == second) == (a == b)


def test_the_largest_float64_distance_does_not_overflow() -> None:
    bits = np.array([-math.inf, math.inf]).view(np.uint64)
    assert int(FORMS["float64"].distance(bits[:1], bits[1:])[0]) == 2 * 0x7FF0000000000000


WIDE = st.integers(0, 2**15 - 1), st.integers(0, 2**112 - 1), st.booleans()


def wide_bits(form: FloatFormat, exponent: int, fraction: int, negative: bool) -> tuple[Bits, int]:
    """A pattern of a 16-byte format, and its place in the order as a Python integer."""
    fraction &= (1 << form.mantissa) - 1
    rank = exponent << form.mantissa | fraction
    pattern = exponent << (form.width - 16) | fraction | negative * form.sign_bit
    if form.integer_bit and exponent:
        pattern |= 1 << 63
    return np.array([[pattern & ULP_LIMIT, pattern >> 64]], np.uint64), -rank if negative else rank


@given(form=st.sampled_from([FORMS["longdouble"], FORMS["binary128"]]), a=st.tuples(*WIDE), b=st.tuples(*WIDE))
def test_wide_distances_are_exact_and_saturate(
    form: FloatFormat, a: tuple[int, int, bool], b: tuple[int, int, bool]
) -> None:
    (bits_a, rank_a), (bits_b, rank_b) = wide_bits(form, *a), wide_bits(form, *b)
    expected = min(abs(rank_a - rank_b), ULP_LIMIT)
    assert int(form.distance(bits_a, bits_b)[0]) == expected
    special = a[0] == 2**15 - 1
    fraction = a[1] & ((1 << form.mantissa) - 1)
    assert bool(form.is_nan(bits_a)[0]) == (special and fraction != 0)
    assert bool(form.is_inf(bits_a)[0]) == (special and fraction == 0)


@pytest.mark.skipif(not X87, reason="the long double of this machine is not x87's")
@given(
    start=st.floats(allow_nan=False, allow_infinity=False),
    steps=st.integers(0, 40),
    up=st.booleans(),
    tiny=st.booleans(),
)
def test_long_double_walks(start: float, steps: int, up: bool, tiny: bool) -> None:
    begin = np.array([start], np.longdouble)
    if tiny:
        begin = begin * np.ldexp(np.longdouble(1), -16400)
    here = begin
    for _ in range(steps):
        here = np.nextafter(here, np.longdouble(math.inf if up else -math.inf))
    form = FORMS["longdouble"]
    bits = [side.view(np.uint64).reshape(1, 2) & np.array([ULP_LIMIT, 0xFFFF], np.uint64) for side in (begin, here)]
    assert int(form.distance(*bits)[0]) == steps
    assert not form.is_nan(bits[1])[0]
    decoded_values = form.decode(bits[1])
    assert decoded_values is not None
    assert decoded_values[0] == here[0]


def test_x87_invalid_operands_are_nan_and_pseudo_denormals_are_values() -> None:
    form = FORMS["longdouble"]
    unnormal = np.array([[1, 0x3FFF]], np.uint64)
    pseudo_infinity = np.array([[0, 0x7FFF]], np.uint64)
    assert form.is_nan(unnormal)[0]
    assert form.is_nan(pseudo_infinity)[0]
    assert not form.is_inf(pseudo_infinity)[0]
    pseudo_denormal, normal = np.array([[1 << 63, 0]], np.uint64), np.array([[1 << 63, 1]], np.uint64)
    assert not form.is_nan(pseudo_denormal)[0]
    assert int(form.distance(pseudo_denormal, normal)[0]) == 0


def test_foreign_long_doubles_do_not_decode() -> None:
    foreign = FORMS["binary128" if X87 else "longdouble"]
    assert foreign.decode(np.zeros((1, 2), np.uint64)) is None


def test_exact_values_are_the_decoded_ones() -> None:
    for form in SMALL:
        bits = every(form)
        bits = bits[~(form.is_nan(bits) | form.is_inf(bits))]
        for pattern, value in itertools.islice(zip(bits.tolist(), decoded(form, bits), strict=True), 0, None, 7):
            sign = -1 if pattern & form.sign_bit else 1
            assert sign * exact_value(form, pattern & ~form.sign_bit) == Fraction(float(value))

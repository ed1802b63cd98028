from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from reprocheck.compare.dtypes import TABLE, DType
from reprocheck.compare.render import decimal_text, hex_text, shortest_decimal
from reprocheck.compare.source import Source

X87 = np.finfo(np.longdouble).nmant == 63


def element(value: object, name: str | None = None) -> tuple[DType, np.ndarray[tuple[int, ...], np.dtype[np.uint8]]]:
    source = Source.from_numpy(np.asarray(value), name)
    return source.dtype, source.open().read(0, 1)


def figures(text: str) -> str:
    """The significant digits of a number's text."""
    return text.replace("-", "").replace(".", "").partition("e")[0].strip("0")


@settings(max_examples=500, deadline=None)
@given(value=st.floats())
def test_float64_is_spelt_as_python_spells_it(value: float) -> None:
    assert decimal_text(*element(value)) == repr(value)
    if not math.isnan(value):
        assert hex_text(*element(value)) == value.hex()


@pytest.mark.parametrize(
    "value",
    [1e23, 9007199254740993.0, 2.0**-44, 5e-324, 18014398509481992.0, 2.0**1023, 1e16, 1e15, 1e-4, 1e-5, 0.3, 2.5],
)
def test_float64_where_rounding_is_close(value: float) -> None:
    assert decimal_text(*element(value)) == repr(value)


@settings(max_examples=300, deadline=None)
@given(value=st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_float32_is_as_short_as_numpys_and_reads_back(value: float) -> None:
    text = decimal_text(*element(np.float32(value)))
    assert np.float32(text).tobytes() == np.float32(value).tobytes()
    ours, numpys = (
        t.replace("-", "").replace(".", "").partition("e")[0].strip("0") for t in (text, str(np.float32(value)))
    )
    assert len(ours) == len(numpys)
    assert float.fromhex(hex_text(*element(np.float32(value)))) == value


def test_every_float16_reads_back() -> None:
    for pattern in range(0, 1 << 16, 3):
        value = np.uint16(pattern).view(np.float16)
        if np.isfinite(value):
            assert np.float16(decimal_text(*element(value))).tobytes() == value.tobytes()


def test_bfloat16_reads_back_and_nothing_shorter_does() -> None:
    form = TABLE["bfloat16"].form
    assert form is not None
    bits = np.arange(1 << 15, dtype=np.uint16)
    bits = bits[~(form.is_nan(bits) | form.is_inf(bits))]
    values = form.decode(bits)
    assert values is not None

    def read(text: str) -> int:
        """The nearest pattern; of two equally near ones, the even."""
        apart = np.abs(values - float(text))
        nearest = np.flatnonzero(apart == apart.min())
        return int(nearest[nearest % 2 == 0][0] if len(nearest) > 1 else nearest[0])

    for pattern in range(1, len(bits), 211):
        text = shortest_decimal(form, pattern)
        assert read(text) == pattern
        if (digits := len(figures(text))) > 1:
            assert read(f"{values[pattern]:.{digits - 2}e}") != pattern


def test_formats_of_8_bits_are_exact() -> None:
    for name in ("float8_e4m3fn", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn_x2"):
        form = TABLE[name].form
        assert form is not None
        bits = np.arange(1 << form.width, dtype=np.uint8)
        values = form.decode(bits)
        assert values is not None
        assert [shortest_decimal(form, pattern) for pattern in bits.tolist()] == [
            repr(float(value)) for value in values
        ]


@pytest.mark.skipif(not X87, reason="the long double of this machine is not x87's")
@given(value=st.floats(allow_nan=False, allow_infinity=False), power=st.sampled_from([0, -16300, 15000]))
def test_long_doubles_read_back(value: float, power: int) -> None:
    exact = np.ldexp(np.longdouble(value) + np.longdouble(value) * np.longdouble(2.0**-60), power)
    if np.isfinite(exact):
        text = decimal_text(*element(exact))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # numpy reports subnormals as overflow
            assert np.longdouble(text) == exact
        assert len(figures(text)) <= 21


def test_special_values() -> None:
    assert decimal_text(*element(np.float32(-np.inf))) == "-inf"
    assert decimal_text(*element(np.float32(-0.0))) == "-0.0"
    assert hex_text(*element(np.float32(-0.0))) == "-0x0.0p+0"
    payload = np.uint32(0xFFC00001).view(np.float32)
    assert decimal_text(*element(payload)) == "nan"
    assert hex_text(*element(payload)) == "nan(0xffc00001)"
    assert hex_text(*element(np.float64(-np.inf))) == "-inf"
    assert decimal_text(*element(np.array([0x80], np.uint8), "float8_e4m3fnuz")) == "nan"
    assert hex_text(*element(np.array([1], np.uint8), "float8_e8m0fnu")) == "0x1.0p-126"
    assert hex_text(*element(np.array([0], np.uint8), "float8_e8m0fnu")) == "0x1.0p-127"
    assert hex_text(*element(np.array([0x3F81], np.uint16), "bfloat16")) == "0x1.02p+0"


@pytest.mark.parametrize(
    ("value", "name", "decimal", "hexadecimal"),
    [
        (np.int8(-3), None, "-3", "0xfd"),
        (np.uint64(2**64 - 1), None, "18446744073709551615", "0xffffffffffffffff"),
        (np.bool_(True), None, "True", "0x01"),
        (np.complex64(1 - 2.5j), None, "(1.0-2.5j)", "(0x1.000000p+0, -0x1.400000p+1)"),
        (np.array([[1.0, 0.5]], np.float16), "complex32", "(1.0+0.5j)", "(0x1.000p+0, 0x1.000p-1)"),
        (np.array([0xF1], np.uint8), "float4_e2m1fn_x2", "(0.5, -6.0)", "(0x0.8p+0, -0x1.8p+2)"),
        (np.datetime64("2026-12-01", "D"), None, "2026-12-01", "0x0000000000005134"),
        (np.datetime64("NaT", "ns"), None, "NaT", "0x8000000000000000"),
        (np.timedelta64(-5, "ms"), None, "-5 milliseconds", "0xfffffffffffffffb"),
        (np.array("é"), None, "'é'", "0x000000e9"),
    ],
)
def test_other_kinds(value: object, name: str | None, decimal: str, hexadecimal: str) -> None:
    assert decimal_text(*element(value, name)) == decimal
    assert hex_text(*element(value, name)) == hexadecimal


@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "h", "s", "ns", "as"])
@pytest.mark.parametrize("pattern", [2**63 - 1, -(2**63) + 1, 0])
def test_extreme_times_have_a_text(unit: str, pattern: int) -> None:
    for kind in ("datetime64", "timedelta64"):
        assert decimal_text(*element(np.array([pattern], np.int64), f"{kind}[{unit}]"))

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from reprocheck.compare.arrays import compare
from reprocheck.compare.measure import SMALLEST
from reprocheck.compare.source import Source
from reprocheck.model import Difference, Tolerance
from tests.unit.compare.conftest import needed_by

EXACT = Tolerance()
LOOSE = Tolerance(rtol=1e300, atol=1e300, ulp=2**62)


def text(value: str | bytes, kind: str = "str") -> Source:
    raw = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
    return Source.from_numpy(np.frombuffer(raw, np.uint8), kind)


def strings(a: str, b: str, tolerance: Tolerance = EXACT) -> Difference:
    return compare(text(a), text(b), tolerance)


def integers(a: int, b: int, tolerance: Tolerance = EXACT) -> Difference:
    return compare(text(str(a), "int"), text(str(b), "int"), tolerance)


def test_equal_text() -> None:
    found = strings("héllo", "héllo")
    assert (found.kind, found.within, found.size, found.dtype) == ("equal", True, 6, "str")
    assert compare(text("", "none"), text("", "none"), EXACT).kind == "equal"


def test_the_first_differing_byte() -> None:
    found = strings("abcdef", "abXdeY", LOOSE)
    assert (found.kind, found.within, found.differing, needed_by(found)) == ("values", False, 2, None)
    assert (found.first_index, found.first_values, found.first_hex) == (
        (2,),
        ("'abcdef'", "'abXdeY'"),
        ("0x63", "0x58"),
    )


def test_text_that_goes_on_differs_from_its_end() -> None:
    found = strings("abc", "abcde")
    assert (found.differing, found.size, found.first_index, found.first_hex) == (2, 5, (3,), ("end", "0x64"))
    assert (found.shape, found.other_shape) == ((3,), (5,))
    assert strings("", "x").first_values == ("''", "'x'")


def test_long_text_is_shown_around_the_difference() -> None:
    a = "x" * 1000 + "A" + "y" * 1000
    b = "x" * 1000 + "B" + "y" * 1000
    found = strings(a, b)
    assert found.first_values == tuple(f"…'{'x' * 20}{letter}{'y' * 39}'…" for letter in "AB")
    assert strings("x" * 1000, "x" * 999).first_values == (f"…'{'x' * 21}'", f"…'{'x' * 20}'")


def test_bytes_and_broken_utf8_are_escaped() -> None:
    found = compare(text(b"\xff\x00", "bytes"), text(b"\xfe\x00", "bytes"), EXACT)
    assert found.first_values == (r"b'\xff\x00'", r"b'\xfe\x00'")
    found = compare(text(b"a\xff"), text(b"a\xfe"), EXACT)
    assert found.first_values == (r"'a\\xff'", r"'a\\xfe'")
    assert strings("\ud800", "x").first_values == (r"'\\xed\\xa0\\x80'", "'x'")


def test_kinds_of_text_are_dtypes() -> None:
    assert compare(text("1"), text("1", "int"), EXACT).kind == "dtype"


@given(a=st.binary(max_size=200), b=st.binary(max_size=200))
def test_counts_agree_with_a_plain_count(a: bytes, b: bytes) -> None:
    found = compare(text(a, "bytes"), text(b, "bytes"), EXACT, chunk_bytes=64)
    padded = [(a[i : i + 1], b[i : i + 1]) for i in range(max(len(a), len(b)))]
    assert found.differing == sum(x != y for x, y in padded)
    assert found.first_index == next(((i,) for i, (x, y) in enumerate(padded) if x != y), None)


def test_large_integers_are_compared_as_numbers() -> None:
    a, b = 10**30 + 1, 10**30
    found = integers(a, b)
    assert (found.kind, found.size, found.differing, found.max_abs) == ("values", 1, 1, 1.0)
    assert (found.first_index, found.first_values) == ((), (str(a), str(b)))
    assert found.first_hex == (hex(a), hex(b))
    assert integers(a, b, Tolerance(atol=1.0)).within
    assert not integers(a, b, Tolerance(atol=0.5)).within
    assert not integers(a, b, Tolerance(ulp=5)).within
    assert integers(a, a).kind == "equal"


@given(a=st.integers(-(10**400), 10**400), b=st.integers(-(10**40), 10**40))
def test_what_integers_pass_at_really_passes(a: int, b: int) -> None:
    found = integers(a, b)
    needed = needed_by(found)
    if a == b:
        assert needed is None
        return
    if needed is None:
        assert abs(a - b) > 1e308
        return
    below = Tolerance(rtol=math.nextafter(needed.rtol, 0.0)), Tolerance(atol=math.nextafter(needed.atol, 0.0))
    alone = Tolerance(rtol=needed.rtol), Tolerance(atol=needed.atol)
    for knob, enough, less in zip((needed.rtol, needed.atol), alone, below, strict=True):
        if math.isfinite(knob):
            assert integers(a, b, enough).within
            assert knob == SMALLEST or not integers(a, b, less).within
    assert needed.ulp == 0


@pytest.mark.parametrize("garbage", ["", "1.5", "0x10", "१२", "1 ", "9" * 4301, "-", "--1"])
def test_what_is_no_decimal_compares_as_text(garbage: str) -> None:
    found = compare(text(garbage, "int"), text("7", "int"), LOOSE)
    assert (found.kind, found.within, found.max_abs) == ("values", False, None)

"""Layouts of the floating point formats and exact questions about their bits.

A bit pattern is held as an unsigned integer array of the format's width. The two formats wider than 64 bits
(x87 extended and IEEE binary128, both kept in 16 bytes) are `uint64` arrays with a last axis of 2: low word, high word.

Distances in units in the last place (ULP) count representable values: each pattern is mapped to a signed integer that
grows with the value (sign and magnitude, as in https://randomascii.wordpress.com/2012/02/25/comparing-floating-point-numbers-2012-edition/),
and the distance is the difference. Both zeros map to 0, so the distance between -0.0 and +0.0 is 0; callers that care
count signed zeros apart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["ULP_LIMIT", "Bits", "Flags", "FloatFormat", "exact_value"]

Bits = NDArray[np.unsignedinteger[Any]]
Flags = NDArray[np.bool_]

ULP_LIMIT = 2**64 - 1
"""Distances in the 16-byte formats saturate here (JSON readers take no wider integer)."""

_LOW63 = np.uint64(2**63 - 1)


@dataclass(frozen=True, slots=True)
class FloatFormat:
    """One floating point layout, from the top bit down: sign, exponent, mantissa.

    Sources: IEEE 754-2019; OCP 8-bit floating point (e4m3fn, e5m2) and OCP microscaling formats (e8m0fnu, e2m1fn);
    https://arxiv.org/abs/2206.02915 (the fnuz variants); Intel SDM vol. 1 section 4.2.2 (x87 extended).
    """

    name: str
    exponent: int
    """Bits of the exponent field."""
    mantissa: int
    """Bits of the fraction field (without the integer bit that x87 stores)."""
    bias: int
    specials: Literal["ieee", "all-ones", "negative-zero", "none"] = "ieee"
    """`ieee`: top exponent holds inf and NaN; `all-ones`: no inf, NaN is every bit but the sign set;
    `negative-zero`: no inf and no -0, whose pattern is the one NaN; `none`: neither inf nor NaN."""
    signed: bool = True
    subnormal: bool = True
    """False where exponent field 0 is an ordinary power of two (e8m0fnu, which has no zero)."""
    integer_bit: bool = False
    """True for x87, which stores the leading 1. Patterns whose integer bit contradicts the exponent are invalid
    operands to the hardware and count as NaN here."""

    @property
    def width(self) -> int:
        """Bits that carry the value."""
        return int(self.signed) + self.exponent + int(self.integer_bit) + self.mantissa

    @property
    def wide(self) -> bool:
        """True when patterns take two words."""
        return self.width > 64

    @property
    def sign_bit(self) -> int:
        """The sign's bit, 0 for an unsigned format."""
        return 1 << (self.width - 1) if self.signed else 0

    @property
    def infinity(self) -> int | None:
        """Pattern of +inf, None where the format has none."""
        if self.specials != "ieee":
            return None
        field = ((1 << self.exponent) - 1) << (self.mantissa + int(self.integer_bit))
        return field | (1 << self.mantissa if self.integer_bit else 0)

    def is_nan(self, bits: Bits) -> Flags:
        """True where the pattern is not a number."""
        nan: Flags
        if self.wide:
            high, low = self._magnitude(bits)
            top, rest = self._wide_infinity()
            nan = (high > top) | ((high == top) & (low > rest))
            return nan | self._invalid(bits) if self.integer_bit else nan
        unsigned = bits.dtype.type
        match self.specials:
            case "ieee":
                nan = self.magnitude(bits) > unsigned(self.infinity or 0)
            case "all-ones":
                nan = self.magnitude(bits) == unsigned((1 << (self.width - int(self.signed))) - 1)
            case "negative-zero":
                nan = bits == unsigned(self.sign_bit)
            case "none":
                nan = np.zeros(bits.shape, bool)
        return nan

    def is_inf(self, bits: Bits) -> Flags:
        """True where the pattern is an infinity of either sign."""
        inf: Flags
        if self.infinity is None:
            inf = np.zeros(bits.shape, bool)
        elif self.wide:
            high, low = self._magnitude(bits)
            top, rest = self._wide_infinity()
            inf = (high == top) & (low == rest)
            return inf & ~self._invalid(bits) if self.integer_bit else inf
        else:
            inf = self.magnitude(bits) == bits.dtype.type(self.infinity)
        return inf

    def magnitude(self, bits: Bits) -> Bits:
        """The pattern without its sign bit (formats up to 64 bits)."""
        if not self.signed:
            return bits
        return bits & bits.dtype.type(self.sign_bit - 1)

    def ordered(self, bits: Bits) -> NDArray[np.int64]:
        """Integers that grow with the value, one step per representable value (formats up to 64 bits).

        Both zeros give 0. NaN patterns give integers without meaning.
        """
        order: NDArray[np.int64] = self.magnitude(bits).astype(np.int64)
        if self.signed:
            # Two's complement negation without a branch: -1 where the sign is set, else 0.
            sign = -(bits >> bits.dtype.type(self.width - 1)).astype(np.int64)
            order = (order ^ sign) - sign
        return order

    def distance(self, a: Bits, b: Bits) -> NDArray[np.uint64]:
        """Representable values between `a` and `b`; without meaning where either is NaN."""
        if self.wide:
            return self._wide_distance(a, b)
        x, y = self.ordered(a), self.ordered(b)
        # Two's complement: the wrapped difference of the larger and the smaller is right even where int64 overflows.
        return np.maximum(x, y).view(np.uint64) - np.minimum(x, y).view(np.uint64)

    def decode(self, bits: Bits) -> NDArray[np.floating[Any]] | None:
        """The values: float64 (exact) for formats up to 64 bits, the platform's long double for the 16-byte ones.

        None for a 16-byte format that this platform's long double is not: bits and distances still compare.
        """
        if self.wide:
            native = np.finfo(np.longdouble).nmant == self.mantissa and np.dtype(np.longdouble).itemsize == 16
            return np.ascontiguousarray(bits).view(np.longdouble)[..., 0] if native else None
        with np.errstate(all="ignore"):  # a signalling NaN raises "invalid" when widened
            return _decoder(self)(bits)

    def _magnitude(self, bits: Bits) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """High and low word of a wide pattern's magnitude: exponent and fraction side by side, no gap between."""
        low, high = bits[..., 0].astype(np.uint64), bits[..., 1].astype(np.uint64)
        if not self.integer_bit:
            return high & _LOW63, low
        exponent = high & np.uint64(0x7FFF)
        # A pseudo-denormal (exponent field 0, integer bit 1) has the value of exponent field 1.
        exponent = np.where((exponent == 0) & (low > _LOW63), np.uint64(1), exponent)
        return exponent >> np.uint64(1), (low & _LOW63) | (exponent << np.uint64(63))

    def _wide_infinity(self) -> tuple[np.uint64, np.uint64]:
        """High and low word of an infinite magnitude, as `_magnitude` gives them."""
        rank = ((1 << self.exponent) - 1) << self.mantissa
        return np.uint64(rank >> 64), np.uint64(rank & ULP_LIMIT)

    def _invalid(self, bits: Bits) -> Flags:
        """x87 patterns with a non-zero exponent and a cleared integer bit."""
        invalid: Flags = ((bits[..., 1] & np.uint64(0x7FFF)) != 0) & (bits[..., 0] <= _LOW63)
        return invalid

    def _wide_distance(self, a: Bits, b: Bits) -> NDArray[np.uint64]:
        sign = np.uint64(1 << (self.width - 65))
        (ah, al), (bh, bl) = self._magnitude(a), self._magnitude(b)
        swap = (ah < bh) | ((ah == bh) & (al < bl))
        ah, bh = np.where(swap, bh, ah), np.where(swap, ah, bh)
        al, bl = np.where(swap, bl, al), np.where(swap, al, bl)
        opposite = ((a[..., 1] ^ b[..., 1]) & sign) != 0
        low = np.where(opposite, al + bl, al - bl)
        carry = np.where(opposite, low < al, al < bl).astype(np.uint64)
        high = np.where(opposite, ah + bh + carry, ah - bh - carry)
        return np.where(high > 0, np.uint64(ULP_LIMIT), low)


def exact_value(form: FloatFormat, magnitude: int) -> Fraction:
    """The exact value of a finite non-negative pattern given as an integer without integer bit.

    `magnitude` is the pattern's rank among the non-negative values (what `ordered` gives), so `magnitude + 1` is the
    next value up; one step past the largest finite value is as far as the rank makes sense.
    """
    exponent, fraction = magnitude >> form.mantissa, magnitude & ((1 << form.mantissa) - 1)
    if exponent == 0 and form.subnormal:
        exponent = 1
    else:
        fraction |= 1 << form.mantissa
    return Fraction(fraction) * Fraction(2) ** (exponent - form.bias - form.mantissa)


@cache
def _decoder(form: FloatFormat) -> Callable[[Bits], NDArray[np.float64]]:
    """How a format up to 64 bits becomes float64: a view where numpy has the type, a shift, or a table."""
    native = {(11, 52): np.float64, (8, 23): np.float32, (5, 10): np.float16}
    kind = native.get((form.exponent, form.mantissa))
    if kind is not None:
        return lambda bits: bits.view(kind).astype(np.float64)
    if form.width == 16:  # bfloat16 is the upper half of a float32
        return lambda bits: (bits.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    table = np.array([_entry(form, pattern) for pattern in range(1 << form.width)])
    return lambda bits: table[bits]


def _entry(form: FloatFormat, pattern: int) -> float:
    bits: Bits = np.array([pattern], np.uint8)
    if form.is_nan(bits)[0]:
        return float("nan")
    sign = -1.0 if pattern & form.sign_bit else 1.0
    if form.is_inf(bits)[0]:
        return sign * float("inf")
    return sign * float(exact_value(form, pattern & ~form.sign_bit))

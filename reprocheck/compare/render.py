"""Values as text: the shortest decimal that reads back to the same bits, and hexadecimal that shows them all.

Floats are rendered from exact rationals, so every format of the table is treated alike and no hardware rounds.
"""

from __future__ import annotations

from decimal import (
    MAX_EMAX,
    MIN_EMIN,
    ROUND_05UP,
    ROUND_CEILING,
    ROUND_FLOOR,
    ROUND_HALF_EVEN,
    Context,
    Decimal,
    Inexact,
)
from fractions import Fraction

import numpy as np

from reprocheck.compare.dtypes import DType
from reprocheck.compare.floats import FloatFormat, exact_value
from reprocheck.compare.numbers import part_bits
from reprocheck.compare.source import Bytes

__all__ = ["decimal_text", "hex_text", "shortest_decimal"]

_DIGITS = 60


def decimal_text(dtype: DType, element: Bytes) -> str:
    """One element (its bytes) for people: `0.1`, `(1.0-2.5j)`, `-3`, `True`, `2026-12-01T00:00:00`."""
    match dtype.kind:
        case "float":
            form, patterns = _float_patterns(dtype, element)
            parts = [shortest_decimal(form, pattern) for pattern in patterns]
            if len(parts) == 1:
                return parts[0]
            if not dtype.axes:
                return f"({', '.join(parts)})"
            joint = "" if parts[1].startswith("-") else "+"
            return f"({parts[0]}{joint}{parts[1]}j)"
        case "integer":
            return str(int.from_bytes(element.tobytes(), "little", signed=dtype.signed))
        case "time":
            return str(element.view(np.dtype(dtype.name))[0])
        case _ if dtype.name == "bool":
            return str(bool(element[0]))
        case _:
            return repr(element.view(np.dtype(dtype.name))[0].item())


def hex_text(dtype: DType, element: Bytes) -> str:
    """One element bit for bit: `0x1.999999999999ap-4` for floats (as `float.hex`), `nan(0x…)`, `0x…` for the rest."""
    if dtype.kind != "float":
        return f"0x{element[::-1].tobytes().hex()}"
    form, patterns = _float_patterns(dtype, element)
    parts = [_hex_float(form, pattern) for pattern in patterns]
    return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"


def shortest_decimal(form: FloatFormat, pattern: int) -> str:
    """The shortest decimal that rounds to this pattern in its own format, spelt as `repr` of a float is.

    Formats of 8 bits and less are spelt exactly: among so few values, the shortest for -96 would be -100.
    """
    sign = "-" if pattern & form.sign_bit else ""
    if (special := _special(form, pattern)) is not None:
        return special if special == "nan" else sign + special
    rank = _rank(form, pattern)
    value = exact_value(form, rank)
    if value == 0 or form.width <= 8:
        return f"{sign}{float(value)!r}"
    # What rounds to this value lies between the midpoints to its neighbours; a tie goes to the even pattern. 60 digits
    # hold any candidate; bounds that do not fit are rounded inwards, so that they are never mistaken for a tie.
    tie, bounds = Context(prec=_DIGITS, Emax=MAX_EMAX, Emin=MIN_EMIN), []
    for neighbour, inwards in ((rank - 1, ROUND_CEILING), (rank + 1, ROUND_FLOOR)):
        middle = (value + exact_value(form, neighbour)) / 2 if neighbour >= 0 else value / 2
        tie.clear_flags()
        tie.rounding = inwards
        bound = _divide(middle, tie)
        bounds.append((bound, rank % 2 == 0 and not tie.flags[Inexact]))
    (below, may_be_below), (above, may_be_above) = bounds
    whole = _divide(value, Context(prec=_DIGITS, rounding=ROUND_05UP, Emax=MAX_EMAX, Emin=MIN_EMIN))
    for digits in range(1, _DIGITS):
        # Below a power of two the interval is lopsided, so that the nearest may fall out where the other side is in.
        for rounding in (ROUND_HALF_EVEN, ROUND_FLOOR, ROUND_CEILING):
            text = Context(prec=digits, rounding=rounding, Emax=MAX_EMAX, Emin=MIN_EMIN).plus(whole)
            if below < text < above or (may_be_below and text == below) or (may_be_above and text == above):
                return sign + _spelt(text)
    raise AssertionError(f"{form.name} needs more than {_DIGITS} digits")


def _float_patterns(dtype: DType, element: Bytes) -> tuple[FloatFormat, list[int]]:
    """The layout and the bit pattern of each part, as integers."""
    if dtype.form is None:
        raise TypeError(f"{dtype.name} has no floating point layout")
    bits = part_bits(dtype, element.reshape(1, -1))[0]
    if dtype.form.wide:
        return dtype.form, [int(bits[0]) | int(bits[1]) << 64]
    return dtype.form, [int(pattern) for pattern in np.atleast_1d(bits)]


def _special(form: FloatFormat, pattern: int) -> str | None:
    """`nan` or `inf`, without sign; None for a finite pattern."""
    if form.wide:
        bits = np.array([[pattern & (2**64 - 1), pattern >> 64]], np.uint64)
    else:
        bits = np.array([pattern], f"u{max(8, form.width) // 8}")
    if form.is_nan(bits)[0]:
        return "nan"
    return "inf" if form.is_inf(bits)[0] else None


def _rank(form: FloatFormat, pattern: int) -> int:
    """The finite pattern's place among the non-negative values (see `floats.exact_value`)."""
    magnitude = pattern & ~form.sign_bit
    if not form.integer_bit:
        return magnitude
    exponent, significand = magnitude >> 64, magnitude & (2**64 - 1)
    if exponent == 0 and significand >> 63:
        exponent = 1
    return exponent << 63 | significand & (2**63 - 1)


def _divide(value: Fraction, context: Context) -> Decimal:
    return context.divide(Decimal(value.numerator), Decimal(value.denominator))


def _spelt(number: Decimal) -> str:
    """Python's spelling of a float: positional from 1e-4 up to 1e16, scientific outside."""
    _, digits, _ = number.normalize(Context(prec=_DIGITS, Emax=MAX_EMAX, Emin=MIN_EMIN)).as_tuple()
    power = number.adjusted()
    figures = "".join(map(str, digits))
    if not -4 <= power < 16:
        fraction = f".{figures[1:]}" if figures[1:] else ""
        return f"{figures[0]}{fraction}e{power:+03d}"
    if power < 0:
        return f"0.{'0' * (-power - 1)}{figures}"
    figures = figures.ljust(power + 1, "0")
    return f"{figures[: power + 1]}.{figures[power + 1 :] or '0'}"


def _hex_float(form: FloatFormat, pattern: int) -> str:
    sign = "-" if pattern & form.sign_bit else ""
    special = _special(form, pattern)
    if special == "nan":
        return f"nan(0x{pattern:0{-(-form.width // 4)}x})"
    if special == "inf":
        return f"{sign}inf"
    rank = _rank(form, pattern)
    exponent, fraction = rank >> form.mantissa, rank & ((1 << form.mantissa) - 1)
    lead = 0 if exponent == 0 and form.subnormal else 1
    power = 0 if rank == 0 and form.subnormal else max(exponent, 1 - lead) - form.bias
    digits = -(-form.mantissa // 4)
    shown = f".{fraction << (4 * digits - form.mantissa):0{digits}x}" if digits else ".0"
    return f"{sign}0x{lead}{shown if rank or not form.subnormal else '.0'}p{power:+d}"

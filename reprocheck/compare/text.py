"""Comparison of outputs that are runs of bytes: strings, bytes, None, and integers too large for 64 bits."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Any

import numpy as np

from reprocheck.compare.measure import SMALLEST, float_up
from reprocheck.compare.scan import differing_elements
from reprocheck.compare.source import Source
from reprocheck.model import Tolerance

__all__ = ["measure_integers", "measure_text"]

# Python refuses longer decimal text by default (sys.set_int_max_str_digits); such numbers compare as text.
_DECIMAL = re.compile(rb"-?[0-9]{1,4300}")
_SHOWN = 60
_BEFORE = 20


def measure_text(a: Source, b: Source, chunk_bytes: int) -> dict[str, Any]:
    """What differs between two runs of bytes, as fields of `model.Difference`.

    An element is a byte; where one run is longer, its tail differs. `first_index` is the first differing byte. No
    tolerance applies.
    """
    common, size = min(a.size, b.size), max(a.size, b.size)
    differing, first = size - common, common
    for batch in differing_elements(a.open(), b.open(), a.dtype, common, chunk_bytes):
        if first == common:
            first = int(batch.index[0])
        differing += len(batch)
    fields: dict[str, Any] = {"size": size, "differing": differing, "within": differing == 0}
    if differing:
        sides = (a, b)
        fields["first_index"] = (first,)
        fields["first_values"] = tuple(_excerpt(side, first) for side in sides)
        fields["first_hex"] = tuple(_byte(side, first) for side in sides)
    return fields


def measure_integers(a: Source, b: Source, tolerance: Tolerance) -> dict[str, Any] | None:
    """Exact comparison of two integers held as decimal text; None where a side is not such text."""
    texts = [side.open().read(0, side.size).tobytes() if side.size <= 4301 else b"" for side in (a, b)]
    if not all(_DECIMAL.fullmatch(text) for text in texts):
        return None
    x, y = int(texts[0]), int(texts[1])
    if texts[0] == texts[1]:
        return {"size": 1, "within": True, "max_abs": 0.0}
    distance, scale = abs(x - y), abs(y)
    accepted = not tolerance.exact and distance <= _exact(tolerance.atol) + _exact(tolerance.rtol) * scale
    rtol = float_up_ratio(distance, scale)
    atol = float_up(distance)
    possible = math.isfinite(rtol) or math.isfinite(atol)
    return {
        "size": 1,
        "differing": 1,
        "max_abs": _as_float(Fraction(distance)),
        "max_rel": _as_float(Fraction(distance, scale)) if scale else None,
        "mean_abs": _as_float(Fraction(distance)),
        "first_index": (),
        "first_values": (str(x), str(y)),
        "first_hex": (hex(x), hex(y)),
        "worst_index": (),
        "worst_values": (str(x), str(y)),
        "passes_at": Tolerance(rtol=rtol or SMALLEST, atol=atol or SMALLEST) if possible else None,
        "within": accepted,
    }


def float_up_ratio(distance: int, scale: int) -> float:
    """The smallest float `rtol` with `rtol * scale >= distance`; inf where there is none."""
    return float_up(Fraction(distance, scale)) if scale else math.inf


def _exact(value: float) -> Fraction | float:
    return Fraction(value) if math.isfinite(value) else value


def _as_float(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _excerpt(source: Source, at: int) -> str:
    """The text as Python would write it, or the stretch of it around byte `at` between ellipses."""
    whole = source.size <= _SHOWN
    start = 0 if whole else max(0, at - _BEFORE)
    stop = source.size if whole else min(source.size, start + _SHOWN)
    piece = source.open().read(start, stop).tobytes()
    # A character cut in two at either end shows as escapes.
    shown = repr(piece) if source.dtype.name == "bytes" else repr(piece.decode("utf-8", "backslashreplace"))
    return f"{'…' if start else ''}{shown}{'…' if stop < source.size else ''}"


def _byte(source: Source, at: int) -> str:
    if at >= source.size:
        return "end"
    return f"0x{int(np.uint8(source.open().read(at, at + 1)[0])):02x}"

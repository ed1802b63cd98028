"""Comparison of two outputs, or of all outputs of two trials: bits first, numbers only where bits differ."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from typing import Any

from reprocheck.compare.dtypes import DType
from reprocheck.compare.measure import Found, Measure
from reprocheck.compare.render import decimal_text, hex_text
from reprocheck.compare.scan import differing_elements
from reprocheck.compare.source import Source
from reprocheck.compare.text import measure_integers, measure_text
from reprocheck.model import Difference, PassesAt, Tolerance

__all__ = ["CHUNK_BYTES", "compare", "compare_maps"]

CHUNK_BYTES = 2 << 20
"""Bytes read from either side at a time: enough that Python's share of the cost vanishes, still small in memory."""


def compare(a: Source, b: Source, tolerance: Tolerance, *, chunk_bytes: int = CHUNK_BYTES) -> Difference:
    """How `a` differs from the reference `b`, and whether `tolerance` accepts it.

    An element agrees when its bits are equal. Under a tolerance that is not exact it also agrees when both are NaN,
    when they are zeros of either sign, when |a - b| <= atol + rtol * |b|, or when they are at most `ulp` > 0 units in
    the last place apart. NaN or infinity on one side only, or infinities of different sign, never agree. Complex
    numbers are measured by modulus, and in ULP part by part; NaN and infinite parts that agree do not enter.
    Booleans, text and `datetime64` agree only when equal, and so do arrays of different shape or dtype never.
    Differences are taken in float64 (exactly for integers), those of 16-byte floats in the platform's long double.

    Memory is bounded by `chunk_bytes`, not by the arrays.

    Raises:
        StoreError: a file behind a source can't be read.
    """
    common: dict[str, Any] = {
        "dtype": a.dtype.name,
        "shape": a.shape,
        "other_dtype": b.dtype.name,
        "other_shape": b.shape,
    }
    dtype = a.dtype
    if dtype.name != b.dtype.name:
        return Difference(kind="dtype", **common)
    if dtype.kind == "text":
        fields = measure_integers(a, b, tolerance) if dtype.name == "int" else None
        fields = fields or measure_text(a, b, chunk_bytes)
    elif a.shape != b.shape:
        return Difference(kind="shape", **common)
    else:
        measure = Measure(dtype, tolerance)
        if a.size:
            for batch in differing_elements(a.open(), b.open(), dtype, a.size, chunk_bytes):
                measure.add(batch)
        fields = _fields(measure, dtype, a.shape, a.size)
    return Difference(kind="values" if fields.get("differing") else "equal", **common, **_published(fields))


def compare_maps(
    a: Mapping[str, Source],
    b: Mapping[str, Source],
    tolerance_for: Callable[[str], Tolerance],
) -> dict[str, Difference]:
    """The difference of every output named on either side: first in `a`'s order, then those only the reference has.

    A name that one side lacks gives kind `missing`, with an empty dtype on that side.

    Raises:
        StoreError: a file behind a source can't be read.
    """
    found: dict[str, Difference] = {}
    for name in dict.fromkeys([*a, *b]):
        if name in a and name in b:
            found[name] = compare(a[name], b[name], tolerance_for(name))
            continue
        there = (a if name in a else b)[name]
        here = name in a
        found[name] = Difference(
            kind="missing",
            dtype=there.dtype.name if here else "",
            shape=there.shape if here else (),
            other_dtype="" if here else there.dtype.name,
            other_shape=() if here else there.shape,
        )
    return found


def _published(fields: dict[str, Any]) -> dict[str, Any]:
    """Without infinities, which JSON has not: what a tolerance can't do is None, and an overflow the largest double."""
    needed = fields.pop("passes_at", None)
    if needed is not None:
        rtol, atol = (value if math.isfinite(value) else None for value in (needed.rtol, needed.atol))
        fields["passes_at"] = PassesAt(rtol=rtol, atol=atol, ulp=needed.ulp or None)
    for name in ("max_abs", "max_rel", "mean_abs"):
        if fields.get(name) == math.inf:
            fields[name] = sys.float_info.max
    return fields


def _fields(measure: Measure, dtype: DType, shape: tuple[int, ...], size: int) -> dict[str, Any]:
    if not measure.differing:
        numeric = dtype.kind in ("float", "integer", "time")
        zero = 0.0 if numeric else None
        return {
            "size": size,
            "max_ulp": 0 if dtype.kind == "float" else None,
            "max_abs": zero,
            "max_rel": zero,
            "within": True,
        }
    return {
        "size": size,
        "differing": measure.differing,
        "max_ulp": measure.max_ulp,
        "ulp_histogram": measure.histogram,
        "max_abs": measure.max_abs,
        "max_rel": measure.max_rel,
        "mean_abs": measure.mean_abs,
        **_located("first", measure.first, dtype, shape),
        **_located("worst", measure.worst, dtype, shape),
        "nan_changed": measure.nan_changed,
        "nan_payload": measure.nan_payload,
        "inf_changed": measure.inf_changed,
        "signed_zero": measure.signed_zero,
        "passes_at": measure.passes_at,
        "within": measure.failing == 0,
    }


def _located(which: str, found: Found | None, dtype: DType, shape: tuple[int, ...]) -> dict[str, Any]:
    """Index and values of one element, under the field names of `first_…` or `worst_…`."""
    if found is None:
        return {}
    fields: dict[str, Any] = {
        f"{which}_index": _unravel(found.index, shape),
        f"{which}_values": (decimal_text(dtype, found.a), decimal_text(dtype, found.b)),
    }
    if which == "first":
        fields["first_hex"] = (hex_text(dtype, found.a), hex_text(dtype, found.b))
    return fields


def _unravel(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Index in C order; unlike numpy's, for any number of axes."""
    index: list[int] = []
    for length in reversed(shape):
        flat, position = divmod(flat, length)
        index.append(position)
    return tuple(reversed(index))

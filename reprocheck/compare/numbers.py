"""From the bits of differing elements to the numbers that are measured: distances, scales, and what changed class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reprocheck.compare.dtypes import DType
from reprocheck.compare.floats import Bits, Flags
from reprocheck.compare.scan import Batch
from reprocheck.compare.source import Bytes

__all__ = ["NAT", "Numbers", "numbers", "part_bits", "within"]

NAT = -(2**63)
"""Pattern of numpy's "not a time"."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """One entry per differing element; `b` is the reference."""

    distance: NDArray[Any]
    """|a - b|: exact in uint64 for integers, else in float64 (long double for the 16-byte formats; inf on overflow)."""
    scale: NDArray[np.floating[Any]]
    """|b|, always finite."""
    measured: Flags
    """True where distance and scale mean something: nothing changed class, and at least one part is finite."""
    nan_changed: Flags
    inf_changed: Flags
    nan_payload: Flags
    ulp: NDArray[np.uint64] | None = None
    """Distance in units in the last place, the larger part's for complex; None for non-floats."""
    exact: bool = True
    """False where this platform cannot subtract such numbers: `distance` is then 0 or inf, and no statistic."""


def numbers(dtype: DType, batch: Batch) -> Numbers | None:
    """The batch as numbers; None for dtypes whose elements are only equal or not.

    Overflow and underflow are part of the result: call it where numpy does not report them.
    """
    match dtype.kind:
        case "float":
            return _floats(dtype, batch)
        case "integer" | "time":
            return _integers(dtype, batch)
        case _:
            return None


def within(distance: NDArray[Any], limit: NDArray[np.floating[Any]]) -> Flags:
    """`distance <= limit`, exactly also for uint64 distances; a distance that overflowed is within nothing."""
    accepted: Flags
    if distance.dtype != np.uint64:
        accepted = np.isfinite(distance) & (distance <= limit)
    else:
        whole = np.floor(limit)
        fits = whole < 2.0**64
        accepted = (whole >= 2.0**64) | (fits & (distance <= np.where(fits, whole, 0.0).astype(np.uint64)))
    return accepted


def part_bits(dtype: DType, rows: Bytes) -> Bits:
    """Bit patterns of a float dtype's elements: shape (n,), (n, 2) for two parts, (n, 2 words) for wide formats."""
    form = dtype.form
    if form is None:
        raise TypeError(f"{dtype.name} has no floating point layout")
    if form.wide:
        words = rows.view(np.uint64)
        return words & np.array([2**64 - 1, 0xFFFF], np.uint64) if form.integer_bit else words
    if form.width < 8:
        return np.concatenate([rows & 15, rows >> 4], axis=1)
    patterns: Bits = rows.view(f"u{form.width // 8}")
    return patterns[:, 0] if dtype.parts == 1 else patterns


def _floats(dtype: DType, batch: Batch) -> Numbers:
    form = dtype.form
    if form is None:
        raise TypeError(f"{dtype.name} has no floating point layout")
    a, b = part_bits(dtype, batch.a), part_bits(dtype, batch.b)
    nan_a, nan_b = form.is_nan(a), form.is_nan(b)
    infinite = form.is_inf(a) | form.is_inf(b)
    special = nan_a | nan_b | infinite
    ulp = form.distance(a, b)
    x, y = form.decode(a), form.decode(b)
    exact = x is not None and y is not None
    if x is None or y is None:
        x, y = np.where(ulp == 0, 0.0, np.inf), np.zeros(ulp.shape)

    nothing = np.zeros(len(batch), bool)
    nan_changed = inf_changed = nan_payload = nothing
    measured = ~nothing
    if special.any():
        # A part that is not finite counts as agreeing here; the flags say where it does not.
        ulp, x, y = (np.where(special, np.zeros_like(values), values) for values in (ulp, x, y))
        differs = (a != b).any(axis=-1) if form.wide else a != b
        nan_changed = _any(nan_a ^ nan_b, dtype)
        inf_changed = _any(infinite & ~(nan_a | nan_b) & differs, dtype) & ~nan_changed
        nan_payload = _any(nan_a & nan_b & differs, dtype) & ~nan_changed & ~inf_changed
        measured = _any(~special, dtype) & ~nan_changed & ~inf_changed
    distance, scale = np.abs(x - y), np.abs(y)
    if dtype.parts == 2:
        ulp = ulp.max(axis=1)
        distance, scale = np.hypot(*distance.T), np.hypot(*scale.T)
        # A modulus that overflows must not make every difference relatively small.
        scale = np.minimum(scale, np.finfo(scale.dtype).max)
    return Numbers(distance, scale, measured, nan_changed, inf_changed, nan_payload, ulp, exact)


def _any(flags: Flags, dtype: DType) -> Flags:
    """From one flag per part to one per element."""
    return flags if dtype.parts == 1 else np.any(flags, axis=1)


def _integers(dtype: DType, batch: Batch) -> Numbers:
    signed = dtype.kind == "time" or dtype.signed
    storage = np.dtype(f"{'i' if signed else 'u'}{dtype.itemsize}")
    wide = np.int64 if signed else np.uint64
    a, b = batch.a.view(storage)[:, 0].astype(wide), batch.b.view(storage)[:, 0].astype(wide)
    # Two's complement: right modulo 2^64 also where the signed difference overflows.
    distance = np.maximum(a, b).view(np.uint64) - np.minimum(a, b).view(np.uint64)
    nothing = np.zeros(len(batch), bool)
    missing = (a == NAT) | (b == NAT) if dtype.kind == "time" else nothing
    return Numbers(distance, np.abs(b.astype(np.float64)), ~missing, missing, nothing, nothing)

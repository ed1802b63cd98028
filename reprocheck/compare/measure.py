"""Statistics over differing elements, gathered batch by batch: how far apart, of which class, what would pass."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reprocheck.compare.dtypes import DType
from reprocheck.compare.numbers import Numbers, numbers, within
from reprocheck.compare.scan import Batch
from reprocheck.compare.source import Bytes
from reprocheck.model import Tolerance

__all__ = ["SMALLEST", "Found", "Measure", "float_up"]

SMALLEST = math.ulp(0.0)
"""Smallest positive float: the tolerance that passes what every tolerance but the exact one passes."""

_NEAR = 1 - 2.0**-50
_POWERS = np.array([1 << power for power in range(64)], np.uint64)


class Found:
    """One differing element: flat index and bytes on both sides."""

    __slots__ = ("a", "b", "index")

    def __init__(self, batch: Batch, at: int) -> None:
        """Element `at` of the batch."""
        self.index = int(batch.index[at])
        self.a: Bytes = batch.a[at].copy()
        self.b: Bytes = batch.b[at].copy()


class Measure:
    """Running statistics of one comparison. The fields mean what `model.Difference` says."""

    def __init__(self, dtype: DType, tolerance: Tolerance) -> None:
        """`tolerance` is the one asked for: `failing` counts the elements it does not accept."""
        self._dtype = dtype
        self._tolerance = tolerance
        self._nothing_passes = not dtype.tolerant
        self._rtol = 0.0
        self._atol = 0.0
        self._histogram = np.zeros(65, np.int64)
        self._sum_abs = 0.0
        self._measured = 0
        self._worst_rank = -1
        self.differing = 0
        self.failing = 0
        self.first: Found | None = None
        self.worst: Found | None = None
        self.nan_changed = 0
        self.nan_payload = 0
        self.inf_changed = 0
        self.signed_zero = 0
        self.max_ulp: int | None = None
        self.max_abs: float | None = None
        self.max_rel: float | None = None

    def add(self, batch: Batch) -> None:
        """Take in the next differing elements, in C order."""
        if self.first is None:
            self.first = Found(batch, 0)
        self.differing += len(batch)
        # Overflow to inf and underflow to 0 are the right answers here, and NaN is looked for by its bits.
        with np.errstate(all="ignore"):
            self._add_numbers(batch)

    def _add_numbers(self, batch: Batch) -> None:
        found = numbers(self._dtype, batch)
        self.failing += len(batch) if found is None else self._count_failing(found)
        if found is None:
            return
        self.nan_changed += _count(found.nan_changed)
        self.inf_changed += _count(found.inf_changed)
        self.nan_payload += _count(found.nan_payload)
        if self.nan_changed or self.inf_changed:
            self._nothing_passes = True
        if found.measured.any():
            self._add_measured(found, batch)

    @property
    def mean_abs(self) -> float | None:
        """Mean of |a-b| over the differing elements that have one."""
        return self._sum_abs / self._measured if self._measured else None

    @property
    def histogram(self) -> dict[str, int]:
        """Elements per bucket of ULP distance, in powers of two: `1`, `2`, `3-4`, `5-8` and so on."""
        labels = ["1", "2"] + [f"{(1 << power - 1) + 1}-{1 << power}" for power in range(2, 65)]
        return {label: int(count) for label, count in zip(labels, self._histogram, strict=True) if count}

    @property
    def passes_at(self) -> Tolerance | None:
        """The smallest `rtol` alone, `atol` alone and `ulp` alone that accept everything seen.

        `inf` (and 0 for `ulp`) mark a knob that cannot do it at any setting; None says that no knob can. Where
        only zero signs or NaN payloads differ, each knob is at its smallest positive value.
        """
        if self._nothing_passes:
            return None
        ulp = max(1, self.max_ulp or 0) if self._dtype.kind == "float" else 0
        return Tolerance(rtol=self._rtol or SMALLEST, atol=self._atol or SMALLEST, ulp=ulp)

    def _count_failing(self, found: Numbers) -> int:
        tolerance = self._tolerance
        if tolerance.exact or not self._dtype.tolerant:
            return len(found.measured)
        passed = within(found.distance, tolerance.atol + tolerance.rtol * found.scale)
        if tolerance.ulp > 0 and found.ulp is not None:
            passed |= found.ulp <= np.uint64(min(tolerance.ulp, 2**64 - 1))
        return len(passed) - _count(passed & ~found.nan_changed & ~found.inf_changed)

    def _add_measured(self, found: Numbers, batch: Batch) -> None:
        chosen = found.measured
        every = bool(chosen.all())
        distance = found.distance if every else found.distance[chosen]
        scale = found.scale if every else found.scale[chosen]
        rank = found.distance
        if found.ulp is not None:
            rank = found.ulp
            ulp = found.ulp if every else found.ulp[chosen]
            payload = found.nan_payload if every else found.nan_payload[chosen]
            self.max_ulp = max(self.max_ulp or 0, int(ulp.max()))
            self.signed_zero += _count((ulp == 0) & ~payload)
            self._histogram += _buckets(ulp)
        at = int(np.argmax(np.where(chosen, rank, np.zeros_like(rank))))
        # Only zeros on both sides: an element that was not measured must not stand for one that was.
        at = at if chosen[at] else int(np.argmax(chosen))
        if int(rank[at]) > self._worst_rank:
            self._worst_rank = int(rank[at])
            self.worst = Found(batch, at)
        if found.exact:
            self._measured += len(distance)
            self._sum_abs += float(distance.sum(dtype=np.float64))
            self.max_abs = max(self.max_abs or 0.0, float(distance.max()))
        self._add_needs(distance, scale, exact=found.exact)

    def _add_needs(self, distance: NDArray[Any], scale: NDArray[np.floating[Any]], *, exact: bool) -> None:
        """Raise `rtol` and `atol` to what these elements need, and the largest relative difference."""
        apart = distance > 0
        if not apart.all():
            distance, scale = distance[apart], scale[apart]
        relative = np.zeros(0)
        if len(distance):
            self._atol = max(self._atol, float_up(distance.max()))
            overflowed = distance.dtype != np.uint64 and not np.isfinite(distance).all()
            if overflowed or not scale.all():
                self._rtol = math.inf
            keep = scale > 0
            distance, scale = distance[keep], scale[keep]
            relative = distance / scale
        if not exact:
            return
        if len(relative):
            self.max_rel = max(self.max_rel or 0.0, float(relative.max()))
            self._rtol = max(self._rtol, self._smallest_rtol(distance, scale, relative))

    def _smallest_rtol(
        self, distance: NDArray[Any], scale: NDArray[np.floating[Any]], relative: NDArray[np.floating[Any]]
    ) -> float:
        """The smallest `rtol`, up to rounding, that really accepts these elements when it is asked for."""
        rtol = float(relative.max())
        if not math.isfinite(rtol):
            return math.inf
        if rtol < self._rtol * _NEAR:
            return self._rtol
        # Those whose quotient rounds to nearly the same may need a step more; the others then pass a fortiori.
        near = relative >= rtol * _NEAR
        distance, scale = distance[near], scale[near]
        while not within(distance, rtol * scale).all():
            rtol = math.nextafter(rtol, math.inf)
        return rtol


def float_up(value: Any) -> float:
    """The smallest float that is not below a non-negative numpy or Python number; inf where there is none finite."""
    exact = int(value) if isinstance(value, np.integer) else value
    try:
        rounded = float(exact)
    except OverflowError:
        return math.inf
    return math.nextafter(rounded, math.inf) if rounded < exact else rounded


def _count(flags: NDArray[np.bool_]) -> int:
    return int(np.count_nonzero(flags))


def _buckets(ulp: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Elements per power of two: bucket k holds distances in (2^(k-1), 2^k], bucket 0 distance 1; 0 is left out."""
    ulp = ulp[ulp > 0]
    if len(ulp) and int(ulp.max()) <= 2**53:
        power = np.frexp((ulp - np.uint64(1)).astype(np.float64))[1]
    else:
        power = np.searchsorted(_POWERS, ulp, side="left")
    return np.bincount(power, minlength=65)

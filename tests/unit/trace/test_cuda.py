"""Kernels by operator, from times and correlation numbers as a profiler gives them (recorded; there is no GPU here)."""

from __future__ import annotations

from reprocheck.worker.trace.cuda import assign


def test_a_kernel_belongs_to_the_operator_that_launched_it() -> None:
    ranges = [(0, 10, 0), (20, 40, 1), (50, 60, 2)]
    launches = {7: 5, 8: 25, 9: 30, 10: 45}
    kernels = [(100, 7, "gemm"), (110, 9, "reduce"), (105, 8, "cupy_add"), (120, 10, "outside"), (130, 99, "unknown")]

    assert assign(ranges, launches, kernels) == [(0, ["cuda gemm"]), (1, ["cuda cupy_add", "cuda reduce"])]


def test_the_innermost_range_counts() -> None:
    assert assign([(0, 100, 1), (10, 20, 2)], {1: 15, 2: 50}, [(0, 1, "a"), (1, 2, "b")]) == [
        (2, ["cuda a"]),
        (1, ["cuda b"]),
    ]


def test_ranges_are_no_kernels() -> None:
    assert assign([(0, 10, 0)], {1: 5}, [(5, 1, "reprocheck#0")]) == []

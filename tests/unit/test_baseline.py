"""Baselines: statistics, and what counts as a difference in the same environment and in another."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra import numpy as hnp

from reprocheck.baseline import Baseline, BaselineOutput, _statistics, compare_baselines, read_baseline
from reprocheck.compare.source import Source
from reprocheck.errors import UsageError
from reprocheck.model import Tolerance


@given(hnp.arrays(np.float32, hnp.array_shapes(max_dims=2, max_side=5)))
def test_statistics_are_those_of_the_finite_values(array: Any) -> None:
    found = _statistics(Source.from_numpy(array))

    finite = array[np.isfinite(array)].astype(np.float64)
    assert found["nan"] == np.isnan(array).sum()
    assert found["inf"] == np.isinf(array).sum()
    if finite.size:
        assert (found["min"], found["max"]) == (finite.min(), finite.max())
        # The sum cancels: what rounding may cost is measured against the sum of the absolute values.
        exact, magnitude = math.fsum(finite) / finite.size, math.fsum(abs(finite)) / finite.size
        assert found["mean"] == pytest.approx(exact, rel=0, abs=1e-12 * magnitude)
        assert found["rms"] == pytest.approx(math.sqrt(math.fsum(np.square(finite)) / finite.size), rel=1e-12)


def test_statistics_of_every_kind() -> None:
    assert _statistics(Source.from_numpy(np.array([1, -3], np.int16)))["min"] == -3
    assert _statistics(Source.from_numpy(np.array([3 + 4j], np.complex64)))["max"] == 4
    assert _statistics(Source.from_numpy(np.array([0x3F80], np.uint16), dtype="bfloat16"))["mean"] == 1
    assert _statistics(Source.from_numpy(np.zeros((0, 3)))) == {}
    assert _statistics(Source.from_numpy(np.array([True]))) == {}
    many = np.arange(600_000, dtype=np.float64)
    assert _statistics(Source.from_numpy(many))["mean"] == many.mean(), "over several chunks"


def baseline(fingerprint: str = "one", **outputs: BaselineOutput) -> Baseline:
    return Baseline(
        check="t.py::test",
        workload="t.py::test",
        order=("a", "b"),
        reprocheck_version="1",
        fingerprint=fingerprint,
        environment={"host.cpu.model": fingerprint},
        outputs=outputs,
    )


def output(digest: str = "d", mean: float = 1.0, **changes: Any) -> BaselineOutput:
    fields = {"dtype": "float32", "shape": (2,), "digest": digest, "stats": {"nan": 0, "mean": mean}} | changes
    return BaselineOutput(**fields)


EXACT, LOOSE = Tolerance(), Tolerance(rtol=1e-3)
ULP = Tolerance(ulp=1)


@pytest.mark.parametrize(
    ("now", "old", "tolerance", "status", "text"),
    [
        (output(), output(), EXACT, "agrees", ""),
        (output("e"), output(), EXACT, "differs", "y: other bits, with equal statistics"),
        (output("e", 2.0), output(), EXACT, "differs", "y: mean 2, was 1"),
        (output("e", 1.0001), output(), LOOSE, "agrees", ""),
        (output("e", 1.01), output(), LOOSE, "differs", "y: mean 1.01, was 1"),
        (output("e", 1 + 2.0**-23), output(), ULP, "agrees", ""),
        (output("e", 1 + 2.0**-22), output(), ULP, "differs", "y: mean 1.00000024, was 1"),
        (output("e", stats={"nan": 1, "mean": 1.0}), output(), LOOSE, "differs", "y: nan 1, was 0"),
        (output(shape=(3,)), output(), LOOSE, "differs", "y: float32[3], was float32[2]"),
        (output(dtype="float64"), output(), LOOSE, "differs", "y: float64[2], was float32[2]"),
    ],
)
def test_in_the_same_environment(
    now: BaselineOutput, old: BaselineOutput, tolerance: Tolerance, status: str, text: str
) -> None:
    found = compare_baselines(baseline(y=now), baseline(y=old), lambda _: tolerance)

    assert found.status == status
    assert found.differences == ((text,) if text else ())
    assert found.environment == ()


@pytest.mark.parametrize(
    ("now", "tolerance", "status"),
    [
        (output("e", 2.0), EXACT, "incomparable"),
        (output("e", 1.0001), LOOSE, "incomparable"),
        (output("e", 2.0), LOOSE, "differs"),
        (output("e", shape=(3,)), EXACT, "differs"),
    ],
)
def test_in_another_environment(now: BaselineOutput, tolerance: Tolerance, status: str) -> None:
    found = compare_baselines(baseline("two", y=now), baseline("one", y=output()), lambda _: tolerance)

    assert found.status == status
    assert found.environment == ("host.cpu.model: one, now two",)


def test_outputs_that_come_and_go() -> None:
    found = compare_baselines(baseline(x=output()), baseline(y=output()), lambda _: EXACT)

    assert found.differences == ("y: is gone", "x: is new")


@pytest.mark.parametrize("text", ["", "[]", '{"schema": "reprocheck/study"}'])
def test_a_file_that_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "b.json").write_text(text)

    with pytest.raises(UsageError, match="is not a baseline that can be read"):
        read_baseline(tmp_path / "b.json")


def test_round_trip(tmp_path: Path) -> None:
    (tmp_path / "b.json").write_bytes(msgspec.json.encode(baseline(y=output())))

    assert read_baseline(tmp_path / "b.json") == baseline(y=output())

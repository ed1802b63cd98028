"""Errors carry their exit code, and a divergence is none of ours."""

from __future__ import annotations

import reprocheck
from reprocheck import errors


def test_exit_codes() -> None:
    assert errors.UsageError("x").exit_code == 2
    assert errors.StoreError("x").exit_code == 2
    assert errors.HarnessError("x").exit_code == 3
    assert errors.NothingSelectedError("x").exit_code == 5


def test_a_divergence_is_an_assertion_and_a_harness_fault_is_not() -> None:
    assert issubclass(errors.DivergenceError, AssertionError)
    assert not issubclass(errors.DivergenceError, errors.ReprocheckError)
    assert not issubclass(errors.HarnessError, AssertionError)


def test_what_the_package_offers_is_there() -> None:
    for name in reprocheck.__all__:
        assert getattr(reprocheck, name) is not None
    assert set(dir(reprocheck)) == set(reprocheck.__all__)

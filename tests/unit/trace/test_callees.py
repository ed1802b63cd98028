"""Names and owners of what is called; cupy's as far as it can be imported without a GPU."""

from __future__ import annotations

import math
import types
import warnings
from typing import Any

import numpy as np
import pytest

from reprocheck.worker.trace import callees
from reprocheck.worker.trace.own import LIBRARY, OTHER, OWN


@pytest.fixture(scope="module")
def cupy() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("cupy")


def test_names_of_numpy() -> None:
    array = np.ones(2)

    assert callees.name(np.linalg.solve) == "numpy.linalg.solve"
    assert callees.name(np.add) == "numpy.add"
    assert callees.name(np.add.reduce) == "numpy.add.reduce"
    assert callees.name(array.sum) == "numpy.ndarray.sum"
    assert callees.name(np.random.default_rng(0).normal) == "numpy.Generator.normal"
    assert callees.name(np.random.rand) == "numpy.RandomState.rand"
    assert callees.name(math.exp) == "math.exp"


def test_names_of_cupy(cupy: Any) -> None:
    found = {callees.name(f) for f in (cupy.exp, cupy.sum, cupy.linalg.solve, cupy.fft.fft, cupy.matmul)}

    assert found == {"cupy.exp", "cupy.sum", "cupy.linalg.solve", "cupy.fft.fft", "cupy.matmul"}
    assert callees.name(cupy.RawKernel("", "saxpy")) == "cupy.RawKernel(saxpy)"
    assert callees.name(cupy.ElementwiseKernel("T x", "T y", "y = x", "mine")) == "cupy.ElementwiseKernel(mine)"
    assert (
        callees.name(cupy.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "all"))
        == "cupy.ReductionKernel(all)"
    )


class Sorted:
    """Stands for `own.Own`."""

    def __init__(self, kind: int) -> None:
        self.found = kind

    def kind(self, code: types.CodeType) -> int:
        return self.found

    def file_kind(self, file: str) -> int:
        return self.found


def test_whose_it_is(cupy: Any) -> None:
    def function() -> None: ...

    class Callable:
        def __call__(self) -> None: ...

    for kind in (OWN, OTHER, LIBRARY):
        assert callees.kind(Sorted(kind), function) == kind
        assert callees.kind(Sorted(kind), Callable()) == kind
    assert callees.kind(Sorted(OWN), Callable) == OWN
    nobody = Sorted(OTHER)
    for library in (np.add, np.linalg.solve, np.ones(1).sum, cupy.exp, cupy.RawKernel("", "f"), len):
        assert callees.kind(nobody, library) in (LIBRARY, OTHER)
    assert callees.kind(nobody, np.add) == LIBRARY
    assert callees.kind(nobody, math.exp) == OTHER, "a toolbox that replaces it is what is being looked for"


def test_what_may_change_its_arguments(cupy: Any) -> None:
    array = np.ones(2)

    assert not callees.may_change(np.dot, LIBRARY)
    assert not callees.may_change(array.sum, LIBRARY)
    assert callees.may_change(array.sort, LIBRARY)
    assert callees.may_change(np.copyto, LIBRARY)
    assert callees.may_change(cupy.RawKernel("", "f"), LIBRARY)
    assert callees.may_change(print, OTHER)

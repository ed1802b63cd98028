"""On a CUDA device: digests taken there, cupy and torch in one sequence, and CUPTI's kernel names.

Elsewhere a stand-in takes cupy's place (`tests/integration/locate`): all but the device itself is tested without it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reprocheck.explain.locate.kernels import kernels_of
from reprocheck.explain.locate.reading import read_trace
from reprocheck.store.objects import TRACE
from reprocheck.store.run import Run
from reprocheck.worker.trace import digest
from tests.conftest import Lab
from tests.integration.locate.planting import Plant, located, marked


@pytest.mark.parametrize("shape", [(), (5, 7), (300, 301), (40_000, 20), (3, 5_000_000)], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int8", "complex64"])
def test_devices_give_the_digests_of_the_cpu(dtype: str, shape: tuple[int, ...]) -> None:
    torch: Any = pytest.importorskip("torch")
    tensor = torch.randn(shape).to(getattr(torch, dtype))

    assert digest.tensor_digest(tensor.cuda()) == digest.tensor_digest(tensor)
    if tensor.dim() == 2:
        assert digest.tensor_digest(tensor.cuda().t()) == digest.tensor_digest(tensor.t())


def test_cupy_gives_the_digests_of_numpy() -> None:
    cupy: Any = pytest.importorskip("cupy")
    import numpy as np

    for shape in ((), (5, 7), (300, 301), (2_000_000,)):
        array = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
        assert digest.array_digest(cupy.asarray(array)) == digest.array_digest(array)


PLANT = Plant(
    name="cupy-and-torch",
    toolbox="plant.gain = 1.0000001",
    work="""
        import cupy as cp
        import torch
        import plant
        scale = cp.RawKernel(
            'extern "C" __global__ void scale(float* x, float by) { x[threadIdx.x] *= by; }', "scale"
        )
        def run():
            x = cp.arange(8, dtype=cp.float32)
            y = x @ x.reshape(8, 1)
            scale((1,), (8,), (x, cp.float32(getattr(plant, "gain", 1.0))))  # HERE
            z = torch.from_dlpack(x) * 2
            return {"y": y, "z": z}
    """,
    line={"kind": "changed", "variable": "x"},
)


def test_one_sequence_of_cupy_and_torch(lab: Lab) -> None:
    pytest.importorskip("cupy")

    study = located(PLANT, lab)

    line, origin = study.first_line, study.origin
    assert line is not None
    assert (line.file, line.line) == marked(lab, PLANT)
    assert origin is not None
    assert (origin.file, origin.line) == marked(lab, PLANT)
    assert origin.operator == "cupy.RawKernel(scale)"


def test_kernels_of_both(lab: Lab) -> None:
    pytest.importorskip("cupy")

    study = located(Plant(**{**vars(PLANT), "options": {"trace": "kernels"}}), lab)

    run = Run(Path(study.run_dir))
    record = next(item for item in run.records() if (item.trial.trace or {}).get("modes") == ["kernels"])
    assert record.trace is not None
    trace = read_trace(run.objects.path(record.trace, TRACE))
    names = {trace.operators[number].name: kernels for number, kernels in kernels_of(trace).items()}
    assert any("scale" in kernel for kernel in names["cupy.RawKernel(scale)"])
    assert names["aten::mul.Tensor"]

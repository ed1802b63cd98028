"""What is read of a process that uses a GPU: cuBLAS, TF32, the allocators, the driver."""

from __future__ import annotations

import os
from typing import Any

import pytest

from reprocheck.model import Record
from reprocheck.store.run import Run
from tests.conftest import Lab

WORK = """
    import cupy
    import torch

    def run():
        x = torch.ones(256, 256, device="cuda")
        y = cupy.ones((256, 256), dtype=cupy.float32)
        return {"torch": x @ x, "cupy": y @ y}
"""


@pytest.fixture
def record(lab: Lab) -> Record:
    pytest.importorskip("cupy")
    lab.write(work=WORK)
    study = lab.check("work.py::run", ["cupy", "torch"], repeat=1, max_repeat=1, observer=False)
    assert study.verdict == "identical", study.headline
    from pathlib import Path

    return Run(Path(study.run_dir)).records()[0]


def state(record: Record) -> dict[str, Any]:
    return {f"{kind}.{key}": value for kind, keys in record.snapshots[-1].kinds.items() for key, value in keys.items()}


def test_cublas_of_both(record: Record) -> None:
    found = state(record)

    assert found["torch.cuda.cublas_workspace"] != "not initialised"
    assert isinstance(found["cupy.cublas.math_mode"], int), "cupy's handle was asked"
    assert found["cuda.version.cublas"], "each mapped copy with its version"
    assert any(key.startswith("libraries.binding.") and "libtorch_cuda" in key for key in found)


def test_tf32_and_compute_types(record: Record) -> None:
    found = state(record)

    assert any(key.startswith("torch.fp32.") for key in found)
    assert found["cupy.compute_type.f"]


def test_allocators(record: Record) -> None:
    found = state(record)

    assert found["torch.alloc.0.reserved"] >= found["torch.alloc.0.allocated"] > 0
    assert found["torch.alloc.0.segments"] >= 1
    assert found["cupy.pool.total_bytes"] > 0


def test_contexts_and_devices(record: Record) -> None:
    found = state(record)

    assert found["torch.cuda.initialised"] is True
    assert found["cupy.devices"] >= 1
    assert "gpu.0.name" in found, "the management library was asked, after the outputs were saved"
    assert found["gpu.driver"]


def test_nothing_is_read_of_the_device_before_the_workload(record: Record) -> None:
    """Readers that start a device or load a library come last: a context is there because the workload made one."""
    before = next(snapshot for snapshot in record.snapshots if snapshot.phase == "t2")

    assert "gpu" not in before.kinds
    assert before.kinds["torch"]["cuda.initialised"] is False


def test_trials_on_one_gpu_take_turns(lab: Lab) -> None:
    from reprocheck.engine.gate import gpu_locks, visible_gpus

    assert visible_gpus(os.environ), "the driver's files name the GPUs"
    assert gpu_locks(os.environ)

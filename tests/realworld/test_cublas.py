"""The root cause of the mission, without a GPU: which cuBLAS torch is bound to depends on whether cupy came first.

Run by `nox -s cublas`, which installs torch's CUDA build, cupy and a second cuBLAS (several GB) and names them in
REPROCHECK_CUBLAS_SITE (their site-packages) and REPROCHECK_CUBLAS_TOOLKIT (the second cuBLAS, laid out as a toolkit).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from reprocheck import check
from reprocheck.model import StateDifference, Study
from tests.realworld.conftest import ROOT

SITE = os.environ.get("REPROCHECK_CUBLAS_SITE", "")
TOOLKIT = os.environ.get("REPROCHECK_CUBLAS_TOOLKIT", "")

pytestmark = pytest.mark.skipif(
    not (SITE and TOOLKIT), reason="run by `nox -s cublas`: it needs several GB of packages"
)


def binding(study: Study, family: str) -> StateDifference:
    """The difference in what libtorch_cuda is bound to, for one family of functions."""
    differences = (*study.state_differences, *study.hazards)
    return next(
        item for item in differences if item.key.endswith(f"libtorch_cuda.so.{family}") and ".binding." in item.key
    )


def test_cupy_first_gives_torch_another_cublaslt(tmp_path: Path) -> None:
    """By CUDA_PATH cupy finds the toolkit's cuBLASLt; torch, imported later, is bound to it by its SONAME.

    The packages are on PYTHONPATH of an empty environment, as with `pip --target` or a build system's runfiles.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "empty")], check=True)
    (tmp_path / "work.py").write_text("import torch\ndef run(): return torch.arange(8.0).cumsum(0)\n")

    study = check(
        "work.py::run",
        ["cupy", "torch"],
        cwd=tmp_path,
        python=str(tmp_path / "empty" / "bin" / "python"),
        env={"PYTHONPATH": SITE, "CUDA_PATH": TOOLKIT},
    )

    difference = binding(study, "cublaslt")
    values = {",".join(change.order): str(change.value) for change in difference.changes}
    assert study.verdict == "identical", "on the CPU the numbers agree: a hazard"
    assert difference.severity == "numeric"
    assert TOOLKIT in values["cupy,torch"]
    assert TOOLKIT not in values["torch,cupy"]
    assert SITE in values["torch,cupy"]


def test_a_toolkit_loaded_first_gives_torch_another_cublas(tmp_path: Path) -> None:
    study = check(
        "scenarios/cublas_binding.py",
        cwd=ROOT,
        out=tmp_path / "run",
        env={"SCENARIO_CUDA_TOOLKIT": TOOLKIT},
        explain=False,
    )

    difference = binding(study, "cublas")
    values = {change.order[0]: str(change.value) for change in difference.changes}
    assert study.verdict == "order-dependent", study.headline
    assert TOOLKIT in values["native.toolkit"]
    assert TOOLKIT not in values["torch"]

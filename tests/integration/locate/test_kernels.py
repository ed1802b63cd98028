"""Kernel evidence from the MKL inside torch."""

from __future__ import annotations

import platform

import pytest

from tests.conftest import Lab
from tests.integration.locate.planting import Plant, located, marked


@pytest.mark.skipif(platform.machine() != "x86_64", reason="torch computes with MKL on x86-64 only")
def test_operators_are_matched_with_the_kernels_of_both_orders(torch_lab: Lab) -> None:
    torch = pytest.importorskip("torch")
    if not torch.backends.mkl.is_available():
        pytest.skip("this torch has no MKL")
    plant = Plant(
        name="threads",
        toolbox="import torch; torch.set_num_threads(2)",
        work="""
            import torch
            def run():
                print("the workload speaks")
                a = torch.ones(256, 256) / 3
                b = a @ a  # HERE
                return b
        """,
        options={"trace": "kernels"},
    )

    study = located(plant, torch_lab)

    (found,) = study.kernels
    assert found.operator == "aten::mm"
    assert (found.file, found.line) == marked(torch_lab, plant)
    assert all(side[0].startswith("MKL ") for side in found.kernels)
    assert ["NThr:1" in found.kernels[0][0], "NThr:2" in found.kernels[1][0]] == [True, True]
    assert "`a,b` ran MKL" in found.text
    assert "0x" not in found.text


def test_nothing_to_see_is_said(lab: Lab) -> None:
    lab.write(a="", b="", work="def run():\n    return 1.0")

    study = lab.check(trace="kernels", repeat=1, observer=False)

    assert study.kernels == ()
    assert study.traced is not None
    assert "no kernel was seen: nothing of MKL, oneDNN or CUDA ran inside the operators" in study.traced.notes

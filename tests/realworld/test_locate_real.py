"""Where real divergences on a CPU start: the line, the operator and the kernels of two MKLs; compiled regions."""

from __future__ import annotations

import platform
import shutil
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reprocheck import check
from reprocheck.explain.locate.reading import Operator, read_trace
from reprocheck.model import Record, Study
from reprocheck.store.objects import TRACE
from reprocheck.store.run import Run
from tests.realworld.conftest import ROOT

Needs = Callable[..., None]

x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="mkl is for x86-64")
LINEAR_ALGEBRA = ("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::mv", "aten::dot")
ATTENTION = "aten::_scaled_dot_product_flash_attention_for_cpu"
ONE_OF_EACH: dict[str, Any] = {"repeat": 1, "max_repeat": 1, "observer": False, "explain": False}


def located(workload: str, folder: Path, *, imports: list[str], trace: str = "auto") -> Study:
    (folder / "work.py").write_text(textwrap.dedent(workload), encoding="utf-8")
    return check("work.py::run", imports, cwd=folder, trace=trace, **ONE_OF_EACH)


@x86
def test_mkl_scenario_names_the_linear_algebra_call(needs: Needs, tmp_path: Path) -> None:
    needs("torch", "mkl", "mkl-service")

    study = check(
        "scenarios/mkl_torch.py::run",
        ["mkl", "torch"],
        cwd=ROOT,
        out=tmp_path / "run",
        trace="kernels",
        trace_export=tmp_path / "traces",
        **ONE_OF_EACH,
    )

    line, origin = study.first_line, study.origin
    assert line is not None
    assert origin is not None
    assert origin.kind == "operator"
    assert origin.inputs_equal
    assert origin.operator in LINEAR_ALGEBRA or origin.operator.startswith(
        ("aten::_linalg", "aten::linalg", "aten::_fft")
    )
    assert (origin.file, origin.line) == (line.file, line.line)
    assert line.file.endswith("battery.py")
    assert line.difference is not None
    assert line.difference.kind == "values"
    assert study.kernels
    sides = [" ".join(side) for side in next(item.kernels for item in study.kernels)]
    assert "MKL 2026" in sides[0]
    assert "MKL 2024" in sides[1]
    assert sorted(path.name for path in (tmp_path / "traces").iterdir())[:2] == [
        "1-mkl+torch.lines.tsv",
        "1-mkl+torch.ops.tsv",
    ]


@x86
@pytest.mark.parametrize(
    ("layer", "width", "operators"),
    [
        ("nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)", 32, (*LINEAR_ALGEBRA, ATTENTION)),
        ("nn.LSTM(32, 48, batch_first=True)", 48, (*LINEAR_ALGEBRA, "aten::mkldnn_rnn_layer")),
    ],
)
def test_training_steps_name_the_operator(
    needs: Needs, tmp_path: Path, layer: str, width: int, operators: tuple[str, ...]
) -> None:
    needs("torch", "mkl", "mkl-service")

    study = located(
        f"""
        import torch
        from torch import nn
        def run():
            torch.manual_seed(0)
            model = nn.ModuleDict({{"layer": {layer}, "head": nn.Linear({width}, 7)}}).double()
            optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
            x = torch.randn(8, 16, 32, dtype=torch.float64)
            losses = []
            for _ in range(2):
                optimiser.zero_grad()
                hidden = model["layer"](x)
                hidden = hidden[0] if isinstance(hidden, tuple) else hidden
                loss = model["head"](hidden).square().mean()
                loss.backward()
                optimiser.step()
                losses.append(loss.detach())
            return {{"losses": losses, "parameters": [p.detach() for p in model.parameters()]}}
        """,
        tmp_path,
        imports=["mkl", "torch"],
    )

    if not any(output.differs for output in study.outputs):
        pytest.skip("on this processor both MKLs give the same bits here")
    assert study.first_line is not None
    assert study.origin is not None
    assert study.origin.kind == "operator"
    assert study.origin.operator in operators
    assert study.origin.module
    assert study.origin.output is not None
    assert study.origin.output.difference is not None


@pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler for torch.compile")
def test_compiled_regions_are_one_operator(needs: Needs, tmp_path: Path) -> None:
    """Forward and backward; the hooks in the workload's functions do not break a graph in two."""
    needs("torch")
    (tmp_path / "early.py").write_text("", encoding="utf-8")

    study = located(
        """
        import numpy as np
        import torch

        def scale(x, by):
            return x * by + by

        def inner(x):
            return torch.nn.functional.gelu(scale(x, 0.5)).sin().sum()

        def run():
            compiled = torch.compile(inner, fullgraph=True)
            x = torch.linspace(0, 1, 12, requires_grad=True)
            y = compiled(x)
            y.backward()
            z = np.ones(2) + float(y)
            return {"y": y.detach(), "grad": x.grad, "z": z}
        """,
        tmp_path,
        imports=["torch", "early"],
        trace="ops",
    )

    assert study.traced is not None
    assert study.traced.observer == "agrees"
    run = Run(Path(study.run_dir))
    record = next(record for record in run.records() if record.trial.trace is not None)
    operators = _operators(run, record)
    regions = [item for item in operators if item.name == "torch.compile"]
    assert [item.phase or "forward" for item in regions] == ["forward", "backward"]
    assert all("compiled by torch.compile" in (item.note or "") for item in regions)
    assert [item.name for item in operators if item.name.startswith("numpy")] == ["numpy.ones", "numpy +"]


def test_data_loader_workers_are_named(needs: Needs, tmp_path: Path) -> None:
    needs("torch")
    (tmp_path / "early.py").write_text("", encoding="utf-8")

    study = located(
        """
        import torch
        class Data(torch.utils.data.Dataset):
            def __len__(self):
                return 4
            def __getitem__(self, index):
                return torch.full((3,), float(index))
        def run():
            total = 0.0
            for batch in torch.utils.data.DataLoader(Data(), batch_size=2, num_workers=1):
                total = total + batch.sum()
            return total
        """,
        tmp_path,
        imports=["torch", "early"],
        trace="ops",
    )

    assert study.traced is not None
    assert study.traced.observer == "agrees"
    assert "what a DataLoader worker started at work.py:10 does is not traced" in study.traced.notes


def _operators(run: Run, record: Record) -> tuple[Operator, ...]:
    assert record.trace is not None
    return read_trace(run.objects.path(record.trace, TRACE)).operators

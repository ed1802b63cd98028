# /// script
# requires-python = ">=3.11"
# dependencies = ["torch==2.13.0", "cupy-cuda12x==14.2.0", "numpy"]
#
# [tool.reprocheck]
# imports = ["cupy", "torch"]
# workload = "run"
# expect = "identical"
# story = "cupy prepares, torch trains: the mission's pair of libraries, and a control that agrees."
# ///
"""cupy prepares the data, torch trains on it.

What it shows: a pipeline as people write it. Array work (products, solves, reductions, whitening) in cupy, the
result handed to torch by DLPack without a copy, then products in three precisions, a convolution, and training
steps of an LSTM and of an encoder layer. Both libraries bring CUDA libraries, so the one imported first decides
which copies are loaded; this scenario says whether that reaches the numbers. On a machine without a GPU the same
code runs on numpy and torch's CPU kernels, and `import cupy` still takes part in the order.

What to expect: `identical` on a CPU, where cupy is only imported. On a GPU `identical` too as long as both
libraries are bound to one set of CUDA libraries (`cublas_binding` shows how they stop being).

What it needs: cupy and torch; a GPU is used where there is one (`--device cpu` keeps it out). The variable
`SCENARIO_ALLOCATOR=torch` makes cupy allocate from torch's pool (default: `separate`), so
`--vary SCENARIO_ALLOCATOR=separate,torch` asks whether the allocator touches the bits.
"""

from __future__ import annotations

import os
from typing import Any

import kit
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - torch's own convention

SAMPLES, FEATURES, STEPS, BATCH = 4096, 64, 32, 64


def run() -> dict[str, Any]:
    where = kit.device()
    torch.manual_seed(2)
    share_allocator(where)
    prepared, arrays = prepare(where)
    data = kit.to_torch(prepared, where)
    return {
        "array": arrays,
        "gemm": gemm(data),
        "convolution": convolution(data),
        "lstm": train(nn.LSTM(FEATURES, 96, batch_first=True), 96, data),
        "encoder": train(nn.TransformerEncoderLayer(FEATURES, 4, 128, dropout=0.0, batch_first=True), FEATURES, data),
    }


def share_allocator(where: torch.device) -> None:
    """Let cupy allocate from torch's caching allocator when `SCENARIO_ALLOCATOR=torch`."""
    asked = os.environ.get("SCENARIO_ALLOCATOR", "separate")
    if asked not in {"separate", "torch"}:
        raise SystemExit(f"SCENARIO_ALLOCATOR is `{asked}`; use `separate` or `torch`.")
    if asked == "torch" and where.type == "cuda":
        import cupy

        pool = cupy.cuda.PythonFunctionAllocator(
            lambda size, index: torch.cuda.caching_allocator_alloc(size, index, torch.cuda.current_stream(index)),
            lambda pointer, _index: torch.cuda.caching_allocator_delete(pointer),
        )
        cupy.cuda.set_allocator(pool.malloc)


def prepare(where: torch.device) -> tuple[Any, dict[str, Any]]:
    """Whitened features, shape (SAMPLES, FEATURES), float32, and the intermediate results by name."""
    xp = kit.array_module(where)
    # Drawn by numpy everywhere: what is compared is arithmetic, not two libraries' random streams.
    raw = xp.asarray(torch.randn(SAMPLES, FEATURES, generator=torch.Generator().manual_seed(1)).numpy())
    mixed = raw @ (xp.eye(FEATURES, dtype=xp.float32) + raw[:FEATURES] / 32)
    centred = mixed - mixed.mean(axis=0)
    covariance = centred.T @ centred / (SAMPLES - 1)
    factor = xp.linalg.cholesky(covariance + 1e-3 * xp.eye(FEATURES, dtype=xp.float32))
    white = xp.ascontiguousarray(xp.linalg.solve(factor, centred.T).T).astype(xp.float32)

    system = raw[:512] @ raw[:512].T / FEATURES + xp.eye(512, dtype=xp.float32)
    right = raw[512:1024]
    solution = xp.linalg.solve(system, right)
    assert float(xp.abs(system @ solution - right).max()) < 2e-2
    assert float(xp.abs(white.T @ white / (SAMPLES - 1) - xp.eye(FEATURES)).max()) < 0.05
    return white, {
        "product": mixed,
        "covariance": covariance,
        "cholesky": factor,
        "solution": solution,
        "whitened": white,
        "sum": raw.sum(),
        "column_std": raw.std(axis=0),
        "largest_eigenvalues": xp.linalg.eigvalsh(covariance)[-8:],
        "softplus": xp.logaddexp(raw, 0),
        "spectrum": xp.abs(xp.fft.rfft(raw[:, 0])),
    }


def gemm(data: Tensor) -> dict[str, Tensor]:
    """The same square product in each precision the device has, checked against float64."""
    a = data.reshape(512, 512)
    b = a.mT.contiguous()
    exact = a.double() @ b.double()
    out = {"float64": exact, "float32": a @ b, "bfloat16": a.bfloat16() @ b.bfloat16()}
    kit.assert_close("float32 product", out["float32"], exact, kit.rounding(data.device))
    kit.assert_close("bfloat16 product", out["bfloat16"], exact, 2e-2)
    if data.is_cuda:
        before = torch.backends.cuda.matmul.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = True
        out["tf32"] = a @ b
        torch.backends.cuda.matmul.allow_tf32 = before
        kit.assert_close("TF32 product", out["tf32"], exact, 1e-2)
    return out


def convolution(data: Tensor) -> dict[str, Tensor]:
    """A 3x3 convolution over 16 images of 16 channels, with the gradient of its weight."""
    images = data.reshape(16, 16, 32, 32)
    layer = nn.Conv2d(16, 32, 3, padding=1).to(data.device)
    y = layer(images)
    F.gelu(y).square().mean().backward()
    return {"output": y.detach(), "weight_grad": layer.weight.grad}


def train(layer: nn.Module, width: int, data: Tensor) -> dict[str, Any]:
    """Four Adam steps that predict the next vector of each sequence; losses, last gradient, last parameters."""
    model = nn.ModuleDict({"layer": layer, "head": nn.Linear(width, FEATURES)}).to(data.device)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    sequences = data.reshape(-1, STEPS, FEATURES)[:BATCH]
    losses = []
    for _ in range(4):
        optimiser.zero_grad()
        hidden = model["layer"](sequences[:, :-1])
        hidden = hidden[0] if isinstance(hidden, tuple) else hidden
        loss = F.mse_loss(model["head"](hidden), sequences[:, 1:])
        loss.backward()
        optimiser.step()
        losses.append(loss.detach())
    assert losses[-1] < losses[0], "training made it worse"
    name, first = next(iter(layer.named_parameters()))
    return {"losses": torch.stack(losses), f"{name}_grad": first.grad, name: first.detach(), "hidden": hidden.detach()}


if __name__ == "__main__":
    kit.main(run)

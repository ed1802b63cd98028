"""The CPU battery: about ninety named outputs over torch and numpy, bit-stable between runs.

A helper module, not a scenario: `mkl_torch` and `ultralytics_threads` ask it what an import order does to
everyday numerics. It covers what libraries disagree about when they are swapped under a program: matrix
products in four precisions and at sizes on both sides of the blocking thresholds, factorisations, reductions
long enough to be split over threads, vector mathematics, transforms, convolution, recurrent and attention
layers with their gradients, denormals, and an optimiser.

Inputs are drawn by numpy's PCG64 from fixed seeds, one stream per family, so no family's inputs move when
another one changes; they are outputs too (`numpy.inputs`, `torch.inputs`), which shows that they were equal.
"""

from __future__ import annotations

from collections.abc import Callable
from zlib import crc32

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - torch's own convention

__all__ = ["numpy_outputs", "torch_outputs"]

SIZES = (16, 128, 257, 500)
SMALL = SIZES[:-1]
LONG = 1_000_003  # elements; prime, so that every way of splitting it over threads leaves a rest
DENORMAL_BITS = 0x000116C2  # 1e-40 in float32, by its bits: no conversion may flush it


def torch_outputs() -> dict[str, dict[str, Tensor]]:
    """Family -> case -> tensor on the CPU. Each family draws its own inputs and seeds torch itself."""
    return {family.__name__: _detached(family) for family in TORCH_FAMILIES}


def numpy_outputs() -> dict[str, dict[str, np.ndarray]]:
    """Family -> case -> array."""
    return {family.__name__: family() for family in NUMPY_FAMILIES}


def _detached(family: Callable[[], dict[str, Tensor]]) -> dict[str, Tensor]:
    torch.manual_seed(crc32(family.__name__.encode()))
    return {case: value.detach().clone() for case, value in family().items()}


class Draw:
    """Standard normal numbers for one family, the same on every machine."""

    def __init__(self, name: str) -> None:
        self._rng = np.random.default_rng(crc32(name.encode()))

    def array(self, *shape: int) -> np.ndarray:
        """float64 array of `shape`."""
        return self._rng.standard_normal(shape)

    def tensor(self, *shape: int) -> Tensor:
        """float32 tensor of `shape`."""
        return torch.from_numpy(self._rng.standard_normal(shape, dtype=np.float32))


# --- torch ---------------------------------------------------------------------------------------------------------


def inputs() -> dict[str, Tensor]:
    draw = Draw("inputs")
    return {"normal": draw.tensor(1000), "uniform_by_torch": torch.rand(1000), "normal_by_torch": torch.randn(1000)}


def matmul() -> dict[str, Tensor]:
    draw, out = Draw("matmul"), {}
    for n in (*SIZES, 1000):
        a, b = draw.tensor(n, n), draw.tensor(n, n)
        out[f"float32_{n}"] = a @ b
        if n in SIZES:
            out[f"float64_{n}"] = a.double() @ b.double()
            out[f"bfloat16_{n}"] = a.bfloat16() @ b.bfloat16()
    return out | {"linear": F.linear(draw.tensor(64, 300), draw.tensor(100, 300), draw.tensor(100))}


def solve() -> dict[str, Tensor]:
    draw = Draw("solve")
    return {f"float32_{n}": torch.linalg.solve(draw.tensor(n, n), draw.tensor(n, 8)) for n in SIZES}


def svd() -> dict[str, Tensor]:
    draw = Draw("svd")
    return {f"float32_{n}": torch.cat([part.flatten() for part in torch.linalg.svd(draw.tensor(n, n))]) for n in SMALL}


def eigh() -> dict[str, Tensor]:
    draw, out = Draw("eigh"), {}
    for n in SMALL:
        a = draw.tensor(n, n)
        out[f"vectors_{n}"] = torch.linalg.eigh(a + a.mT).eigenvectors
    return out | {"values_128": torch.linalg.eigvalsh(_symmetric(draw.tensor(128, 128)))}


def reduction() -> dict[str, Tensor]:
    x = Draw("reduction").tensor(LONG)
    return {
        "sum": x.sum(),
        "mean": x.mean(),
        "std": x.std(),
        "norm": x.norm(),
        "dot": x @ x,
        "logsumexp": x.logsumexp(0),
        "cumsum": x.cumsum(0),
    }


def elementwise() -> dict[str, Tensor]:
    x = Draw("elementwise").tensor(LONG)
    return {
        "exp": x.exp(),
        "log": x.abs().log(),
        "sin": x.sin(),
        "tanh": x.tanh(),
        "erf": x.erf(),
        "gelu": F.gelu(x),
        "exp_float64": x[:100_003].double().exp(),
    }


def normalisation() -> dict[str, Tensor]:
    draw = Draw("normalisation")
    return {
        "softmax_long": F.softmax(draw.tensor(LONG), 0),
        "softmax_rows": F.softmax(draw.tensor(512, 1000), -1),
        "layer_norm": F.layer_norm(draw.tensor(256, 768), (768,)),
    }


def fourier() -> dict[str, Tensor]:
    draw = Draw("fourier")
    return {"complex_65536": torch.fft.fft(draw.tensor(65536)), "real_2d": torch.fft.rfft2(draw.tensor(256, 384))}


def convolution() -> dict[str, Tensor]:
    draw = Draw("convolution")
    x = draw.tensor(8, 16, 56, 56).requires_grad_()
    weight = draw.tensor(32, 16, 3, 3).requires_grad_()
    y = F.conv2d(x, weight, padding=1)
    y.square().mean().backward()
    return {"output": y, "weight_grad": weight.grad, "input_grad": x.grad}


def recurrent() -> dict[str, Tensor]:
    layer = nn.LSTM(32, 64)
    y, (_, cell) = layer(Draw("recurrent").tensor(20, 8, 32))
    y.square().sum().backward()
    return {"output": y, "cell": cell, "weight_grad": layer.weight_hh_l0.grad, "bias_grad": layer.bias_ih_l0.grad}


def attention() -> dict[str, Tensor]:
    draw = Draw("attention")
    query, key, value = (draw.tensor(2, 4, 128, 32) for _ in range(3))
    layer = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)
    y = layer(draw.tensor(4, 32, 64))
    y.square().mean().backward()
    return {
        "scaled_dot_product": F.scaled_dot_product_attention(query, key, value),
        "encoder_layer": y,
        "encoder_projection_grad": layer.self_attn.in_proj_weight.grad,
        "encoder_feedforward_grad": layer.linear1.weight.grad,
    }


def denormal() -> dict[str, Tensor]:
    tiny = torch.full((1 << 20,), DENORMAL_BITS, dtype=torch.int32).view(torch.float32)
    return {
        "halved": tiny * 0.5,
        "exp": torch.full((1 << 20,), -100.0).exp(),
        "softmax": F.softmax(torch.linspace(-120, 0, 200).repeat(500, 1), -1),
        "matmul": torch.full((64, 64), 1e-20) @ torch.full((64, 64), 1e-20),
    }


def optimiser() -> dict[str, Tensor]:
    parameter = nn.Parameter(Draw("optimiser").tensor(1 << 17))
    adam = torch.optim.Adam([parameter], lr=1e-3)
    for _ in range(5):
        adam.zero_grad()
        (parameter * 1e-9).square().sum().backward()  # second moments near 1e-42: denormal
        adam.step()
    return {"adam_parameter": parameter, "adam_second_moment": adam.state[parameter]["exp_avg_sq"]}


TORCH_FAMILIES = (
    inputs,
    matmul,
    solve,
    svd,
    eigh,
    reduction,
    elementwise,
    normalisation,
    fourier,
    convolution,
    recurrent,
    attention,
    denormal,
    optimiser,
)


# --- numpy ---------------------------------------------------------------------------------------------------------


def products() -> dict[str, np.ndarray]:
    draw, out = Draw("products"), {}
    for n in SIZES:
        a, b = draw.array(n, n), draw.array(n, n)
        out[f"float64_{n}"] = a @ b
        out[f"float32_{n}"] = a.astype(np.float32) @ b.astype(np.float32)
    return out


def factorisations() -> dict[str, np.ndarray]:
    draw, out = Draw("factorisations"), {}
    for n in SIZES:
        out[f"solve_{n}"] = np.linalg.solve(draw.array(n, n), draw.array(n, 8))
    for n in SMALL:
        out[f"svd_{n}"] = np.concatenate([part.ravel() for part in np.linalg.svd(draw.array(n, n))])
        out[f"eigh_{n}"] = np.linalg.eigh(_symmetric(draw.array(n, n))).eigenvectors
    return out


def vectors() -> dict[str, np.ndarray]:
    x = Draw("vectors").array(100_003)
    x32 = x.astype(np.float32)
    tiny = np.full(100_003, DENORMAL_BITS, np.uint32).view(np.float32)
    return {
        "inputs": x[:1000],
        "dot_float64": np.asarray(x @ x),
        "dot_float32": np.asarray(x32 @ x32),
        "sum": np.asarray(x.sum()),
        "std": np.asarray(x.std()),
        "exp": np.exp(x),
        "sin_float32": np.sin(x32),
        "fft": np.fft.fft(x),
        "denormal_halved": tiny * np.float32(0.5),
        "denormal_exp": np.exp(np.full(1000, -100, np.float32)),
    }


NUMPY_FAMILIES = (products, factorisations, vectors)


def _symmetric(a):  # noqa: ANN001, ANN202 - an array or a tensor, and the same back
    return a + a.T

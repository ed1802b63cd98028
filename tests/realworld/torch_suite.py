"""An ordinary torch test file with the marker: each body runs in fresh interpreters, once per order and repeat.

`test_pytest_real.py` copies it into a folder of its own and runs it there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from reprocheck import DivergenceError

Record = Callable[[str, Any], Any]

CUPY_TORCH = pytest.mark.reprocheck(imports=["cupy", "torch"])
MKL_TORCH = pytest.mark.reprocheck(imports=["mkl", "torch"])
REBINDS = pytest.mark.xfail(
    strict=True,
    raises=DivergenceError,
    reason="mkl's libmkl_rt.so, loaded first, takes over torch's LAPACK: orthogonal_ gives another matrix",
)


@pytest.fixture
def batch() -> tuple[Tensor, Tensor]:
    """Inputs (time 20, batch 8, features 32) and classes (batch 8)."""
    torch.manual_seed(0)
    return torch.randn(20, 8, 32), torch.randint(0, 5, (8,))


class Reader(nn.Module):  # type: ignore[misc]  # torch is not followed
    """An LSTM whose recurrent weights start orthogonal, and a classifier on its last state."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(32, 64)
        nn.init.orthogonal_(self.lstm.weight_hh_l0)
        self.head = nn.Linear(64, 5)

    def forward(self, x: Tensor) -> Tensor:
        """Class scores (batch, 5)."""
        states, _ = self.lstm(x)
        scores: Tensor = self.head(states[-1])
        return scores


def lstm_step(batch: tuple[Tensor, Tensor], record: Record) -> None:
    """One training step of an LSTM: loss, gradients and the new weights."""
    torch.manual_seed(1)
    model = Reader()
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    inputs, classes = batch
    before = nn.functional.cross_entropy(model(inputs), classes)
    before.backward()
    record("loss", before)
    record("gradients", {name: weight.grad for name, weight in model.named_parameters()})
    optimiser.step()
    record("weights", model.state_dict())
    after = nn.functional.cross_entropy(model(inputs), classes)
    assert after < before


def attention_block(batch: tuple[Tensor, Tensor], record: Record) -> None:
    """Forward and backward through a pre-norm attention block."""
    torch.manual_seed(2)
    norm, attention = nn.LayerNorm(32), nn.MultiheadAttention(32, 4)
    mixer = nn.Sequential(nn.LayerNorm(32), nn.Linear(32, 128), nn.GELU(), nn.Linear(128, 32))
    inputs = batch[0].requires_grad_()
    normal = norm(inputs)
    mixed, weights = attention(normal, normal, normal)
    hidden = inputs + mixed
    outputs = hidden + mixer(hidden)
    outputs.square().mean().backward()
    record("attention", weights)
    record("outputs", outputs)
    record("gradient", inputs.grad)
    assert torch.allclose(weights.sum(-1), torch.ones(8, 20))


@CUPY_TORCH
def test_lstm_step_with_cupy(batch: tuple[Tensor, Tensor], record: Record) -> None:
    lstm_step(batch, record)


@CUPY_TORCH
def test_attention_block_with_cupy(batch: tuple[Tensor, Tensor], record: Record) -> None:
    attention_block(batch, record)


@REBINDS
@MKL_TORCH
def test_lstm_step_with_mkl(batch: tuple[Tensor, Tensor], record: Record) -> None:
    lstm_step(batch, record)


# Whether matrix products differ depends on the processor: both MKLs choose their code by it.
@pytest.mark.reprocheck(imports=["mkl", "torch"], rtol=1e-4, atol=1e-6)
def test_attention_block_with_mkl(batch: tuple[Tensor, Tensor], record: Record) -> None:
    attention_block(batch, record)

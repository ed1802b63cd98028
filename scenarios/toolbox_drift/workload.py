# /// script
# requires-python = ">=3.11"
# dependencies = ["torch==2.13.0", "numpy"]
#
# [tool.reprocheck]
# imports = ["toolbox", "torch"]
# workload = "run"
# expect = "order-dependent"
# story = "After toolbox 1.7 the training curves moved: it sets OMP_NUM_THREADS when it is imported."
# ///
"""A training run that moved when a package it uses was updated.

What it shows: the `toolbox` beside this file is at release 1.7, which writes `OMP_NUM_THREADS=1` when it is
imported. Imported before torch, that reaches the OpenMP runtime and torch computes on one thread; imported after
torch, it comes too late. Sums over many elements are split by thread, so losses, gradients and weights differ in
their last bits, and training carries that on.

What to expect: `order-dependent` on two or more cores. On one core both orders run one thread, so nothing shows
(`identical`), although the environment still differs.

What it needs: torch, about 3 seconds a trial. `releases.py` beside this file builds the toolbox's six releases as
wheels, for the question since when.
"""

from __future__ import annotations

from typing import Any

import toolbox
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - torch's own convention

SIGNALS, TIME, CLASSES, STEPS = 1024, 512, 8, 12


class Classifier(nn.Module):
    """Two layers with the toolbox's activation between them."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(TIME // 2 + 1, 256)
        self.second = nn.Linear(256, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        """Logits, shape (batch, CLASSES)."""
        return self.second(toolbox.activation(self.first(x)))


def run() -> dict[str, Any]:
    torch.manual_seed(17)
    signals, labels = data()
    inputs = toolbox.features(signals)
    model = Classifier()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    losses, norms = [], []
    for _ in range(STEPS):
        optimiser.zero_grad()
        loss = F.cross_entropy(model(toolbox.augment(inputs)), labels)
        loss.backward()
        norms.append(nn.utils.get_total_norm([parameter.grad for parameter in model.parameters()]))
        optimiser.step()
        losses.append(loss.detach())
    accuracy = (model(inputs).argmax(1) == labels).float().mean()
    assert accuracy > 0.9, f"the classifier reaches {accuracy:.0%} only"
    return {
        "signals": signals,
        "features": inputs,
        "losses": torch.stack(losses),
        "gradient_norms": torch.stack(norms),
        "accuracy": accuracy,
        "weights": {name: value.detach() for name, value in model.named_parameters()},
    }


def data() -> tuple[Tensor, Tensor]:
    """Noisy sine waves, one frequency band per class."""
    labels = torch.arange(SIGNALS) % CLASSES
    frequency = 0.2 + 0.3 * labels + 0.1 * torch.rand(SIGNALS)
    time = torch.arange(TIME)
    return torch.sin(frequency[:, None] * time) + 0.5 * torch.randn(SIGNALS, TIME), labels

"""What the toolbox is used for: features, an activation and an augmentation for signals."""

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - torch's own convention


def features(signals: Tensor) -> Tensor:
    """Centred log power spectra of `signals` (batch, time): shape (batch, time // 2 + 1)."""
    power = torch.fft.rfft(signals).abs().square()
    logarithm = (power + 1e-6).log()
    return (logarithm - logarithm.mean()) / logarithm.std()


def activation(x: Tensor) -> Tensor:
    """GELU."""
    return F.gelu(x)


def augment(x: Tensor) -> Tensor:
    """`x` with Gaussian noise of one per cent added, from torch's global generator."""
    return x + 0.01 * torch.randn_like(x)

# /// script
# requires-python = ">=3.11"
# dependencies = ["torch==2.13.0", "cupy-cuda12x==14.2.0", "numpy"]
#
# [tool.reprocheck]
# imports = ["cupy", "torch"]
# workload = "run"
# expect = "identical"
# story = "A training step that waits for its data: where the time goes, and that batches never depend on it."
# ///
"""A training loop that starves, and what feeds it.

What it shows: images lie compressed; each is unpacked, cropped, mirrored and normalised on the fly, then a small
convolutional network takes a step. The same epoch runs four times: loaded in the loop itself, by worker processes, by
worker processes with more prefetch and (on a GPU) pinned memory, and with images that were unpacked beforehand. For
each, the time of a step is broken down into waiting for the batch, copying it and computing, and the share of the time
in which the device starves. Workers hide the wait only while cores are free; unpacking once removes it.

What it asserts: the content and order of the batches, and therefore every loss and the final weights, are the same
bits in all four: they depend on the seed of the epoch and the index of the image, not on the number of workers.

What it prints: the breakdown. It is a measurement, so it is not recorded and not compared.

What to expect: `identical`. What it needs: torch, processes that may be forked, and two idle cores for fair numbers.
"""

from __future__ import annotations

import hashlib
import zlib
from typing import Any

import kit
import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - torch's own convention
from torch.utils.data import DataLoader, Dataset

IMAGES, SIDE, CROP, BATCH, CLASSES = 256, 128, 112, 32, 4

VARIANTS: dict[str, dict[str, Any]] = {
    "in the loop": {"num_workers": 0},
    "2 workers": {"num_workers": 2},
    "2 workers, prefetch 4, pinned": {"num_workers": 2, "prefetch_factor": 4, "pin_memory": torch.cuda.is_available()},
    "unpacked beforehand": {"num_workers": 0},
}


class Images(Dataset):
    """Compressed images with labels; item i of an epoch depends on (epoch, i) and nothing else."""

    def __init__(self, *, unpack: bool) -> None:
        rng = np.random.default_rng(1)
        self.labels = rng.integers(CLASSES, size=IMAGES)
        stripes = np.sin(np.arange(SIDE) * 2 * np.pi / SIDE * (1 + self.labels[:, None]) * 2)
        noise = rng.normal(0, 0.3, (IMAGES, 3, SIDE, SIDE))
        pixels = np.clip(128 + 60 * (stripes[:, None, None, :] + noise), 0, 255).astype(np.uint8)
        self.packed = [zlib.compress(image.tobytes(), 6) for image in pixels]
        self.epoch = 0
        self.unpacked = [self.read(i) for i in range(IMAGES)] if unpack else None

    def __len__(self) -> int:
        return IMAGES

    def __getitem__(self, i: int) -> tuple[Tensor, int]:
        """A (3, CROP, CROP) float32 image, cropped and mirrored at random, and its label."""
        image = self.unpacked[i] if self.unpacked is not None else self.read(i)
        rng = np.random.default_rng((self.epoch, i))
        top, left = rng.integers(SIDE - CROP, size=2)
        cropped = image[:, top : top + CROP, left : left + CROP]
        if rng.random() < 0.5:
            cropped = cropped[:, ::-1]
        return torch.from_numpy(np.ascontiguousarray(cropped)), int(self.labels[i])

    def read(self, i: int) -> np.ndarray:
        """Unpack, scale to zero mean and unit variance per channel, take the logarithm of the contrast."""
        pixels = np.frombuffer(zlib.decompress(self.packed[i]), np.uint8).reshape(3, SIDE, SIDE).astype(np.float32)
        scaled = (pixels - pixels.mean((1, 2), keepdims=True)) / pixels.std((1, 2), keepdims=True)
        return np.sign(scaled) * np.log1p(np.abs(scaled))


def run() -> dict[str, Any]:
    where = kit.device()
    epochs, breakdown = {}, {}
    for name, options in VARIANTS.items():
        epochs[name], breakdown[name] = epoch(where, Images(unpack=name == "unpacked beforehand"), options)
    kit.measured("ms per step", breakdown)

    reference = epochs["in the loop"]
    for name, outputs in epochs.items():
        for output, value in outputs.items():
            assert kit.same_bits(value, reference[output]), f"`{name}` has another {output} than `in the loop`"
    assert reference["losses"][-1] < reference["losses"][0], "training made it worse"
    return reference


def epoch(where: torch.device, images: Images, options: dict[str, Any]) -> tuple[dict[str, Tensor], dict[str, float]]:
    """One epoch: digests of the batches, losses and final weights; and where the time of a step went, in ms."""
    loader = DataLoader(
        images, BATCH, shuffle=True, drop_last=True, generator=torch.Generator().manual_seed(2), **options
    )
    torch.manual_seed(3)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 7, stride=4), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2), nn.ReLU(),
        nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(512, CLASSES),
    ).to(where)  # fmt: skip
    optimiser = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    digests, losses = [], []
    spent = {"wait": 0.0, "copy": 0.0, "compute": 0.0}
    batches = iter(loader)
    for _ in range(len(loader)):
        with kit.stopwatch(where) as waited:
            x, labels = next(batches)
        with kit.stopwatch(where) as copied:
            x, labels = x.to(where, non_blocking=True), labels.to(where, non_blocking=True)
        with kit.stopwatch(where) as computed:
            optimiser.zero_grad()
            loss = F.cross_entropy(model(x), labels)
            loss.backward()
            optimiser.step()
        digests.append(digest(x, labels))
        losses.append(loss.detach())
        for part, seconds in zip(spent, (waited, copied, computed), strict=True):
            spent[part] += seconds() * 1e3 / len(loader)
    starved = f"{spent['wait'] / sum(spent.values()):.0%}"
    weights = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
    outputs = {"batch_digests": torch.tensor(digests), "losses": torch.stack(losses), "weights": weights}
    return outputs, spent | {"starved": starved}


def digest(x: Tensor, labels: Tensor) -> int:
    """63 bits of the batch's content, in order."""
    content = hashlib.blake2b(x.cpu().numpy().tobytes() + labels.cpu().numpy().tobytes(), digest_size=8)
    return int.from_bytes(content.digest(), "little") >> 1


if __name__ == "__main__":
    kit.main(run)

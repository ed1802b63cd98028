# /// script
# requires-python = ">=3.11"
# dependencies = ["torch==2.13.0", "cupy-cuda12x==14.2.0", "numpy"]
#
# [tool.reprocheck]
# imports = ["cupy", "torch"]
# workload = "run"
# expect = "identical"
# story = "Train, checkpoint, resume: the bits after the break are those without it, with AMP and clipping too."
# ///
"""A training loop with everything that belongs to it, broken off in the middle and resumed.

What it shows: forward, backward, AdamW, a learning rate that warms up and follows a cosine, dropout, a checkpoint in a
file, and a resumption by objects that are made anew. Three variants: plain, with gradient clipping, and with automatic
mixed precision (bfloat16 on a CPU; float16 with a gradient scaler on a GPU).

What it asserts: losses, parameters, optimiser state and learning rates after the resumption equal, bit for bit, those
of a run that was never broken off; a checkpoint that forgets the random state does not (so the comparison can see);
AdamW's step is the published one; the learning rate follows its formula; clipped gradients keep their limit.

What to expect: `identical`. What it needs: torch; cupy takes part in the order and, on a GPU, makes the data.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import kit
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - torch's own convention

STEPS, BREAK, WARMUP = 16, 7, 4
ROWS, BATCH, FEATURES, WIDTH, CLASSES = 2048, 256, 64, 256, 10
RATE, LIMIT = 3e-3, 0.25

VARIANTS: dict[str, dict[str, Any]] = {"plain": {}, "clipped": {"clip": LIMIT}, "mixed_precision": {"amp": True}}


class Network(nn.Sequential):
    """Two hidden layers with normalisation and dropout."""

    def __init__(self) -> None:
        super().__init__(
            nn.Linear(FEATURES, WIDTH), nn.LayerNorm(WIDTH), nn.GELU(), nn.Dropout(0.1),
            nn.Linear(WIDTH, WIDTH), nn.LayerNorm(WIDTH), nn.GELU(), nn.Dropout(0.1),
            nn.Linear(WIDTH, CLASSES),
        )  # fmt: skip


class Run:
    """One training run: everything a checkpoint must hold, and the loop."""

    def __init__(self, where: torch.device, *, clip: float | None = None, amp: bool = False) -> None:
        torch.manual_seed(13)
        self.where, self.clip, self.amp = where, clip, amp
        self.model = Network().to(where)
        self.optimiser = torch.optim.AdamW(self.model.parameters(), lr=RATE, weight_decay=0.05)
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimiser, schedule)
        self.scaler = torch.amp.GradScaler(where.type, enabled=amp and where.type == "cuda")
        self.order = torch.Generator().manual_seed(14)
        self.losses: list[Tensor] = []
        self.rates: list[float] = []

    def train(self, data: tuple[Tensor, Tensor], steps: int) -> None:
        """Take `steps` steps, each on rows drawn at random."""
        x, labels = data
        for _ in range(steps):
            rows = torch.randint(ROWS, (BATCH,), generator=self.order).to(self.where)
            self.rates.append(self.scheduler.get_last_lr()[0])
            self.optimiser.zero_grad()
            half = torch.float16 if self.where.type == "cuda" else torch.bfloat16
            with torch.autocast(self.where.type, half) if self.amp else nullcontext():
                loss = F.cross_entropy(self.model(x[rows]), labels[rows])
            self.scaler.scale(loss).backward()
            if self.clip is not None:
                self.scaler.unscale_(self.optimiser)
                nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
                norm = nn.utils.get_total_norm([parameter.grad for parameter in self.model.parameters()])
                assert norm <= self.clip * 1.0001, f"clipped gradients have norm {norm}"
            self.scaler.step(self.optimiser)
            self.scaler.update()
            self.scheduler.step()
            self.losses.append(loss.detach())

    def save(self, path: Path) -> None:
        """Write a checkpoint: parameters, optimiser, schedule, scaler, and the random state of every generator used."""
        parts = {name: getattr(self, name).state_dict() for name in ("model", "optimiser", "scheduler", "scaler")}
        random = {"order": self.order.get_state(), "cpu": torch.get_rng_state()}
        if self.where.type == "cuda":
            random["cuda"] = torch.cuda.get_rng_state(self.where)
        torch.save(parts | {"random": random}, path)

    def load(self, path: Path, *, with_random_state: bool = True) -> None:
        """Continue from a checkpoint; without the random state dropout and data order start anew."""
        checkpoint = torch.load(path, map_location=self.where, weights_only=True)
        for name in ("model", "optimiser", "scheduler", "scaler"):
            getattr(self, name).load_state_dict(checkpoint[name])
        if with_random_state:
            random = {name: state.cpu() for name, state in checkpoint["random"].items()}
            self.order.set_state(random["order"])
            torch.set_rng_state(random["cpu"])
            if self.where.type == "cuda":
                torch.cuda.set_rng_state(random["cuda"], self.where)

    def state(self) -> dict[str, Tensor]:
        """Parameters and AdamW's moments, by name."""
        named = dict(self.model.named_parameters())
        tensors = {name: parameter.detach().clone() for name, parameter in named.items()}
        for name, parameter in named.items():
            for moment in ("exp_avg", "exp_avg_sq"):
                tensors[f"{name}.{moment}"] = self.optimiser.state[parameter][moment].clone()
        return tensors


def run() -> dict[str, Any]:
    where = kit.device()
    data = classes(where)
    with TemporaryDirectory() as folder:
        outputs = {
            name: broken_and_whole(where, data, Path(folder) / name, options) for name, options in VARIANTS.items()
        }
    check_adamw(where, data)
    assert not kit.same_bits(outputs["plain"]["losses"], outputs["clipped"]["losses"]), "nothing was clipped"
    return outputs


def broken_and_whole(where: torch.device, data: tuple[Tensor, Tensor], path: Path, options: dict[str, Any]) -> Any:
    """Train without a break and with one, assert equal bits, return losses, rates and the final state."""
    whole = Run(where, **options)
    whole.train(data, STEPS)

    first = Run(where, **options)
    first.train(data, BREAK)
    first.save(path)
    resumed, forgetful = Run(where, **options), Run(where, **options)
    resumed.load(path)
    resumed.train(data, STEPS - BREAK)
    forgetful.load(path, with_random_state=False)
    forgetful.train(data, STEPS - BREAK)

    losses, state = torch.stack(whole.losses), whole.state()
    assert kit.same_bits(torch.stack(first.losses + resumed.losses), losses), (
        f"{path.name}: losses after the break differ"
    )
    assert first.rates + resumed.rates == whole.rates, f"{path.name}: learning rates after the break differ"
    for name, value in resumed.state().items():
        assert kit.same_bits(value, state[name]), f"{path.name}: {name} after the break differs"
    assert not kit.same_bits(torch.stack(forgetful.losses), losses[BREAK:]), "the random state makes no difference"
    assert losses[-4:].mean() < losses[:4].mean(), f"{path.name}: training made it worse"
    assert whole.rates == [RATE * schedule(step) for step in range(STEPS)]
    return {"losses": losses, "learning_rates": torch.tensor(whole.rates, dtype=torch.float64), "state": state}


def schedule(step: int) -> float:
    """Factor on the learning rate: linear up to 1 over WARMUP steps, then half a cosine down to 0."""
    if step < WARMUP:
        return (step + 1) / WARMUP
    return 0.5 * (1 + math.cos(math.pi * (step - WARMUP) / (STEPS - WARMUP)))


def classes(where: torch.device) -> tuple[Tensor, Tensor]:
    """Points around CLASSES centres, made by cupy on a GPU and numpy on a CPU; (ROWS, FEATURES) and (ROWS,)."""
    xp = kit.array_module(where)
    generator = torch.Generator().manual_seed(15)
    centres = torch.randn(CLASSES, FEATURES, generator=generator)
    noise = torch.randn(ROWS, FEATURES, generator=generator)
    labels = torch.arange(ROWS) % CLASSES
    points = xp.asarray(centres[labels].numpy()) + 2 * xp.asarray(noise.numpy())
    return kit.to_torch(points - points.mean(axis=0), where), labels.to(where)


def check_adamw(where: torch.device, data: tuple[Tensor, Tensor]) -> None:
    """The first step of AdamW against its equations in float64: https://arxiv.org/abs/1711.05101, algorithm 2."""
    run = Run(where)
    before = {name: parameter.detach().double().clone() for name, parameter in run.model.named_parameters()}
    run.train(data, 1)
    rate, decay, epsilon = run.rates[0], 0.05, 1e-8
    for name, parameter in run.model.named_parameters():
        gradient = parameter.grad.double()
        # After one step the corrected moments are the gradient and its square.
        step = gradient / (gradient.square().sqrt() + epsilon) + decay * before[name]
        kit.assert_close(f"AdamW step of {name}", parameter, before[name] - rate * step, 1e-4)


if __name__ == "__main__":
    kit.main(run)

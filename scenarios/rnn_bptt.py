# /// script
# requires-python = ">=3.11"
# dependencies = ["torch==2.13.0", "cupy-cuda12x==14.2.0", "numpy"]
#
# [tool.reprocheck]
# imports = ["cupy", "torch"]
# workload = "run"
# expect = "identical"
# story = "A recurrent network unrolled by hand: per-step losses, per-step gradients, and the order they are added in."
# ///
"""Backpropagation through time, one step at a time.

What it shows: a recurrent network with one weight shared by all time steps,

    hₜ = tanh(xₜ Uᵀ + hₜ₋₁ Wᵀ + b),   yₜ = hₜ Vᵀ + c,   pₜ = softmax(yₜ),   L = mean over t of -log pₜ[next token]

trained to predict the next token of a text. W is used at every step, so its gradient is a sum over time,

    ∂L/∂W = Σₜ δₜᵀ hₜ₋₁   with   δₜ = (∂L/∂hₜ) ∘ (1 - hₜ²),   ∂L/∂hₜ = ∂Lₜ/∂hₜ + δₜ₊₁ W.

The scenario writes both recursions out, records the loss and the contribution of every step, and adds the
contributions up in several orders: backwards in time, which gives autograd's bits, forwards, and in pairs. The sums
are equal on paper and not in their bits, which is why a library that changes an accumulation order changes a
training run.
Truncated backpropagation (gradients cut every WINDOW steps) is the variant.

What it asserts: hidden states, outputs and predictions are what the equations say (float64, in numpy or cupy, and
`nn.RNN`); the sum of the contributions is autograd's gradient within rounding, full and truncated; giving each step
a weight of its own makes autograd return the same contributions one by one.

What to expect: `identical`. What it needs: torch; cupy takes part in the order and computes the reference on a GPU.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import kit
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - torch's own convention

STEPS, BATCH, VOCABULARY, WIDTH, WINDOW = 64, 32, 32, 128, 16


class Weights(NamedTuple):
    """The network: `u` (WIDTH, VOCABULARY), `w` (WIDTH, WIDTH), `v` (VOCABULARY, WIDTH) and two biases."""

    u: Tensor
    w: Tensor
    b: Tensor
    v: Tensor
    c: Tensor


class Forward(NamedTuple):
    """Everything time has a say in. `hidden` starts with h₀ = 0, so it has STEPS + 1 rows."""

    hidden: Tensor
    """(STEPS + 1, BATCH, WIDTH)"""
    output: Tensor
    """(STEPS, BATCH, VOCABULARY)"""
    losses: Tensor
    """(STEPS,): mean over the batch of -log pₜ[next token]"""


def run() -> dict[str, Any]:
    where = kit.device()
    torch.manual_seed(3)
    tokens = text(STEPS + 1).to(where)
    inputs, targets = F.one_hot(tokens[:-1], VOCABULARY).float(), tokens[1:]
    weights = Weights(*(tensor.to(where).requires_grad_() for tensor in initial()))

    result = forward(weights, [weights.w] * STEPS, inputs, targets)
    check_equations(weights, inputs, targets, result)

    full = contributions(weights, inputs, targets, result, window=STEPS)
    truncated = contributions(weights, inputs, targets, result, window=WINDOW)
    gradient = autograd(weights, inputs, targets, window=STEPS)
    gradient_truncated = autograd(weights, inputs, targets, window=WINDOW)
    separate = separate_weights(weights, inputs, targets)

    rounding = kit.rounding(where)
    sums = added(separate)
    for name, total in sums.items():
        kit.assert_close(f"contributions {name}", total, gradient, rounding)
    kit.assert_close("truncated contributions", truncated.sum(0), gradient_truncated, rounding)
    kit.assert_close("weights of their own", separate, full, rounding)
    assert (gradient - gradient_truncated).abs().max() > 1e-3 * gradient.abs().max(), "truncation changed nothing"

    kit.measured(
        "sum of the contributions",
        {name: {"elements unlike autograd's": int((total != gradient).sum())} for name, total in sums.items()},
    )
    return {
        "loss_per_step": result.losses.detach(),
        "predictions": result.output.argmax(-1),
        "last_hidden": result.hidden[-1].detach(),
        "contribution_per_step": full,
        "contribution_norm_per_step": full.flatten(1).norm(dim=1),
        "sum": sums,
        "gradient": gradient,
        "autograd_adds_backwards": kit.same_bits(sums["backwards"], gradient),
        "truncated": {"sum": truncated.sum(0), "gradient": gradient_truncated},
        "trained": train(weights, inputs, targets),
    }


def text(length: int) -> Tensor:
    """A (length, BATCH) text from a Markov chain in which every token has one likely successor."""
    successor = torch.randperm(VOCABULARY)
    tokens = [torch.randint(VOCABULARY, (BATCH,))]
    for _ in range(length - 1):
        follow = torch.rand(BATCH) < 0.9
        tokens.append(torch.where(follow, successor[tokens[-1]], torch.randint(VOCABULARY, (BATCH,))))
    return torch.stack(tokens)


def initial() -> Weights:
    scale = WIDTH**-0.5
    return Weights(
        torch.randn(WIDTH, VOCABULARY) * scale,
        torch.randn(WIDTH, WIDTH) * scale,
        torch.zeros(WIDTH),
        torch.randn(VOCABULARY, WIDTH) * scale,
        torch.zeros(VOCABULARY),
    )


def forward(weights: Weights, recurrent: list[Tensor], inputs: Tensor, targets: Tensor, window: int = STEPS) -> Forward:
    """Unroll the network; step t uses `recurrent[t]` as W. Every `window` steps the graph is cut."""
    hidden = [torch.zeros(BATCH, WIDTH, device=inputs.device)]
    driven = inputs @ weights.u.mT + weights.b
    for t in range(STEPS):
        before = hidden[-1].detach() if t % window == 0 else hidden[-1]
        hidden.append(torch.tanh(driven[t] + before @ recurrent[t].mT))
    states = torch.stack(hidden)
    output = states[1:] @ weights.v.mT + weights.c
    losses = F.cross_entropy(output.flatten(0, 1), targets.flatten(), reduction="none").reshape(STEPS, BATCH).mean(1)
    return Forward(states, output, losses)


@torch.no_grad()
def contributions(weights: Weights, inputs: Tensor, targets: Tensor, result: Forward, window: int) -> Tensor:
    """δₜᵀ hₜ₋₁ for every step, shape (STEPS, WIDTH, WIDTH), by the recursion at the top of this file."""
    hidden, output, _ = result
    # softmax and cross-entropy together: ∂Lₜ/∂yₜ = (pₜ - one_hot(next token)) / BATCH, and L is a mean over t
    slope = (F.softmax(output, -1) - F.one_hot(targets, VOCABULARY)) / (BATCH * STEPS)
    from_loss = slope @ weights.v
    delta = torch.zeros(BATCH, WIDTH, device=inputs.device)
    parts = torch.empty(STEPS, WIDTH, WIDTH, device=inputs.device)
    for t in reversed(range(STEPS)):
        from_later = torch.zeros_like(delta) if (t + 1) % window == 0 else delta @ weights.w
        delta = (from_loss[t] + from_later) * (1 - hidden[t + 1].square())
        parts[t] = delta.mT @ hidden[t]
    return parts


def added(parts: Tensor) -> dict[str, Tensor]:
    """The sum over time in four orders of addition."""
    backwards = forwards = torch.zeros_like(parts[0])
    for t in range(STEPS):
        forwards = forwards + parts[t]
        backwards = backwards + parts[STEPS - 1 - t]
    pairs = parts
    while len(pairs) > 1:
        rest = pairs[len(pairs) // 2 * 2 :]
        pairs = torch.cat([pairs[: len(pairs) // 2 * 2 : 2] + pairs[1::2], rest])
    return {"backwards": backwards, "forwards": forwards, "in_pairs": pairs[0], "by_library": parts.sum(0)}


def autograd(weights: Weights, inputs: Tensor, targets: Tensor, window: int) -> Tensor:
    """What autograd says ∂L/∂W is."""
    result = forward(weights, [weights.w] * STEPS, inputs, targets, window)
    return torch.autograd.grad(result.losses.mean(), weights.w)[0]


def separate_weights(weights: Weights, inputs: Tensor, targets: Tensor) -> Tensor:
    """The contributions by autograd alone: each step gets a copy of W, whose gradient is that step's part."""
    copies = [weights.w.detach().clone().requires_grad_() for _ in range(STEPS)]
    result = forward(weights, copies, inputs, targets)
    return torch.stack(torch.autograd.grad(result.losses.mean(), copies))


def check_equations(weights: Weights, inputs: Tensor, targets: Tensor, result: Forward) -> None:
    """Hidden states, outputs, predictions and losses against float64 in numpy or cupy, and against nn.RNN."""
    xp, rounding = kit.array_module(inputs.device), kit.rounding(inputs.device)
    u, w, b, v, c = (kit.from_torch(tensor).astype(xp.float64) for tensor in weights)
    states = [xp.zeros((BATCH, WIDTH))]
    for t in range(STEPS):
        states.append(xp.tanh(kit.from_torch(inputs[t]) @ u.T + states[-1] @ w.T + b))
    hidden = xp.stack(states)
    output = hidden[1:] @ v.T + c
    chance = xp.exp(output) / xp.exp(output).sum(axis=-1, keepdims=True)
    of_target = xp.take_along_axis(chance, kit.from_torch(targets)[..., None], axis=-1)[..., 0]
    kit.assert_close("hidden states", result.hidden, kit.to_torch(hidden, inputs.device), rounding)
    kit.assert_close("outputs", result.output, kit.to_torch(output, inputs.device), rounding)
    losses = xp.ascontiguousarray(-xp.log(of_target).mean(axis=1))
    kit.assert_close("losses", result.losses, kit.to_torch(losses, inputs.device), rounding)
    agree = result.output.argmax(-1) == kit.to_torch(chance.argmax(axis=-1), inputs.device)
    assert agree.float().mean() > 0.999, "predictions differ where no two tokens are equally likely"

    layer = nn.RNN(VOCABULARY, WIDTH).to(inputs.device)
    with torch.no_grad():
        layer.weight_ih_l0.copy_(weights.u)
        layer.weight_hh_l0.copy_(weights.w)
        layer.bias_ih_l0.copy_(weights.b)
        layer.bias_hh_l0.zero_()
    with torch.backends.cudnn.flags(enabled=False):  # cuDNN would use TF32 by default
        kit.assert_close("nn.RNN", layer(inputs)[0], result.hidden[1:], rounding)


def train(weights: Weights, inputs: Tensor, targets: Tensor) -> dict[str, Tensor]:
    """Four steps of gradient descent, full and truncated, from the same start; the mean loss of each step."""
    curves = {}
    for name, window in (("full", STEPS), ("truncated", WINDOW)):
        copy = Weights(*(tensor.detach().clone().requires_grad_() for tensor in weights))
        optimiser = torch.optim.SGD(copy, lr=1.0)
        losses = []
        for _ in range(4):
            optimiser.zero_grad()
            loss = forward(copy, [copy.w] * STEPS, inputs, targets, window).losses.mean()
            loss.backward()
            nn.utils.clip_grad_norm_(copy, 1.0)
            optimiser.step()
            losses.append(loss.detach())
        assert losses[-1] < losses[0], f"{name} training made it worse"
        curves[name] = torch.stack(losses)
    return curves


if __name__ == "__main__":
    kit.main(run)

# /// script
# requires-python = ">=3.11"
# dependencies = ["torch==2.13.0", "cupy-cuda12x==14.2.0", "einops==0.8.2", "numpy"]
#
# [tool.reprocheck]
# imports = ["cupy", "einops", "torch"]
# workload = "run"
# expect = "identical"
# story = "Multi-head attention with einops and with view/transpose: the same bits, forward and backward."
# ///
"""Multi-head attention, its heads split and joined in two ways.

What it shows: attention as it is written with einops,

    rearrange(x, "... seq (h d) -> ... h seq d", h=heads)      and back      "... h seq d -> ... seq (h d)",

and as it is written with `view` and `transpose`. Both only say how memory is read, so not one bit may differ, in the
output or in any gradient; and the import order of einops, cupy and torch must not change that. The inputs come
contiguous, transposed and as every second row of a longer tensor. Splitting heads copies none of them, by either
way: a dimension can always be split where it lies. Joining computed heads has to copy, by either way.

What it asserts: bitwise equality of the two ways, forward and backward, for each kind of input; agreement with
`scaled_dot_product_attention` and with float64 within rounding; a causal mask that lets no later token through.

What to expect: `identical` over all six orders. What it needs: torch and einops; cupy takes part in the order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import kit
import torch
from einops import rearrange
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - torch's own convention

BATCH, SEQUENCE, HEADS, DEPTH = 8, 256, 8, 32
WIDTH = HEADS * DEPTH
Reshape = Callable[[Tensor], Tensor]


def run() -> dict[str, Any]:
    where = kit.device()
    torch.manual_seed(5)
    layer = Attention().to(where)
    outputs: dict[str, Any] = {}
    for name, x in inputs(where).items():
        by_einops = step(layer, x, split_einops, join_einops)
        by_view = step(layer, x, split_view, join_view)
        for part, value in by_einops.items():
            assert kit.same_bits(value, by_view[part]), f"{name}: einops and view/transpose differ in {part}"
        outputs[name] = by_einops | {"split_stride": split_stride(x)}
    same_values = (outputs["transposed"]["output"], outputs["contiguous"]["output"])
    kit.assert_close("transposed input", *same_values, kit.rounding(where))
    check(layer, inputs(where)["contiguous"])
    return outputs


class Attention(nn.Module):
    """Causal multi-head self-attention, written out; how heads are split and joined is the caller's choice."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))

    def forward(self, x: Tensor, split: Reshape, join: Reshape) -> Tensor:
        """`x` and the result: (BATCH, SEQUENCE, WIDTH)."""
        query, key, value = (split(projection(x)) for projection in (self.query, self.key, self.value))
        scores = query @ key.mT / DEPTH**0.5
        later = torch.ones(x.shape[-2], x.shape[-2], dtype=torch.bool, device=x.device).triu(1)
        return self.out(join(scores.masked_fill(later, -torch.inf).softmax(-1) @ value))


def split_einops(x: Tensor) -> Tensor:
    return rearrange(x, "... seq (h d) -> ... h seq d", h=HEADS)


def join_einops(x: Tensor) -> Tensor:
    return rearrange(x, "... h seq d -> ... seq (h d)")


def split_view(x: Tensor) -> Tensor:
    return x.view(*x.shape[:-1], HEADS, -1).transpose(-3, -2)


def join_view(x: Tensor) -> Tensor:
    swapped = x.transpose(-3, -2)
    return swapped.contiguous().view(*swapped.shape[:-2], -1)


def inputs(where: torch.device) -> dict[str, Tensor]:
    """(BATCH, SEQUENCE, WIDTH) in three memory layouts; the first two hold equal values."""
    generator = torch.Generator().manual_seed(7)
    x = torch.randn(BATCH, SEQUENCE, WIDTH, generator=generator)
    longer = torch.randn(BATCH, 2 * SEQUENCE, WIDTH, generator=generator)
    return {
        "contiguous": x.to(where),
        "transposed": x.mT.contiguous().to(where).mT,
        "every_second": longer.to(where)[:, ::2],
    }


def step(layer: Attention, x: Tensor, split: Reshape, join: Reshape) -> dict[str, Tensor]:
    """Forward and backward of the mean square; the output and every gradient."""
    layer.zero_grad()
    leaf = x.detach().requires_grad_()
    output = layer(leaf, split, join)
    output.square().mean().backward()
    gradients = {f"{name}_grad": parameter.grad for name, parameter in layer.named_parameters()}
    return {"output": output.detach(), "input_grad": leaf.grad, **gradients}


def split_stride(x: Tensor) -> Tensor:
    """Strides of `x` with its heads split; asserts who copies: splitting never does, joining does."""
    split = split_einops(x)
    assert split.stride() == split_view(x).stride()
    assert split.data_ptr() == split_view(x).data_ptr() == x.data_ptr()
    heads = split.clone(memory_format=torch.contiguous_format)  # as the attention computes them
    assert heads.data_ptr() not in {join_einops(heads).data_ptr(), join_view(heads).data_ptr()}
    return torch.tensor(split.stride())


def check(layer: Attention, x: Tensor) -> None:
    """Against torch's own attention, against float64, and that nothing looks ahead."""
    rounding = kit.rounding(x.device)
    output = layer(x, split_einops, join_einops)
    heads = (split_einops(projection(x)) for projection in (layer.query, layer.key, layer.value))
    fused = layer.out(join_einops(F.scaled_dot_product_attention(*heads, is_causal=True)))
    kit.assert_close("scaled_dot_product_attention", output, fused, rounding)

    exact = layer.double()(x.double(), split_view, join_view)
    layer.float()
    kit.assert_close("float64", output, exact, rounding)

    changed = x.clone()
    changed[:, SEQUENCE // 2 :] += 1
    ahead = layer(changed, split_einops, join_einops)
    assert kit.same_bits(ahead[:, : SEQUENCE // 2], output[:, : SEQUENCE // 2]), "the mask lets later tokens through"


if __name__ == "__main__":
    kit.main(run)

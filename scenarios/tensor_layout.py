# /// script
# requires-python = ">=3.11"
# dependencies = ["torch==2.13.0", "numpy"]
#
# [tool.reprocheck]
# imports = ["numpy", "torch"]
# workload = "run"
# expect = "identical"
# story = "view, reshape, squeeze, expand: who shares memory, who copies, who refuses; folk sayings checked."
# ///
"""What the shape operations of torch do to memory, found out instead of repeated.

What it shows: for every operation the values, the strides, and whether the result shares memory with its input. That
last one is tried, not looked up: a number is written through the result and searched in the input. Operations that
refuse are recorded with their message. Then sayings one hears ("reshape always copies", "squeeze fails unless the
dimension is one") are evaluated from what was found.

What it asserts: each of these facts; that writing through the result and looking at addresses agree; and, over 2000
random layouts, that `view` refuses exactly where `reshape` copies, and that torch copies exactly where numpy (cupy on
a GPU) does.

What to expect: `identical`. What it needs: torch and numpy, about 2 seconds a trial.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import kit
import torch
from torch import Tensor

SHAPE = (8, 12, 16)
RANDOM_LAYOUTS = 2000
SHARES, COPIES = True, False


def run() -> dict[str, Any]:
    where = kit.device()
    operations = {name: observe(base(where), function) for name, (function, _) in OPERATIONS.items()}
    for name, (_, shares) in OPERATIONS.items():
        assert operations[name]["shares"] is shares, f"{name}: shares memory is {operations[name]['shares']}"
    sayings = {saying: check(base(where)) for saying, (check, _) in SAYINGS.items()}
    for saying, (_, truth) in SAYINGS.items():
        assert sayings[saying] is truth, f"`{saying}` is {sayings[saying]}"
    return {
        "operation": operations,
        "refusal": {name: refusal(base(where), function) for name, function in REFUSALS.items()},
        "saying": sayings,
        "random_layouts": random_layouts(where),
    }


def base(where: torch.device) -> Tensor:
    """Contiguous, all elements different, none negative."""
    return torch.arange(math.prod(SHAPE), dtype=torch.float32, device=where).reshape(SHAPE)


def flat(x: Tensor) -> Tensor:
    """`x` with dimensions of one around the last two: (8, 1, 12, 1, 16)."""
    return x[:, None, :, None]


Operation = Callable[[Tensor], Tensor]

# operation -> whether its result shares memory with the input
OPERATIONS: dict[str, tuple[Operation, bool]] = {
    "view_merge": (lambda x: x.view(96, 16), SHARES),
    "view_infer": (lambda x: x.view(4, -1, 8), SHARES),
    "view_split_transposed": (lambda x: x.mT.view(8, 4, 4, 12), SHARES),
    "view_as_integers": (lambda x: x.view(torch.int32), SHARES),
    "reshape_contiguous": (lambda x: x.reshape(-1), SHARES),
    "reshape_rows_left_out": (lambda x: x[::2].reshape(4, -1), SHARES),
    "reshape_columns_left_out": (lambda x: x[:, ::2].reshape(8, -1), COPIES),
    "reshape_transposed": (lambda x: x.mT.reshape(-1), COPIES),
    "reshape_transposed_same_shape": (lambda x: x.mT.reshape(8, 16, 12), SHARES),
    "flatten_contiguous": (lambda x: x.flatten(1), SHARES),
    "flatten_transposed": (lambda x: x.mT.flatten(1), COPIES),
    "squeeze_dim": (lambda x: flat(x).squeeze(1), SHARES),
    "squeeze_negative_dim": (lambda x: flat(x).squeeze(-2), SHARES),
    "squeeze_dim_that_is_not_one": (lambda x: x.squeeze(1), SHARES),
    "squeeze_all": (lambda x: flat(x).squeeze(), SHARES),
    "unsqueeze_first": (lambda x: x.unsqueeze(0), SHARES),
    "unsqueeze_last": (lambda x: x.unsqueeze(-1), SHARES),
    "unsqueeze_before_last": (lambda x: x.unsqueeze(-2), SHARES),
    "expand": (lambda x: x[:1].expand(5, 12, 16), SHARES),
    "expand_keeping_with_minus_one": (lambda x: flat(x).expand(-1, 3, -1, 2, -1), SHARES),
    "expand_new_dimension": (lambda x: x.expand(2, *SHAPE), SHARES),
    "expand_as": (lambda x: x[:, :1].expand_as(x), SHARES),
    "repeat": (lambda x: x[:1].repeat(5, 1, 1), COPIES),
    "contiguous_already": (lambda x: x.contiguous(), SHARES),
    "contiguous_transposed": (lambda x: x.mT.contiguous(), COPIES),
    "contiguous_expanded": (lambda x: x[:1].expand(5, 12, 16).contiguous(), COPIES),
    "transpose": (lambda x: x.transpose(0, 2), SHARES),
    "permute": (lambda x: x.permute(2, 0, 1), SHARES),
    "slice": (lambda x: x[2:5, ::3], SHARES),
    "index_by_list": (lambda x: x[[2, 3, 4]], COPIES),
    "index_by_mask": (lambda x: x[x >= 100], COPIES),
    "to_same_type": (lambda x: x.to(torch.float32), SHARES),
    "to_other_type": (lambda x: x.to(torch.float64), COPIES),
    "clone": (lambda x: x.clone(), COPIES),
    "detach": (lambda x: x.detach(), SHARES),
    "cat_of_one": (lambda x: torch.cat([x]), COPIES),
    "split": (lambda x: x.split(5, dim=1)[1], SHARES),
    "diagonal": (lambda x: x.diagonal(dim1=1, dim2=2), SHARES),
}

# operations that raise
REFUSALS: dict[str, Callable[[Tensor], Any]] = {
    "view_merging_transposed": lambda x: x.mT.view(-1),
    "view_two_unknown": lambda x: x.view(-1, -1, 16),
    "view_not_divisible": lambda x: x.view(-1, 7),
    "view_wrong_size": lambda x: x.view(10, 10),
    "reshape_unknown_of_nothing": lambda x: x[:0].reshape(-1, 0),
    "squeeze_dim_out_of_range": lambda x: x.squeeze(3),
    "unsqueeze_dim_out_of_range": lambda x: x.unsqueeze(-5),
    "expand_a_dimension_that_is_not_one": lambda x: x.expand(8, 24, 16),
    "expand_new_dimension_unknown": lambda x: x.expand(-1, *SHAPE),
    "expand_then_add_in_place": lambda x: x[:1].expand(5, 12, 16).add_(1),
    "expand_then_view_merged": lambda x: x[:1].expand(5, 12, 16).view(-1),
}


def writes_all_rows(x: Tensor) -> bool:
    """True when writing one row of an expanded tensor shows in all of them."""
    rows = x[:1].expand(5, 12, 16)
    rows[3] = -1
    return bool((rows == -1).all() and (x[0] == -1).all())


def summed_gradient(x: Tensor) -> bool:
    """True when the gradient of what was expanded five times is the sum over the five."""
    leaf = x[:1].clone().requires_grad_()
    (leaf.expand(5, 12, 16) * x[:5]).sum().backward()
    return torch.equal(leaf.grad, x[:5].sum(0, keepdim=True))


# saying -> (how to find out, what is true)
SAYINGS: dict[str, tuple[Callable[[Tensor], bool], bool]] = {
    "reshape always copies": (lambda x: not shares(x, x.reshape(-1)), False),
    "reshape never copies": (lambda x: shares(x, x.mT.reshape(-1)), False),
    "flatten always copies": (lambda x: not shares(x, x.flatten()), False),
    "contiguous always copies": (lambda x: x.contiguous() is not x, False),
    "a transposed tensor is never contiguous": (lambda x: not x[:1, 0].mT.is_contiguous(), False),
    "clone is contiguous": (lambda x: x.mT.clone().is_contiguous(), False),
    "expand allocates": (lambda x: not shares(x, x[:1].expand(5, 12, 16)), False),
    "an expanded dimension has stride 0": (lambda x: x[:1].expand(5, 12, 16).stride(0) == 0, True),
    "writing one expanded row writes all of them": (writes_all_rows, True),
    "squeeze(dim) fails unless the dimension is one": (lambda x: x.squeeze(1).shape != x.shape, False),
    "squeeze() drops a batch of one": (lambda x: x[:1].squeeze().dim() == 2, True),
    "unsqueeze(-1) inserts before the last dimension": (lambda x: x.unsqueeze(-1).shape[-1] != 1, False),
    "-1 means the same in view and expand": (
        lambda x: len(x.view(-1, 6, 16)) == len(x[:, :1].expand(-1, 6, 16)),
        False,
    ),
    "a gradient through expand is summed": (summed_gradient, True),
}


def observe(x: Tensor, operation: Operation) -> dict[str, Any]:
    """Values, strides and whether memory is shared with `x`: by address, and by a write that must agree."""
    result = operation(x)
    values, before = result.clone(), x.clone()
    shared = shares(x, result)
    result[(0,) * result.dim()] = -1
    assert kit.same_bits(x, before) is not shared, "addresses and a write through the result disagree"
    return {"values": values, "stride": torch.tensor(result.stride()), "shares": shared}


def refusal(x: Tensor, operation: Callable[[Tensor], Any]) -> str:
    """Type and first line of the error `operation` raises; it is an error here if it raises none."""
    try:
        operation(x)
    except (RuntimeError, IndexError) as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    raise AssertionError("torch accepted an operation that should be refused")


def random_layouts(where: torch.device) -> dict[str, Tensor]:
    """Reshape randomly permuted, sliced and expanded arrays; per case, whether torch copied.

    Asserts that `view` refuses exactly the cases in which `reshape` copies, and that numpy or cupy copies them too.
    """
    rng = random.Random(11)  # noqa: S311 - shapes, not secrets
    xp = kit.array_module(where)
    copied = []
    for _ in range(RANDOM_LAYOUTS):
        x, target = random_case(rng, where)
        reshaped = x.reshape(target)
        array = kit.from_torch(x)
        assert kit.same_bits(reshaped, torch.from_dlpack(xp.array(array.reshape(target))).to(where))
        copied.append(not shares(x, reshaped))
        assert copied[-1] is not views(x, target), f"view and reshape disagree: {x.shape} {x.stride()} -> {target}"
        by_array = not xp.shares_memory(array, array.reshape(target))
        assert copied[-1] is by_array, f"torch and {xp.__name__} disagree: {x.shape} {x.stride()} -> {target}"
    assert 0.2 < sum(copied) / RANDOM_LAYOUTS < 0.8, "the cases are too much alike"
    return {"copied": torch.tensor(copied)}


def random_case(rng: random.Random, where: torch.device) -> tuple[Tensor, list[int]]:
    """A strided float32 tensor of 2 to 5 dimensions and a shape it may be reshaped to."""
    shape = [rng.choice([1, 2, 3, 4, 6]) for _ in range(rng.randint(2, 5))]
    x = torch.arange(2 * math.prod(shape), dtype=torch.float32, device=where).reshape(2 * shape[0], *shape[1:])
    x = x[::2] if rng.random() < 0.5 else x[: shape[0]]
    if rng.random() < 0.3:
        x = x[:, :1].expand(-1, rng.randint(1, 4), *x.shape[2:])
    if rng.random() < 0.5:
        order = list(range(x.dim()))
        rng.shuffle(order)
        x = x.permute(order)
    target, factors = [], [factor for length in x.shape for factor in prime_factors(length)]
    while factors:
        taken = rng.randint(1, len(factors))
        target.append(math.prod(factors[:taken]))
        factors = factors[taken:]
    return x, target or [1]


def prime_factors(n: int) -> list[int]:
    for factor in range(2, n + 1):
        if n % factor == 0:
            return [factor, *prime_factors(n // factor)]
    return []


def shares(x: Tensor, y: Tensor) -> bool:
    """True when both live in one piece of memory."""
    return x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr()


def views(x: Tensor, target: list[int]) -> bool:
    """True when `view` accepts the shape."""
    try:
        x.view(target)
    except RuntimeError:
        return False
    return True


if __name__ == "__main__":
    kit.main(run)

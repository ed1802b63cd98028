# /// script
# requires-python = ">=3.11"
# dependencies = ["torch==2.13.0", "numpy"]
#
# [tool.reprocheck]
# imports = ["native.fastmath", "native.warmup"]
# workload = "run"
# expect = "order-dependent"
# story = "A -ffast-math library flushes denormals in the thread that loads it: all of a tensor, or only half."
# ///
"""Half a tensor flushed to zero.

What it shows: a shared library that was linked with `-ffast-math` by gcc before 13 runs a constructor when it is
loaded, which sets the flush-to-zero bits of the *calling thread*. A new thread inherits them; a running one does not
change. torch's OpenMP threads start at the first large operation. So when such a library (`native.fastmath`) is loaded
before the threads start, all of them flush; when something has computed already (`native.warmup`, as packages do that
measure or compile at import), only the main thread does: its share of every tensor is flushed, the rest is not, in one
and the same operation. Values below 1.2e-38 are where softmax tails, decayed optimiser moments and filters end up.

What it asserts: each denormal result is exactly right or exactly zero; normal numbers are not touched.

What to expect: `order-dependent` on two or more cores with GNU's OpenMP (torch's CPU build). On one core `identical`;
with Intel's OpenMP too, since it copies the bits to its threads.

What it needs: a C compiler, x86-64 or aarch64, torch; about 2 seconds a trial.
"""

from __future__ import annotations

from typing import Any

import kit
import torch
from torch import Tensor, nn

SIZE = 1 << 20
DENORMAL_BITS = 0x000116C2  # 1e-40 in float32, by its bits: a converted number would be flushed by the main thread


def run() -> dict[str, Any]:
    bits = torch.full((SIZE,), DENORMAL_BITS, dtype=torch.int32)
    halved = (bits.view(torch.float32) * 0.5).view(torch.int32)
    right, zero = halved == DENORMAL_BITS // 2, halved == 0
    assert bool((right | zero).all()), "a denormal came out neither right nor zero"
    normal = torch.full((SIZE,), 1.5)
    assert kit.same_bits(normal * 0.5, torch.full((SIZE,), 0.75)), "a normal number was changed"

    first, second = zero.reshape(2, -1).float().mean(1).tolist()
    kit.measured("flushed to zero", {"first half": {"share": first}, "second half": {"share": second}})
    return {
        "halved": halved.view(torch.float32),
        "flushed_share": zero.double().mean(),
        "faded": torch.linspace(1e-38, 2e-38, SIZE) * torch.linspace(0, 1, SIZE),
        "decayed_moments": decayed_moments(),
    }


def decayed_moments() -> Tensor:
    """Adam's second moments after five steps with gradients near 1e-20: about 1e-43."""
    parameter = nn.Parameter(torch.linspace(1, 2, SIZE // 4))
    adam = torch.optim.Adam([parameter], lr=1e-3)
    for _ in range(5):
        parameter.grad = torch.full((SIZE // 4,), 1e-20)
        adam.step()
    return adam.state[parameter]["exp_avg_sq"]


if __name__ == "__main__":
    kit.main(run)

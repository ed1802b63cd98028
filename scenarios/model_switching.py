# /// script
# requires-python = ">=3.11"
# dependencies = ["torch==2.13.0", "cupy-cuda12x==14.2.0", "numpy"]
#
# [tool.reprocheck]
# imports = ["cupy", "torch"]
# workload = "run"
# expect = "identical"
# story = "A service that loads, switches and unloads models: no answer may depend on what was loaded before."
# ///
"""An online service in small: twelve models, room for four, requests over time.

What it shows: models (MLPs, graph networks, mixtures of experts, dense mixtures; many with the same architecture)
share one device. A request for a model that is resident is *warm*. Otherwise the least recently used model makes
room; when one of the same architecture is resident and not the most recent, its module stays and the new weights are
copied into it (*swap*), else a module is built and filled (*cold*). What a model answers must not depend on that
history, on the memory it happens to get, or on the import order.

What it asserts: every answer equals, bit for bit, the model's answer when it is alone on a fresh device; a swap leaves
the parameters where they were; a mixture of experts is the sum of its chosen experts by their gates.

What it prints: latency of cold, swap and warm requests, and the allocator at its fullest and at the end. These are
measurements, so they are not recorded and not compared.

What to expect: `identical`. What it needs: torch; on a GPU, cupy prepares the requests. Allocator settings are
variables: `--vary PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True,max_split_size_mb:32`, `SCENARIO_CUPY_POOL=on,off`,
on a CPU `MALLOC_MMAP_THRESHOLD_=65536,1073741824`. They may move memory and time, not bits.
"""

from __future__ import annotations

import ctypes
import os
from collections import OrderedDict
from typing import Any

import kit
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - torch's own convention

WIDTH, BATCH, NODES, NEIGHBOURS, EXPERTS = 384, 256, 1024, 8, 6
CAPACITY, REQUESTS = 4, 60


class Mlp(nn.Sequential):
    """Three layers."""

    def __init__(self) -> None:
        super().__init__(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, 64)
        )


class Graph(nn.Module):
    """Two rounds of message passing: a node's state from its own and the mean of its neighbours'."""

    def __init__(self) -> None:
        super().__init__()
        self.own = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(2))
        self.others = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(2))
        self.register_buffer("neighbours", torch.randint(NODES, (NODES, NEIGHBOURS)))

    def forward(self, x: Tensor) -> Tensor:
        """`x`: (BATCH, WIDTH), spread over the nodes; returns (NODES, WIDTH)."""
        state = x.repeat(NODES // len(x), 1)
        for own, others in zip(self.own, self.others, strict=True):
            state = F.relu(own(state) + others(state[self.neighbours].mean(1)))
        return state


class Mixture(nn.Module):
    """Experts weighted by a gate: all of them (`chosen=EXPERTS`), or for each row only the best `chosen`."""

    def __init__(self, chosen: int = EXPERTS) -> None:
        super().__init__()
        self.chosen = chosen
        self.gate = nn.Linear(WIDTH, EXPERTS)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, 64)) for _ in range(EXPERTS)
        )

    def weights(self, x: Tensor) -> Tensor:
        """(BATCH, EXPERTS): softmax over the chosen experts, zero for the others."""
        best, index = self.gate(x).topk(self.chosen)
        return torch.zeros(len(x), EXPERTS, device=x.device).scatter(1, index, best.softmax(-1))

    def forward(self, x: Tensor) -> Tensor:
        """Each expert sees the rows it was chosen for and no others."""
        weights = self.weights(x)
        total = torch.zeros(len(x), 64, device=x.device)
        for number, expert in enumerate(self.experts):
            rows = weights[:, number].nonzero()[:, 0]
            total.index_add_(0, rows, weights[rows, number, None] * expert(x[rows]))
        return total


class SparseMixture(Mixture):
    """A mixture of experts: two per row."""

    def __init__(self) -> None:
        super().__init__(chosen=2)


CATALOGUE = {f"mlp{i}": Mlp for i in range(5)} | {f"graph{i}": Graph for i in range(2)}
CATALOGUE |= {f"experts{i}": SparseMixture for i in range(3)} | {f"mixture{i}": Mixture for i in range(2)}


class Service:
    """At most CAPACITY models on `where`; the least recently used one makes room."""

    def __init__(self, where: torch.device, stored: dict[str, dict[str, Tensor]]) -> None:
        self.where, self.stored = where, stored
        self.resident: OrderedDict[str, nn.Module] = OrderedDict()

    def switch(self, name: str) -> str:
        """Make `name` resident and most recent; returns how: `warm`, `swap` or `cold`."""
        if name in self.resident:
            self.resident.move_to_end(name)
            return "warm"
        older = list(self.resident)[:-1]
        twin = next((other for other in older if CATALOGUE[other] is CATALOGUE[name]), None)
        if twin is not None:
            module, how = self.resident.pop(twin), "swap"
        else:
            if len(self.resident) == CAPACITY:
                self.resident.popitem(last=False)
            module, how = build(name).to(self.where), "cold"
        addresses = [parameter.data_ptr() for parameter in module.parameters()]
        module.load_state_dict(self.stored[name])
        assert addresses == [parameter.data_ptr() for parameter in module.parameters()]
        self.resident[name] = module
        return how

    def answer(self, name: str, x: Tensor) -> Tensor:
        """What the resident model `name` says to `x`."""
        with torch.inference_mode():
            return self.resident[name](x).clone()


def build(name: str) -> nn.Module:
    return CATALOGUE[name]().requires_grad_(requires_grad=False)


def run() -> dict[str, Any]:
    where = kit.device()
    stored = {}
    for seed, name in enumerate(CATALOGUE):
        torch.manual_seed(seed)
        stored[name] = build(name).state_dict()
    x = requests_input(where)
    alone = {name: answer_alone(where, stored, name, x) for name in CATALOGUE}
    check_experts(where, stored, x)

    service, history = Service(where, stored), []
    latency: dict[str, list[float]] = {"cold": [], "swap": [], "warm": []}
    memory = {"empty": allocator(where)}
    for number, name in enumerate(timeline()):
        with kit.stopwatch(where) as seconds:
            how = service.switch(name)
            answer = service.answer(name, x)
        latency[how].append(seconds() * 1e3)
        history.append(f"{name}:{how}")
        assert kit.same_bits(answer, alone[name]), f"request {number}: {name} ({how}) answers unlike when it is alone"
        if number == REQUESTS // 2:
            memory["half-way"] = allocator(where)
    memory["end"] = allocator(where)
    service.resident.clear()
    memory["all unloaded"] = allocator(where)

    assert all(latency.values()), "the timeline misses a kind of switch"
    kit.measured("request", {how: summary(times) for how, times in latency.items()})
    kit.measured("allocator", memory)
    return {"answer": alone, "history": " ".join(history)}


def timeline() -> list[str]:
    """REQUESTS model names; a few models are popular, as in a service."""
    popularity = torch.arange(1, len(CATALOGUE) + 1).float().reciprocal()
    order = torch.randperm(len(CATALOGUE), generator=torch.Generator().manual_seed(1))
    drawn = torch.multinomial(popularity, REQUESTS, replacement=True, generator=torch.Generator().manual_seed(2))
    return [list(CATALOGUE)[order[i]] for i in drawn]


def requests_input(where: torch.device) -> Tensor:
    """(BATCH, WIDTH), normalised by cupy on a GPU and by numpy on a CPU."""
    xp = kit.array_module(where)
    if where.type == "cuda" and os.environ.get("SCENARIO_CUPY_POOL") == "off":
        xp.cuda.set_allocator(None)
    raw = xp.asarray(torch.randn(BATCH, WIDTH, generator=torch.Generator().manual_seed(3)).numpy())
    return kit.to_torch((raw - raw.mean(axis=1, keepdims=True)) / raw.std(axis=1, keepdims=True), where)


def answer_alone(where: torch.device, stored: dict[str, dict[str, Tensor]], name: str, x: Tensor) -> Tensor:
    service = Service(where, stored)
    service.switch(name)
    return service.answer(name, x)


def check_experts(where: torch.device, stored: dict[str, dict[str, Tensor]], x: Tensor) -> None:
    """A mixture of experts equals the sum over all experts by their gates, most of which are zero."""
    model = build("experts0").to(where)
    model.load_state_dict(stored["experts0"])
    weights = model.weights(x)
    assert bool(((weights > 0).sum(1) == 2).all())
    kit.assert_close("gates", weights.sum(1), torch.ones(BATCH, device=where), 1e-6)
    dense = sum(weights[:, number, None] * expert(x) for number, expert in enumerate(model.experts))
    kit.assert_close("mixture of experts", model(x), dense, kit.rounding(where))


def summary(times: list[float]) -> dict[str, Any]:
    ordered = sorted(times)
    return {"count": len(ordered), "median ms": ordered[len(ordered) // 2], "slowest ms": ordered[-1]}


def allocator(where: torch.device) -> dict[str, Any]:
    """The state of torch's caching allocator on a GPU, of glibc's malloc on a CPU; sizes in MiB."""
    if where.type == "cuda":
        stats = torch.cuda.memory_stats(where)
        blocks = [block for segment in torch.cuda.memory_snapshot() for block in segment["blocks"]]
        free = [block["size"] for block in blocks if block["state"] == "inactive"]
        return {
            "allocated": stats["allocated_bytes.all.current"] / 2**20,
            "reserved": stats["reserved_bytes.all.current"] / 2**20,
            "largest free block": max(free, default=0) / 2**20,
            "free blocks": len(free),
            "segments": stats["segment.all.current"],
            "retries": stats["num_alloc_retries"],
        }
    info = malloc_info()
    return {
        "in use": (info.uordblks + info.hblkhd) / 2**20,
        "of it mapped": info.hblkhd / 2**20,
        "heap": info.arena / 2**20,
        "heap free": info.fordblks / 2**20,
        "free blocks": info.ordblks,
    }


class MallocInfo(ctypes.Structure):
    """`struct mallinfo2` of glibc 2.33 and later: https://man7.org/linux/man-pages/man3/mallinfo.3.html."""

    _fields_ = (
        ("arena", ctypes.c_size_t),
        ("ordblks", ctypes.c_size_t),
        ("smblks", ctypes.c_size_t),
        ("hblks", ctypes.c_size_t),
        ("hblkhd", ctypes.c_size_t),
        ("usmblks", ctypes.c_size_t),
        ("fsmblks", ctypes.c_size_t),
        ("uordblks", ctypes.c_size_t),
        ("fordblks", ctypes.c_size_t),
        ("keepcost", ctypes.c_size_t),
    )


def malloc_info() -> MallocInfo:
    """What glibc's malloc says of itself; zeros where the C library has no `mallinfo2`."""
    function = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if function is None:
        return MallocInfo()
    function.restype = MallocInfo
    return function()


if __name__ == "__main__":
    kit.main(run)

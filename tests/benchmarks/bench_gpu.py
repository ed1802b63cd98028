"""What tracing costs on a GPU: the operator trace against torch's `DebugMode`, digests against the memory's bandwidth.

`trace`: one training step of an encoder layer on the device, untraced, under the operator trace, and under `DebugMode`
with tensor hashes of inputs and outputs; rounds interleave them. `digest`: bytes a second of `tensor_digest` over one
large tensor, as a share of what a copy within the same memory reads and writes in that time. Prints one JSON line.

    python tests/benchmarks/bench_gpu.py trace digest --device cuda
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from reprocheck.worker.trace.digest import tensor_digest
from reprocheck.worker.trace.ops import OpTrace
from reprocheck.worker.trace.own import Own
from reprocheck.worker.trace.sink import Sink

ROUNDS = {"cuda": 7, "cpu": 2}
"""Without a GPU the figures mean nothing: it is only tried whether they can be taken."""


def main() -> int:
    """Run what is asked for, one JSON line each; without a device that is all there is to say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=["trace", "digest"], metavar="NAME", help="trace, digest")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"), help="[default: cuda]")
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        print(json.dumps({"told": "skipped: no CUDA device"}))
        return 0
    figures: dict[str, Any] = {}
    for name in options.names:
        figures |= {"trace": bench_trace, "digest": bench_digest}[name](options.device)
    print(json.dumps(figures))
    return 0


def _seconds(call: Callable[[], object], device: str) -> float:
    """How long a call takes, the device's queue included."""
    if device == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    call()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def bench_trace(device: str) -> dict[str, Any]:
    """Best of the rounds, in ms, and the ratios."""
    from torch.utils._debug_mode import DebugMode

    width, tokens = (1024, 8192) if device == "cuda" else (64, 128)
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(width, 8, 4 * width, batch_first=True).to(device)
    optimiser = torch.optim.Adam(layer.parameters())
    x = torch.randn(tokens // 64, 64, width, device=device)

    def step() -> None:
        optimiser.zero_grad()
        layer(x).square().mean().backward()
        optimiser.step()

    with tempfile.TemporaryDirectory() as folder:

        def traced() -> None:
            sink = Sink(str(Path(folder) / "trace.jsonl"))
            trace = OpTrace(Own({"target": {"kind": "script", "path": __file__}, "subjects": ["torch"]}), sink)
            trace.start()
            try:
                step()
            finally:
                trace.stop()
                sink.close()

        def debug_mode() -> None:
            with DebugMode(), DebugMode.log_tensor_hashes(hash_fn="norm", hash_inputs=True):
                step()

        calls = {"untraced": step, "traced": traced, "debug_mode": debug_mode}
        times: dict[str, list[float]] = {name: [] for name in calls}
        for call in calls.values():
            call()
        for _ in range(ROUNDS[device]):
            for name, call in calls.items():
                times[name].append(_seconds(call, device))
    best = {name: min(own) for name, own in times.items()}
    over_untraced, over_debug = best["traced"] / best["untraced"], best["traced"] / best["debug_mode"]
    return {
        "told": f"traced / untraced {over_untraced:.2f}, traced / DebugMode {over_debug:.2f}",
        "device": device,
        "ms": {name: round(1e3 * value, 3) for name, value in best.items()},
        "median_ms": {name: round(1e3 * statistics.median(own), 3) for name, own in times.items()},
        "traced_over_untraced": round(over_untraced, 3),
        "traced_over_debug_mode": round(over_debug, 3),
    }


def bench_digest(device: str) -> dict[str, Any]:
    """GB/s of digests, of a contiguous and a transposed tensor, beside those of a copy."""
    rows = 16384 if device == "cuda" else 1024
    tensor = torch.randn(rows, rows, device=device)
    target = torch.empty_like(tensor)
    nbytes = tensor.numel() * tensor.element_size()
    calls: dict[str, tuple[Callable[[], object], int]] = {
        "copy": (lambda: target.copy_(tensor), 2 * nbytes),
        "digest": (lambda: tensor_digest(tensor), nbytes),
        "digest_transposed": (lambda: tensor_digest(tensor.mT), nbytes),
    }
    for call, _ in calls.values():
        call()
    rates = {
        name: moved / min(_seconds(call, device) for _ in range(ROUNDS[device])) / 1e9
        for name, (call, moved) in calls.items()
    }
    share = rates["digest"] / rates["copy"]
    return {
        "told": f"digests at {rates['digest']:.3g} GB/s, {share:.0%} of the memory's bandwidth in a copy",
        "device": device,
        "mib": nbytes >> 20,
        "gb_per_s": {name: round(value, 2) for name, value in rates.items()},
        "digest_share_of_bandwidth": round(share, 4),
    }


if __name__ == "__main__":
    sys.exit(main())

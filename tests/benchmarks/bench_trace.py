"""What tracing every operator of a training step costs, against torch's own `DebugMode`; prints one JSON line.

One step of an encoder layer on the CPU (forward, backward, Adam), as it is, under the operator trace (every input and
output digested, records written to a file), and under `DebugMode` with tensor hashes, of outputs alone and of inputs
too. Rounds interleave the contenders, so that a busy machine slows all of them. `digest` is the memory that digesting
one large tensor takes, contiguous and transposed.

    python -m tests.benchmarks.bench_trace --width 256 --tokens 1024 --rounds 7
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
from torch.utils._debug_mode import DebugMode

from reprocheck.worker.trace.digest import tensor_digest
from reprocheck.worker.trace.ops import OpTrace
from reprocheck.worker.trace.own import Own
from reprocheck.worker.trace.sink import Sink
from tests.benchmarks.figures import row

BUDGET = {"untraced": 3.0, "debug_mode": 1.0, "digest_extra_mib": 8.0}


def main() -> int:
    """Run the rounds and print the line; 1 when a budget is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--width", type=int, default=256, help="width of the layer [default: 256]")
    parser.add_argument("--tokens", type=int, default=1024, help="tokens in a batch [default: 1024]")
    parser.add_argument("--rounds", type=int, default=7, help="rounds [default: 7]")
    parser.add_argument("--quick", action="store_true", help="three rounds")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rounds = 3
    step = _step(arguments.width, arguments.tokens)
    with tempfile.TemporaryDirectory() as folder:
        contenders: dict[str, Callable[[], None]] = {
            "untraced": step,
            "traced": lambda: _traced(step, Path(folder)),
            "debug_mode": lambda: _debug_mode(step, "norm", inputs=False),
            "debug_mode_inputs": lambda: _debug_mode(step, "norm", inputs=True),
            "debug_mode_xor_inputs": lambda: _debug_mode(step, "hash_tensor", inputs=True),
        }
        seconds: dict[str, list[float]] = {name: [] for name in contenders}
        for call in contenders.values():
            call()
        for _ in range(arguments.rounds):
            for name, call in contenders.items():
                start = time.perf_counter()
                call()
                seconds[name].append(time.perf_counter() - start)
        operators = sum('"k":"op"' in line for line in (Path(folder) / "trace.jsonl").open(encoding="utf-8"))
    result = _summary(seconds, operators, vars(arguments))
    print(json.dumps(result))
    return 0 if result["within_budget"] else 1


def _step(width: int, tokens: int) -> Callable[[], None]:
    """One training step of an encoder layer, ready to run."""
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(width, 8, 4 * width, batch_first=True)
    optimiser = torch.optim.Adam(layer.parameters())
    x = torch.randn(tokens // 64, 64, width)

    def step() -> None:
        optimiser.zero_grad()
        loss = layer(x).square().mean()
        loss.backward()
        optimiser.step()

    return step


def _traced(step: Callable[[], None], folder: Path) -> None:
    sink = Sink(str(folder / "trace.jsonl"))
    own = Own({"target": {"kind": "script", "path": __file__}, "subjects": ["torch"]})
    trace = OpTrace(own, sink)
    trace.start()
    try:
        step()
    finally:
        trace.stop()
        sink.close()


def _debug_mode(step: Callable[[], None], function: str, *, inputs: bool) -> None:
    with DebugMode(), DebugMode.log_tensor_hashes(hash_fn=function, hash_inputs=inputs):
        step()


def _summary(seconds: dict[str, list[float]], operators: int, arguments: dict[str, Any]) -> dict[str, Any]:
    best = {name: min(times) for name, times in seconds.items()}
    traced = best["traced"]
    memory = {kind: _digest_extra(kind) for kind in ("contiguous", "transposed")}
    pairs = {
        name: [ours / theirs for ours, theirs in zip(seconds["traced"], seconds[name], strict=True)]
        for name in ("untraced", "debug_mode")
    }
    what = f"operator trace of an encoder layer's step, {operators} operators"
    return {
        "rows": [
            row(what, "the untraced step", pairs["untraced"], budget=BUDGET["untraced"]),
            row(what, "DebugMode with tensor hashes", pairs["debug_mode"], budget=BUDGET["debug_mode"]),
            row(
                "memory of digesting 256 MiB", "", [max(memory.values())], budget=BUDGET["digest_extra_mib"], unit="MiB"
            ),
        ],
        **arguments,
        "operators": operators,
        "ms": {name: round(1e3 * value, 2) for name, value in best.items()},
        "median_ms": {name: round(1e3 * statistics.median(times), 2) for name, times in seconds.items()},
        "traced_over_untraced": round(traced / best["untraced"], 2),
        "traced_over_debug_mode": {
            name: round(traced / best[name], 2) for name in best if name.startswith("debug_mode")
        },
        "digest_extra_mib": memory,
        "budget": BUDGET,
        "within_budget": traced <= BUDGET["untraced"] * best["untraced"]
        and traced <= BUDGET["debug_mode"] * best["debug_mode"]
        and max(memory.values()) <= BUDGET["digest_extra_mib"],
    }


def _digest_extra(kind: str) -> float:
    """MiB by which the peak grows while 256 MiB are digested."""
    tensor = torch.ones(8192, 8192)
    if kind == "transposed":
        tensor = tensor.t()
    tensor_digest(tensor[:64, :64])
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before = _status("VmRSS")
    tensor_digest(tensor)
    return round(_status("VmHWM") - before, 2)


def _status(field: str) -> float:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"/proc/self/status has no {field}")


if __name__ == "__main__":
    sys.exit(main())

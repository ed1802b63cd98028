"""How fast two arrays of which few elements differ are compared, against the usual ways; prints one JSON line.

Every contender gets the same two float32 arrays, 0.1 % of whose elements differ by one unit in the last place, and a
tolerance under which they agree (their cheapest path). Rounds interleave the contenders, so that a busy machine slows
all of them. `objects` compares two stored objects through memory maps, as a study does; `memory` the same arrays
in memory. `memcmp` is given equal arrays: the floor for touching all bytes once.

    python -m tests.benchmarks.bench_compare --mib 256 --rounds 7
"""

from __future__ import annotations

import argparse
import ctypes
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from reprocheck.compare.arrays import compare
from reprocheck.compare.source import Source
from reprocheck.model import Difference, Tolerance
from tests.benchmarks.figures import row

Float32 = NDArray[np.float32]

RTOL, ATOL = 1.3e-6, 1e-5
"""torch's own defaults for float32."""
BUDGET = {"torch": 8.0, "numpy": 4.0, "extra_mib": 128.0}


def main() -> int:
    """Run the rounds and print the line; 1 when a budget is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=256, help="size of each array [default: 256]")
    parser.add_argument("--rounds", type=int, default=7, help="rounds [default: 7]")
    parser.add_argument("--quick", action="store_true", help="64 MiB, three rounds")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.mib, arguments.rounds = 64, 3
    a, b = _arrays(arguments.mib)
    with tempfile.TemporaryDirectory() as folder:
        contenders = _contenders(a, b, Path(folder))
        seconds: dict[str, list[float]] = {name: [] for name in contenders}
        extra: dict[str, float] = {}
        for call in contenders.values():  # warm the page cache and whatever is lazy
            call()
        for _ in range(arguments.rounds):
            for name, call in contenders.items():
                before = _reset_peak()
                start = time.perf_counter()
                call()
                seconds[name].append(time.perf_counter() - start)
                extra[name] = max(extra.get(name, 0.0), _memory("VmHWM") - before)
    result = _summary(seconds, extra, arguments.mib)
    print(json.dumps(result))
    return 0 if result["within_budget"] else 1


def _arrays(mib: int) -> tuple[Float32, Float32]:
    random = np.random.default_rng(0)
    size = mib << 18
    reference = random.standard_normal(size, dtype=np.float32)
    changed = reference.copy()
    changed.view(np.uint32)[random.choice(size, size // 1000, replace=False)] += 1
    return changed, reference


def _contenders(a: Float32, b: Float32, folder: Path) -> dict[str, Callable[[], object]]:
    sides = [_stored(array, folder / f"{name}.safetensors") for name, array in (("a", a), ("b", b))]
    tensors = torch.from_numpy(a), torch.from_numpy(b)
    libc = ctypes.CDLL(None)
    libc.memcmp.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
    tolerance = Tolerance(rtol=RTOL, atol=ATOL)
    same = b.copy()

    def ours(left: Callable[[], Source], right: Callable[[], Source]) -> Difference:
        found = compare(left(), right(), tolerance)
        if found.differing != len(a) // 1000 or not found.within or found.max_ulp != 1:
            raise RuntimeError(f"the comparison went wrong: {found}")
        return found

    return {
        "objects": lambda: ours(lambda: Source.from_object(sides[0]), lambda: Source.from_object(sides[1])),
        "memory": lambda: ours(lambda: Source.from_numpy(a), lambda: Source.from_numpy(b)),
        "torch": lambda: torch.testing.assert_close(*tensors, rtol=RTOL, atol=ATOL),
        "numpy": lambda: np.testing.assert_allclose(a, b, rtol=RTOL, atol=ATOL),
        "memcmp": lambda: libc.memcmp(same.ctypes.data, b.ctypes.data, b.nbytes),
    }


def _stored(array: Float32, path: Path) -> Path:
    header = json.dumps({"value": {"dtype": "F32", "shape": array.shape, "data_offsets": [0, array.nbytes]}}).encode()
    header += b" " * (-len(header) % 8)
    with path.open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        array.tofile(file)
    return path


def _summary(seconds: dict[str, list[float]], extra: dict[str, float], mib: int) -> dict[str, Any]:
    median = {name: statistics.median(times) for name, times in seconds.items()}
    slower = max(median["objects"], median["memory"])
    ratios = {name: round(median[name] / slower, 2) for name in ("torch", "numpy", "memcmp")}
    most = max(extra["objects"], extra["memory"])
    ours = [max(pair) for pair in zip(seconds["objects"], seconds["memory"], strict=True)]
    speed = {
        name: [theirs / mine for theirs, mine in zip(seconds[name], ours, strict=True)] for name in ("torch", "numpy")
    }
    floor = [mine / theirs for mine, theirs in zip(ours, seconds["memcmp"], strict=True)]
    what = f"comparing 2 x {mib} MiB of float32, 0.1 % differing"
    return {
        "rows": [
            row(
                f"{what}: times faster",
                "torch.testing.assert_close",
                speed["torch"],
                budget=BUDGET["torch"],
                least=True,
            ),
            row(
                f"{what}: times faster",
                "numpy.testing.assert_allclose",
                speed["numpy"],
                budget=BUDGET["numpy"],
                least=True,
            ),
            row(f"{what}: time", "memcmp of equal arrays", floor),
            row(f"{what}: memory", "", [most], budget=BUDGET["extra_mib"], unit="MiB"),
        ],
        "bench": "compare",
        "mib": mib,
        "rounds": len(seconds["objects"]),
        "seconds": {
            name: {"median": round(median[name], 4), "min": round(min(times), 4), "max": round(max(times), 4)}
            for name, times in seconds.items()
        },
        "times_faster_than": ratios,
        "extra_mib": {name: round(value, 1) for name, value in extra.items()},
        "budget": BUDGET,
        "within_budget": all(ratios[name] >= BUDGET[name] for name in ("torch", "numpy"))
        and most <= BUDGET["extra_mib"],
    }


def _reset_peak() -> float:
    """Set the peak resident size back to the present one; returns that, in MiB."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return _memory("VmRSS")


def _memory(field: str) -> float:
    """A size from `/proc/self/status`, in MiB."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"/proc/self/status has no {field}")


if __name__ == "__main__":
    sys.exit(main())

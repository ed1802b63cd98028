"""The whole run against the same interpreters started by a shell loop that saves with `numpy.save`.

Budget: at most 1.10 x, for 2 orders x 3 repeats of torch and cupy with 2 jobs.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.benchmarks.figures import row

ROUNDS = 3
ORDERS = ("cupy,torch", "torch,cupy")
REPEATS = 3
JOBS = 2

WORK = """
import cupy
import numpy as np
import torch


def run():
    torch.manual_seed(0)
    x = torch.randn(1000, 1000)
    solved = torch.linalg.solve(x, x[:, :8])
    return {"product": x @ x, "sum": x.sum(), "solve": solved, "numpy": np.arange(1000.0) ** 0.5}
"""

# What a careful person writes by hand: import in order, run, save.
PLAIN = """
import importlib, sys
for name in sys.argv[1].split(","):
    importlib.import_module(name)
import work
import numpy
for key, value in work.run().items():
    numpy.save(f"{sys.argv[2]}.{key}.npy", numpy.asarray(value))
"""

SHELL = """
running=0
for repeat in $(seq {repeats}); do
  for order in {orders}; do
    "{python}" plain.py "$order" "out-$order-$repeat" &
    running=$((running + 1))
    if [ $running -ge {jobs} ]; then wait -n; running=$((running - 1)); fi
  done
done
wait
"""


def shell_loop(folder: Path) -> float:
    """Seconds of the loop."""
    script = SHELL.format(repeats=REPEATS, orders=" ".join(ORDERS), python=sys.executable, jobs=JOBS)
    begin = time.perf_counter()
    subprocess.run(["bash", "-c", script], cwd=folder, check=True, env={**os.environ, "PYTHONHASHSEED": "0"})
    return time.perf_counter() - begin


def harness(folder: Path) -> float:
    """Seconds of `reprocheck run`, its own start included."""
    begin = time.perf_counter()
    words = [
        "run",
        "work.py::run",
        "--imports",
        ORDERS[0],
        "--repeat",
        str(REPEATS),
        "--jobs",
        str(JOBS),
        "-q",
        "--no-explain",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "reprocheck", *words], cwd=folder, check=False, capture_output=True, text=True
    )
    if done.returncode != 0:
        raise SystemExit(done.stdout + done.stderr)
    return time.perf_counter() - begin


def main() -> dict[str, object]:
    """Both, interleaved, after one round to warm the disk; with `--quick` one round."""
    rounds = 1 if "--quick" in sys.argv else ROUNDS
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "work.py").write_text(WORK)
        (folder / "plain.py").write_text(PLAIN)
        shell_loop(folder)
        ratios, plain, ours = [], [], []
        for _ in range(rounds):
            plain.append(shell_loop(folder))
            ours.append(harness(folder))
            ratios.append(ours[-1] / plain[-1])
    return {
        "name": "run, 2 orders x 3 repeats, 2 jobs / shell loop",
        "rows": [row("run, 2 orders x 3 repeats, 2 jobs", "a shell loop that saves", ratios, budget=1.10)],
        "budget": 1.10,
        "ratio": statistics.median(ratios),
        "spread": [min(ratios), max(ratios)],
        "seconds": {"shell": statistics.median(plain), "reprocheck": statistics.median(ours)},
    }


if __name__ == "__main__":
    print(json.dumps(main()))

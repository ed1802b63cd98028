"""`--isolation shared-prefix` against fresh interpreters: 4 subjects, all 24 orders, the whole of `reprocheck run`.

Budget: at most 0.6 x, same verdict. Three sets of subjects: real ones (torch, cupy, einops and a package that needs
numpy), packages that spend 0.15 s of pure Python each, and empty ones, where there is nothing to share but the start.
Wall-clock time, and CPU time of everything that was started, which a busy machine disturbs less.

`python bench_forks.py [real|python|empty]…` for some of them; the real ones take minutes a round.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS = {"real": 1, "python": 3, "empty": 3}
REAL = ("torch", "cupy", "einops", "deep")
MADE = ("one", "two", "three", "four")

WORK = "def run():\n    return 1.5\n"
WORK_REAL = """
import numpy as np
import torch


def run():
    x = np.random.default_rng(0).standard_normal((400, 400)).astype("f")
    return {"numpy": x @ x, "torch": torch.from_numpy(x) @ torch.from_numpy(x)}
"""
# What a package of pure Python costs with its byte code cached.
BUSY = "import time\nend = time.process_time() + 0.15\nwhile time.process_time() < end:\n    pass\n"


def write(kind: str, folder: Path) -> tuple[str, ...]:
    """The toolboxes and the workload; returns the subjects."""
    (folder / "work.py").write_text(WORK_REAL if kind == "real" else WORK)
    if kind == "real":
        (folder / "deep.py").write_text("import numpy\n" + BUSY)
        return REAL
    for name in MADE:
        (folder / f"{name}.py").write_text(BUSY if kind == "python" else "")
    return MADE


def run(folder: Path, subjects: tuple[str, ...], isolation: str, repeat: int) -> dict[str, float | str]:
    """Seconds and CPU seconds of one run, its verdict, and how many trials it took."""
    out = folder / f"out-{isolation}-{time.monotonic_ns()}"
    words = ["run", "work.py::run", "--imports", ",".join(subjects), "--orders", "all", "--isolation", isolation]
    # One trial an order and no observer arm: fresh, these are 24 interpreters and no more.
    words += ["--no-observer"] if repeat == 1 else []
    words += ["--repeat", str(repeat), "--out", str(out), "-q", "--no-explain", "--format", "json"]
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "reprocheck", *words], cwd=folder, check=False, capture_output=True, text=True
    )
    seconds, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1):
        raise SystemExit(done.stdout + done.stderr)
    return {
        "seconds": seconds,
        "cpu": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "verdict": json.loads(done.stdout)["verdict"],
        "trials": (out / "journal.jsonl").read_text().count("\n"),
    }


def measure(kind: str, repeat: int) -> dict[str, object]:
    """Both, interleaved, after imports that write the byte code."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subjects = write(kind, folder)
        subprocess.run([sys.executable, "-c", f"import {', '.join(subjects)}"], cwd=folder, check=True)
        rounds = [
            [run(folder, subjects, isolation, repeat) for isolation in ("shared-prefix", "fresh")]
            for _ in range(ROUNDS[kind])
        ]
    found: dict[str, object] = {"rounds": len(rounds)}
    for what in ("seconds", "cpu"):
        ratios = [float(shared[what]) / float(fresh[what]) for shared, fresh in rounds]
        found[f"ratio_{what}"] = round(statistics.median(ratios), 3)
        found[f"spread_{what}"] = [round(min(ratios), 3), round(max(ratios), 3)]
    for index, isolation in enumerate(("shared-prefix", "fresh")):
        sides = [both[index] for both in rounds]
        found[isolation] = {
            "seconds": round(statistics.median(float(side["seconds"]) for side in sides), 2),
            "cpu": round(statistics.median(float(side["cpu"]) for side in sides), 2),
            "trials": sides[0]["trials"],
        }
    found["same_verdict"] = all(shared["verdict"] == fresh["verdict"] for shared, fresh in rounds)
    return found


def main() -> dict[str, object]:
    """With the default of three trials an order, and with one, where repeats spare nothing."""
    wanted = sys.argv[1:] or list(ROUNDS)
    cases = {f"{kind}, {repeat} an order": measure(kind, repeat) for kind in wanted for repeat in (1, 3)}
    return {
        "name": "run, 4 subjects x 24 orders, shared-prefix / fresh",
        "budget": 0.6,
        "cores": len(os.sched_getaffinity(0)),
        "cases": cases,
    }


if __name__ == "__main__":
    print(json.dumps(main()))

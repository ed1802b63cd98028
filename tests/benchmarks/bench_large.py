"""Large outputs: memory of the process that compares, bytes on disk, and throughput; prints one JSON line.

A workload leaves so many GiB in arrays of 64 MiB, of which every eighth differs between the two orders in a thousandth
of its elements. `parent_mib` is the peak resident size of the process that runs and compares (its children not
counted), once for an eighth of the size and once for all of it: it must not grow. `on_disk` is what the run folder
holds over what its distinct arrays take: equal ones are stored once. The rival does by hand what has to be done at
least: it makes the same arrays in the same number of processes, one after the other, saves them with `numpy.save`,
digests them with `sha256sum` and compares those that differ with `numpy`.

    python -m tests.benchmarks.bench_large --gib 8
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.benchmarks.figures import row

BUDGET = {"parent_mib": 512, "growth_mib": 64, "on_disk": 1.01, "ratio": 1.5}
ARRAY_MIB = 64

WORK = """
import os
import sys

import numpy as np


def run():
    from reprocheck import record

    first = sys.modules["which"].FIRST
    size = {array_mib} << 18
    for number in range({arrays}):
        values = np.arange(size, dtype=np.float32)
        values *= np.float32(1.0 + number)
        if number % 8 == 0 and first == "b":
            values.view(np.uint32)[::1000] ^= 1
        record("array%03d" % number, values)
"""
PLAIN = """
import hashlib, os, sys
import numpy as np

order, folder = sys.argv[1:]
size = {array_mib} << 18
for number in range({arrays}):
    values = np.arange(size, dtype=np.float32)
    values *= np.float32(1.0 + number)
    if number % 8 == 0 and order == "b":
        values.view(np.uint32)[::1000] ^= 1
    np.save(os.path.join(folder, "%03d.npy" % number), values)
"""
COMPARE = """
import sys
from pathlib import Path
import numpy as np

one, other = map(Path, sys.argv[1:])
for file in sorted(one.glob("*.npy")):
    a, b = np.load(file, mmap_mode="r"), np.load(other / file.name, mmap_mode="r")
    if not np.array_equal(a, b):
        np.abs(a - b).max(), np.count_nonzero(a != b)
"""
CHECK = """
import json, sys
from pathlib import Path
import reprocheck

study = reprocheck.check(
    "work.py::run", ["a", "b"], repeat=REPEAT, max_repeat=REPEAT, jobs=1, explain=False, observer=False, out="run"
)
peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
found = [output for output in study.outputs if output.differs]
print(json.dumps({"mib": int(peak.split()[1]) / 1024, "differing": len(found), "outputs": len(study.outputs),
                  "elements": found[0].differing, "verdict": study.verdict}))
"""


def main() -> int:
    """Run the rounds and print the line; 1 when a budget is missed, 5 where the disk is too small."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gib", type=float, default=1.0, help="size of one trial's outputs [default: 1]")
    parser.add_argument("--rounds", type=int, default=3, help="rounds [default: 3]")
    parser.add_argument("--trials", type=int, choices=(2, 4), default=4, help="trials of a study [default: 4]")
    parser.add_argument("--no-rival", action="store_true", help="measure memory and disk only")
    parser.add_argument("--quick", action="store_true", help="a quarter of a GiB, one round")
    parser.add_argument("--folder", type=Path, help="where to work [default: a temporary folder]")
    arguments = parser.parse_args()
    gib, rounds = (0.25, 1) if arguments.quick else (arguments.gib, arguments.rounds)
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = Path(name)
        needed = int(gib * 2**30 * 3)
        if shutil.disk_usage(folder).free < needed + (4 << 30):
            print(json.dumps({"bench": "large", "skipped": f"less than {needed / 2**30 + 4:.0f} GiB of disk free"}))
            return 5
        trials = arguments.trials
        small = _ours(folder / "small", gib / 8, trials)
        ours, plain = [], []
        for number in range(rounds):
            plain.append(0.0 if arguments.no_rival else _plain(folder / f"plain{number}", gib, trials))
            ours.append(_ours(folder / f"ours{number}", gib, trials))
    ratios = [mine["seconds"] / theirs if theirs else 0.0 for mine, theirs in zip(ours, plain, strict=True)]
    result: dict[str, Any] = {
        "bench": "large",
        "gib": gib,
        "trials": trials,
        "rounds": rounds,
        "parent_mib": round(max(item["mib"] for item in ours), 1),
        "growth_mib": round(max(item["mib"] for item in ours) - small["mib"], 1),
        "on_disk": round(max(item["disk"] for item in ours), 3),
        "seconds": {"reprocheck": round(statistics.median(i["seconds"] for i in ours), 2)}
        | {"plain": round(statistics.median(plain), 2)},
        "gib_per_s": round(trials * gib / statistics.median(i["seconds"] for i in ours), 2),
        "ratio": round(statistics.median(ratios), 2),
        "spread": [round(min(ratios), 2), round(max(ratios), 2)],
        "budget": BUDGET,
    }
    what = f"{trials} trials of {gib:g} GiB of outputs"
    result["rows"] = [
        row(f"{what}: parent's memory", "", [i["mib"] for i in ours], budget=BUDGET["parent_mib"], unit="MiB"),
        row(f"{what}: its growth", f"{gib / 8:g} GiB", [result["growth_mib"]], budget=BUDGET["growth_mib"], unit="MiB"),
        row(f"{what}: on disk", "distinct arrays", [i["disk"] for i in ours], budget=BUDGET["on_disk"]),
    ]
    if not arguments.no_rival:
        result["rows"].append(row(f"{what}: time", "numpy.save, sha256sum, numpy", ratios, budget=BUDGET["ratio"]))
    result["within_budget"] = all(result[key] <= limit for key, limit in BUDGET.items())
    print(json.dumps(result))
    return 0 if result["within_budget"] else 1


def _arrays(gib: float) -> int:
    return max(1, round(gib * 1024 / ARRAY_MIB))


def _ours(folder: Path, gib: float, trials: int) -> dict[str, float]:
    """One study of two orders."""
    folder.mkdir()
    (folder / "which.py").write_text("FIRST = None\n")
    for name in "ab":
        (folder / f"{name}.py").write_text(f"import which\nif which.FIRST is None:\n    which.FIRST = {name!r}\n")
    (folder / "work.py").write_text(WORK.format(array_mib=ARRAY_MIB, arrays=_arrays(gib)))
    (folder / "check.py").write_text(CHECK.replace("REPEAT", str(trials // 2)))
    begin = time.perf_counter()
    done = subprocess.run([sys.executable, "check.py"], cwd=folder, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - begin
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    expected = (_arrays(gib), -(-_arrays(gib) // 8), -(-(ARRAY_MIB << 18) // 1000))
    if (found["outputs"], found["differing"], found["elements"]) != expected:
        raise SystemExit(f"the study went wrong: {found}, expected {expected}")
    stored = sum(path.stat().st_size for path in (folder / "run" / "objects").rglob("*.safetensors"))
    shutil.rmtree(folder)
    distinct = _arrays(gib) + -(-_arrays(gib) // 8)
    return {"seconds": seconds, "mib": found["mib"], "disk": stored / (distinct * ARRAY_MIB * 2**20)}


def _plain(folder: Path, gib: float, trials: int) -> float:
    """Seconds for the same by hand."""
    folder.mkdir()
    (folder / "plain.py").write_text(PLAIN.format(array_mib=ARRAY_MIB, arrays=_arrays(gib)))
    (folder / "compare.py").write_text(COMPARE)
    begin = time.perf_counter()
    for order in "ab":
        for repeat in range(trials // 2):
            place = folder / f"{order}{repeat}"
            place.mkdir()
            subprocess.run([sys.executable, "plain.py", order, place.name], cwd=folder, check=True)
            subprocess.run(
                ["sha256sum", *sorted(file.name for file in place.iterdir())],
                cwd=place,
                check=True,
                stdout=subprocess.DEVNULL,
            )
            if repeat:
                shutil.rmtree(place)
    subprocess.run([sys.executable, "compare.py", "a0", "b0"], cwd=folder, check=True)
    seconds = time.perf_counter() - begin
    shutil.rmtree(folder)
    return seconds


if __name__ == "__main__":
    sys.exit(main())

"""What a version costs before its run begins, and how many of 64 are run; prints one JSON line.

`environment` makes the environment of a version that uv has in its cache, inheriting what the interpreter has, as
`bisect` does; `floor` are the two bare commands, `uv venv` and `uv pip install`, for the same wheel. Rounds interleave
them, and the best counts: how long it takes, not how busy the machine is. `versions_run` is the largest number of
versions run, both ends included, over all 63 places of a single change.

    python -m tests.benchmarks.bench_bisect --rounds 9
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from pathlib import Path
from typing import Any

from reprocheck.bisect.environments import PackageEnvironments
from reprocheck.bisect.installers import Sources, Uv, choose
from reprocheck.bisect.interpreter import ask
from reprocheck.bisect.records import Candidate, Place
from reprocheck.bisect.search import History, Label, batch, step
from reprocheck.bisect.store import EnvironmentStore
from reprocheck.bisect.versions import list_versions
from reprocheck.engine.environment import user_environment
from tests.benchmarks.figures import row

BUDGET = {"environment_s": 0.3, "ratio": 1.5, "versions_run": 8}
"""On a machine so busy that the floor itself is above `_QUIET_S`, the ratio counts instead of the seconds."""
_QUIET_S = 0.2
COUNT = 64


def main() -> int:
    """Run the rounds and print the line; 1 when a budget is missed, 5 without uv."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9, help="versions that are timed [default: 9]")
    parser.add_argument("--quick", action="store_true", help="three versions")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rounds = 3
    environment = user_environment()
    interpreter = ask(sys.executable, environment)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheels = folder / "wheels"
        _releases(wheels, arguments.rounds)
        sources = Sources(find_links=(str(wheels),), no_index=True)
        installer, _ = choose("auto", interpreter, sources, environment, threading.Event())
        if not isinstance(installer, Uv):
            print(json.dumps({"bench": "bisect", "skipped": "no uv"}))
            return 5
        candidates = list_versions("tool", sources, None).candidates
        for store in ("cold", "warm"):
            environments = PackageEnvironments(
                "tool", interpreter, installer, EnvironmentStore(folder / store, 1 << 40), inherit=True
            )
            environments.preflight(candidates)
            seconds: dict[str, list[float]] = {"environment": [], "floor": []}
            for candidate in candidates:
                seconds["environment"].append(_timed(environments, candidate))
                seconds["floor"].append(_floor(installer, folder / store / candidate.name, wheels, candidate))
    result: dict[str, Any] = {
        "bench": "bisect",
        "environment_s": round(min(seconds["environment"]), 4),
        "environment_median_s": round(statistics.median(seconds["environment"]), 4),
        "floor_s": round(min(seconds["floor"]), 4),
        "versions_run": max(_cost(first_bad) for first_bad in range(1, COUNT)),
        "uv": installer.version,
    }
    result["ratio"] = round(result["environment_s"] / result["floor_s"], 2)
    told = {key: limit for key, limit in BUDGET.items() if key != "environment_s" or result["floor_s"] <= _QUIET_S}
    result["within_budget"] = all(result[key] <= limit for key, limit in told.items())
    ratios = [ours / floor for ours, floor in zip(seconds["environment"], seconds["floor"], strict=True)]
    result["rows"] = [
        row(
            "versions run of 64, both ends included",
            "",
            [result["versions_run"]],
            budget=BUDGET["versions_run"],
            unit="",
        ),
        row("a warm environment", "uv venv; uv pip install", ratios, budget=BUDGET["ratio"]),
        row("a warm environment", "", seconds["environment"], budget=told.get("environment_s"), unit="s"),
    ]
    print(json.dumps(result))
    return 0 if result["within_budget"] else 1


def _releases(folder: Path, count: int) -> None:
    folder.mkdir()
    for number in range(count):
        info = f"tool-1.{number}.dist-info"
        with zipfile.ZipFile(folder / f"tool-1.{number}-py3-none-any.whl", "w") as archive:
            for module in range(20):
                archive.writestr(f"tool/part_{module}.py", f"number = {number}\n")
            archive.writestr("tool/__init__.py", f"number = {number}\n")
            archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: tool\nVersion: 1.{number}\n")
            archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            archive.writestr(f"{info}/RECORD", "")


def _timed(environments: PackageEnvironments, candidate: Candidate) -> float:
    start = time.perf_counter()
    place = environments.prepare(candidate)
    seconds = time.perf_counter() - start
    assert isinstance(place, Place), place
    return seconds


def _floor(installer: Uv, venv: Path, wheels: Path, candidate: Candidate) -> float:
    program = installer.program
    start = time.perf_counter()
    subprocess.run([program, "venv", "--quiet", "--no-project", "--python", sys.executable, venv], check=True)
    command = [program, "pip", "install", "--quiet", "--python", str(venv / "bin" / "python")]
    subprocess.run([*command, "--no-index", "--find-links", str(wheels), candidate.requirement], check=True)
    return time.perf_counter() - start


def _cost(first_bad: int) -> int:
    history, known = History(COUNT), dict[int, Label]()
    while step(history, known).wanted:
        known.update({index: index >= first_bad for index in batch(history, known, 1)})
    return len(known)


if __name__ == "__main__":
    sys.exit(main())

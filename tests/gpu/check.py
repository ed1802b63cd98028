"""Runs the steps of the GPU check one by one, each with a time limit, and writes what came out as JSON.

Started by `check.sh`. The standard library only: a machine that lacks something is told by the steps, not by a
traceback of this file.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]

STEPS: tuple[tuple[str, int, str], ...] = (
    ("machine", 60, "versions, devices, and whether torch and cupy share memory by DLPack"),
    ("scenario:cupy_torch", 90, "every order, with capture and the observer arm"),
    ("scenario:rnn_bptt", 90, "every order, with capture and the observer arm"),
    ("scenario:attention_rearrange", 90, "two of six orders, with capture and the observer arm"),
    ("scenario:training_loop", 90, "every order, with capture and the observer arm"),
    ("scenario:input_pipeline", 90, "every order, with capture and the observer arm"),
    ("scenario:model_switching", 90, "every order, with capture and the observer arm"),
    ("plant:tf32", 150, "TF32 switched on at import: found, located, explained and repaired"),
    ("plant:workspace", 60, "CUBLAS_WORKSPACE_CONFIG set at import: seen"),
    ("plant:allocator", 60, "PYTORCH_CUDA_ALLOC_CONF set at import: seen, and no bits move"),
    ("plant:compute_type", 60, "cupy's compute type set at import: seen, and bits move"),
    ("plant:cublas", 90, "another copy of cuBLAS loaded first: torch is seen to be bound to it"),
    ("vary:allocator", 120, "cupy on a pool of its own and on torch's: the same bits"),
    ("kernels", 60, "CUPTI's kernel names of both orders"),
    ("tests", 150, "pytest -m gpu"),
    ("bench:trace", 90, "operator trace against torch's DebugMode"),
    ("bench:digest", 60, "bandwidth of digests against the device's memory"),
)
"""Name, most seconds, what it is; the ones that matter most first, for when time runs out."""
LEAST = 5
"""Seconds below which a step is not begun."""
GRACE = 5
PATIENCE = {"cuda": 1, "cpu": 4}
"""Times the most seconds of a step: a dry run may take its time on a busy machine."""


def main() -> int:
    """Run what is asked for; 0 when nothing failed."""
    parser = argparse.ArgumentParser(prog="check.sh", description=__doc__)
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"), help="cpu: a dry run [default: cuda]")
    parser.add_argument("--out", type=Path, default=Path("gpu-check.json"), help="[default: gpu-check.json]")
    parser.add_argument("--limit", type=float, default=470, help="seconds for all steps together [default: 470]")
    parser.add_argument("--only", help="names of steps, or what they begin with, separated by commas")
    parser.add_argument("--list", action="store_true", help="show the steps and stop")
    parser.add_argument("--work", type=Path, help="a folder to work in [default: a new one]")
    options = parser.parse_args()
    if options.list:
        for name, seconds, what in STEPS:
            print(f"{name:30} {seconds:4} s  {what}")
        return 0
    wanted = options.only.split(",") if options.only else [""]
    steps = [step for step in STEPS if any(step[0].startswith(start) for start in wanted)]
    if not steps:
        parser.error(f"no step begins with `{options.only}`; --list shows them")
    work = options.work or Path(tempfile.mkdtemp())
    begin = time.monotonic()
    document: dict[str, Any] = {
        "schema": "reprocheck/gpu-check",
        "schema_version": 1,
        "device": options.device,
        "python": platform.python_version(),
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "limit": options.limit,
        "steps": [],
    }
    for name, seconds, _what in steps:
        left = options.limit - (time.monotonic() - begin)
        found = (
            _step(name, min(PATIENCE[options.device] * seconds, left), options.device, work)
            if left >= LEAST
            else _no_time()
        )
        document["steps"].append({"name": name, **found})
        print(f"{found['result']:8} {found['seconds']:6.1f} s  {name:30} {found['detail']}", flush=True)
        _write(options.out, document, begin)
    results = [step["result"] for step in document["steps"]]
    counts = ", ".join(f"{results.count(kind)} {kind}" for kind in ("passed", "failed", "skipped") if kind in results)
    print(f"{counts} in {time.monotonic() - begin:.0f} s; {options.out}")
    return 1 if "failed" in results else 0


def _no_time() -> dict[str, Any]:
    return {"result": "skipped", "seconds": 0.0, "detail": "skipped: no time left", "figures": {}}


def _step(name: str, limit: float, device: str, work: Path) -> dict[str, Any]:
    """Run one step in a process group of its own, killed as a whole when it takes too long."""
    folder = Path(tempfile.mkdtemp(prefix=name.replace(":", "-") + "-", dir=work))
    answer, log = folder / "answer.json", folder / "log.txt"
    begin = time.monotonic()
    command = [sys.executable, "-m", "tests.gpu.steps", name, "--device", device, "--folder", str(folder)]
    with log.open("wb") as stream:
        process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, start_new_session=True
        )
        try:
            status = process.wait(limit)
        except subprocess.TimeoutExpired:
            status = None
            _end(process)
    seconds = round(time.monotonic() - begin, 1)
    try:
        found: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        found = {}
    if status is None:
        found = {**found, "result": "failed", "detail": f"no end within {limit:.0f} s"}
    elif "result" not in found:
        text = log.read_text(encoding="utf-8", errors="replace").strip()
        found = {"result": "failed", "detail": text.rpartition("\n")[2][:300] or f"ended with status {status}"}
    if found["result"] == "failed":
        found["log"] = log.read_text(encoding="utf-8", errors="replace")[-4000:]
    return {"seconds": seconds, "figures": {}, **found}


def _end(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            break
        try:
            process.wait(GRACE)
        except subprocess.TimeoutExpired:
            continue
        break


def _write(path: Path, document: dict[str, Any], begin: float) -> None:
    """After every step, so that what is known outlives whatever ends this script."""
    document["seconds"] = round(time.monotonic() - begin, 1)
    document["passed"] = all(step["result"] != "failed" for step in document["steps"])
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    temporary.replace(path)


if __name__ == "__main__":
    sys.exit(main())

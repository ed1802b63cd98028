"""Every benchmark in one run: a table on stdout, all figures in bench.json.

Each `bench_*.py` beside this file is a module that prints its figures as JSON on its last line: `rows`, each a ratio
against a rival measured in the same run, over several rounds, or a size. A budget that is missed is said, not raised:
figures depend on the machine. A benchmark that broke is a failure.

    python -m tests.benchmarks.bench            # all of them
    python -m tests.benchmarks.bench --quick    # smaller sizes, fewer rounds: a look, no proof
    python -m tests.benchmarks.bench large orders
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]  # run as a script, too

from tests.benchmarks.figures import table  # noqa: E402


def run(script: Path, *, quick: bool) -> dict[str, Any]:
    """The script's figures, or why there are none."""
    begin = time.perf_counter()
    words = [sys.executable, "-m", f"tests.benchmarks.{script.stem}", *(["--quick"] if quick else [])]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    found: dict[str, Any] = json.loads(lines[-1]) if lines else {"error": (done.stderr or done.stdout).strip()[-2000:]}
    return {**found, "seconds_spent": round(time.perf_counter() - begin, 1)}


def main() -> int:
    """Run all, or those whose names are given; 1 when one of them gave no figures and no reason for it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="benchmarks, as `large`; all by default")
    parser.add_argument("--quick", action="store_true", help="smaller sizes and fewer rounds")
    parser.add_argument("--json", type=Path, default=Path("bench.json"), help="where all figures go")
    arguments = parser.parse_args()
    scripts = {
        script.stem.removeprefix("bench_"): script for script in sorted(Path(__file__).parent.glob("bench_*.py"))
    }
    unknown = [name for name in arguments.names if name not in scripts]
    if unknown:
        parser.error(f"no benchmark `{unknown[0]}`; there are {', '.join(scripts)}")
    figures: dict[str, Any] = {}
    rows: list[dict[str, Any]] = []
    for name in arguments.names or scripts:
        print(f"{name} …", file=sys.stderr, flush=True)
        figures[name] = run(scripts[name], quick=arguments.quick)
        rows += figures[name].get("rows", ())
    document = {"quick": arguments.quick, "machine": _machine(), "rows": rows, "figures": figures}
    arguments.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    print(table(rows))
    for name, found in figures.items():
        if "rows" not in found:
            print(f"\n{name}: {found.get('skipped') or found.get('told') or found.get('error')}")
    missed = sum(row["met"] is False for row in rows)
    held = sum(row["met"] is True for row in rows)
    print(f"\n{held} of {held + missed} budgets met on {_machine()}; all figures in {arguments.json}")
    return int(any("error" in found for found in figures.values()))


def _machine() -> str:
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if "model name" in line
        ),
        platform.machine(),
    )
    load = os.getloadavg()[0]
    return f"{len(os.sched_getaffinity(0))} cores of {model}, Python {platform.python_version()}, load {load:.1f}"


if __name__ == "__main__":
    sys.exit(main())

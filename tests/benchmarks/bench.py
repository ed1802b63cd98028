"""Every benchmark in one run: a table on stdout, all figures in bench.json.

Each `bench_*.py` beside this file is a script that prints its figures as JSON on its last line, always as ratios
against a rival measured in the same run. A budget that is missed is said, not raised: figures depend on the machine.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def run(script: Path) -> dict[str, Any]:
    """The script's figures, or why there are none."""
    begin = time.perf_counter()
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False, cwd=HERE.parents[1]
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    found: dict[str, Any] = json.loads(lines[-1]) if lines else {"error": (done.stderr or done.stdout).strip()[-2000:]}
    return {**found, "seconds_spent": round(time.perf_counter() - begin, 1)}


def main() -> None:
    """Run all, or those whose names are given."""
    wanted = sys.argv[1:]
    figures = {}
    for script in sorted(HERE.glob("bench_*.py")):
        name = script.stem.removeprefix("bench_")
        if wanted and name not in wanted:
            continue
        print(f"{name} …", file=sys.stderr, flush=True)
        figures[name] = run(script)
        print(f"{name}\n{json.dumps(figures[name], indent=2)}")
    Path("bench.json").write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

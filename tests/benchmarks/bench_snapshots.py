"""What a snapshot costs at each phase, over fresh interpreters with torch and numpy.

Budgets, medians: t1 at most 3 ms, t2 at most 20 ms, t3 at most 150 ms.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from reprocheck.engine.environment import user_environment
from reprocheck.engine.local import LocalEngine
from reprocheck.engine.trial import Job
from reprocheck.model import Record, Target, Trial
from tests.benchmarks.figures import row

ROUNDS = 7
BUDGETS = {"t1": 3.0, "t2": 20.0, "t3": 150.0}


def main() -> dict[str, Any]:
    """Milliseconds by phase: median, least, most; with `--quick` over two interpreters."""
    rounds = 2 if "--quick" in sys.argv else ROUNDS
    job = Job(
        target=Target(text="(nothing)", kind="nothing"),
        python=sys.executable,
        cwd=str(Path.cwd()),
        environment=user_environment(),
    )
    found: dict[str, list[float]] = {"t0": [], "t1": [], "t2": [], "t3": []}
    with tempfile.TemporaryDirectory() as scratch:
        engine = LocalEngine(job, Path(scratch), jobs=1)
        records: list[Record] = list(
            engine.run([Trial(order=("torch", "numpy"), repeat=n) for n in range(rounds)], lambda raw, _: raw.record)
        )
    for record in records:
        for snapshot in record.snapshots:
            found[snapshot.phase.partition(":")[0]].append(snapshot.ms)
    return {
        "name": "snapshots, ms (the readers' own loading included)",
        "rows": [row(f"snapshot {phase}", "", found[phase], budget=most, unit="ms") for phase, most in BUDGETS.items()],
        "budgets": BUDGETS,
        "median": {phase: round(statistics.median(times), 2) for phase, times in found.items()},
        "spread": {phase: [min(times), max(times)] for phase, times in found.items()},
    }


if __name__ == "__main__":
    print(json.dumps(main()))

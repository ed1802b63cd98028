"""How reprocheck's own cost grows: with trials, with outputs, with bytes; prints one JSON line.

Trials are made up in no time and go through the real line: store, journal, comparison, verdict. What is timed is CPU
time of this process, so that a busy machine does not show, less what making them up costs. The figure is how much the
cost of one more (trial, output, MiB) at the largest size is above that at a smaller one: 1 is a straight line.

    python -m tests.benchmarks.bench_growth
"""

from __future__ import annotations

import argparse
import itertools
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from reprocheck.compare.arrays import compare
from reprocheck.compare.source import Source
from reprocheck.engine.runner import Runner
from reprocheck.line import Request, run
from reprocheck.model import Tolerance, Trial
from reprocheck.store.objects import digest_file
from reprocheck.store.run import RunWriter, Spec
from tests.benchmarks.figures import row
from tests.benchmarks.made_up import TARGET, MadeUp, write_array

BUDGET = 1.5
"""Cost of one more at the largest size, over that at the reference size."""
ORDERS = tuple(itertools.permutations("abcdef"))


def main() -> int:
    """Measure the three curves; 1 when one of them bends."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="rounds [default: 3]")
    parser.add_argument("--gib", type=float, default=4.0, help="largest output in bytes' curve [default: 4]")
    parser.add_argument("--quick", action="store_true", help="a tenth of the sizes, one round")
    arguments = parser.parse_args()
    quick = arguments.quick
    rounds = 1 if quick else arguments.rounds
    curves: list[tuple[str, str, Sequence[int], Callable[[int, Path], float]]] = [
        ("trials, all agreeing", "trial", (1, 10, 30, 100) if quick else (1, 10, 100, 1000), _trials),
        ("trials, half of the orders differing", "trial", (10, 30, 100) if quick else (10, 100, 1000), _differing),
        ("outputs of a trial", "output", (1, 10, 100, 1000) if quick else (1, 100, 1000, 10_000), _outputs),
        ("MiB of an output", "MiB", (1, 16, 64) if quick else (1, 64, 512, int(arguments.gib * 1024)), _bytes),
    ]
    rows: list[dict[str, Any]] = []
    figures: dict[str, Any] = {}
    for name, unit, sizes, measure in curves:
        seconds: dict[int, list[float]] = {size: [] for size in sizes}
        for _ in range(rounds):
            for size in sizes:
                with tempfile.TemporaryDirectory() as folder:
                    if shutil.disk_usage(folder).free < (12 << 30 if unit == "MiB" and size > 512 else 4 << 30):
                        continue
                    seconds[size].append(measure(size, Path(folder)))
        measured = [size for size in sizes if len(seconds[size]) == rounds]
        reference, largest = measured[-2], measured[-1]
        first = measured[0]
        bends = []
        for number in range(rounds):
            fixed = seconds[first][number]
            each = [(seconds[size][number] - fixed) / (size - first) for size in (reference, largest)]
            bends.append(each[1] / each[0])
        rows.append(row(f"cost of one more {unit} at {largest:,}: {name}", f"at {reference:,}", bends, budget=BUDGET))
        figures[name] = {str(size): [round(value, 4) for value in seconds[size]] for size in measured}
    print(json.dumps({"bench": "growth", "rounds": rounds, "cpu_seconds": figures, "rows": rows}))
    return 0 if all(item["met"] for item in rows) else 1


def _study(
    folder: Path, orders: Sequence[tuple[str, ...]], repeat: int, engine: MadeUp, **changes: Any
) -> tuple[float, float]:
    """(CPU seconds of the whole line, those of making its trials up)."""
    spec = Spec(target=TARGET, workload_digest="", subjects=orders[0], orders=tuple(orders), python="x", cwd="/")
    made = [0.0]
    inner = engine.made

    def timed(trial: Trial, place: Path) -> Any:
        start = time.process_time()
        found = inner(trial, place)
        made[0] += time.process_time() - start
        return found

    engine.made = timed
    start = time.process_time()
    with RunWriter(folder / "run", spec) as writer:
        request = Request(
            target=TARGET,
            subjects=orders[0],
            subjects_from="",
            orders=tuple(orders),
            plan="",
            repeat=repeat,
            max_repeat=repeat,
            observer=False,
            blame=False,
            **changes,
        )
        study = run(request, Runner(writer, engine), lambda _: Tolerance())  # type: ignore[arg-type]
        writer.finish(study)
    return time.process_time() - start, made[0]


def _trials(count: int, folder: Path) -> float:
    engine = MadeUp(folder / "scratch", outputs=3, nbytes=1024, differs=lambda _: False)
    total, made = _study(folder, ORDERS[:1] if count < 4 else ORDERS[: count // 2], 1 if count < 4 else 2, engine)
    return total - made


def _differing(count: int, folder: Path) -> float:
    engine = MadeUp(folder / "scratch", outputs=3, nbytes=1024, differs=lambda trial: trial.order[0] in "abc")
    total, made = _study(folder, [ORDERS[0], *ORDERS[360 : 359 + count // 5]], 5, engine)
    return total - made


def _outputs(count: int, folder: Path) -> float:
    engine = MadeUp(folder / "scratch", outputs=count, nbytes=256, differs=lambda trial: trial.order[0] == "b")
    total, made = _study(folder, [ORDERS[0], ORDERS[120]], 2, engine)
    return total - made


def _bytes(mib: int, folder: Path) -> float:
    """Digesting two files and comparing them, as a study does with an output that differs."""
    paths = [folder / "a.safetensors", folder / "b.safetensors"]
    for number, path in enumerate(paths):
        write_array(path, mib << 20, 0, other=number == 1)
    start = time.process_time()
    if digest_file(paths[0]) == digest_file(paths[1]):
        raise SystemExit("two arrays that differ have one digest")
    found = compare(Source.from_object(paths[0]), Source.from_object(paths[1]), Tolerance())
    seconds = time.process_time() - start
    if found.differing != 1:
        raise SystemExit(f"one element differs, but {found.differing} were found")
    return seconds


if __name__ == "__main__":
    sys.exit(main())

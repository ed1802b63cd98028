"""The store at scale: what a night of studies costs to write, to keep, and to look through; prints one JSON line.

Two parts. *Real size*: a few studies whose records are as large as those of torch, numpy and cupy (snapshots and
events), written with every fsync, for bytes and seconds a record. *Many*: so many small records over so many studies,
through the same writer without fsync (a million of them would only measure the disk), to see whether the cost of one
more record, of listing and of finding one study grows with how many there are. Outputs are drawn: within a study all
trials of an order agree, and a share of outputs is new in every study; what could be shared across studies is counted.

    python -m tests.benchmarks.bench_store --records 1000000 --folder /a/large/disk
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from reprocheck.model import Event, Noise, Output, Record, Snapshot, Study, Trial
from reprocheck.store import run as store
from reprocheck.store.run import Run, RunWriter, Spec, runs_in
from tests.benchmarks.figures import row
from tests.benchmarks.made_up import TARGET

BUDGET = {"growth": 1.5, "list": 3.0}
"""One more record at the end over one at the beginning; listing, in milliseconds a study."""
ORDERS = (("a", "b"), ("b", "a"))
OUTPUTS = 10
NEW = 0.2
"""Share of a study's outputs that no other study of the night has."""


def main() -> int:
    """Write, read, count; 1 when a budget is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=50_000, help="records of the many [default: 50000]")
    parser.add_argument("--trials", type=int, default=24, help="trials of a study [default: 24]")
    parser.add_argument("--real", type=int, default=10, help="studies of real size [default: 10]")
    parser.add_argument("--folder", type=Path, help="where to work [default: a temporary folder]")
    parser.add_argument("--quick", action="store_true", help="5000 records, 2 studies of real size")
    arguments = parser.parse_args()
    records, real = (5000, 2) if arguments.quick else (arguments.records, arguments.real)
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = Path(name)
        needed = records * 9000 + (2 << 30)  # a block each for a record, its share of the folder's other files
        if shutil.disk_usage(folder).free < needed or os.statvfs(folder).f_favail < 2 * records:
            print(
                json.dumps({"bench": "store", "skipped": f"less than {needed >> 30} GiB or {2 * records} files free"})
            )
            return 5
        sized = _real(folder / "real", real, arguments.trials)
        many = _many(folder / "many", records, arguments.trials)
    per_study = arguments.trials * sized["record_bytes"]
    night = {
        "studies": 10_000,
        "trials": 10_000 * arguments.trials,
        "records_gib": round(10_000 * per_study / 2**30, 1),
        "records_compressed_gib": round(10_000 * per_study / sized["compression"] / 2**30, 1),
        "writing_hours": round(10_000 * arguments.trials * sized["ms_per_record"] / 3.6e6, 2),
        "outputs_kept_of_left": round(many["kept_within_studies"], 3),
        "outputs_kept_across_studies": round(many["kept_across_studies"], 3),
    }
    rows = [
        row("one more record, last tenth of the many", "first tenth", many["growth"], budget=BUDGET["growth"]),
        row("listing a study", "", many["list_ms"], budget=BUDGET["list"], unit="ms"),
        row("a record of real size", "", [sized["record_bytes"] / 1024], unit="KiB"),
        row("writing one, fsync included", "", sized["ms"], unit="ms"),
        row("outputs kept of those left", "", [many["kept_within_studies"]]),
    ]
    print(json.dumps({"bench": "store", "records": records, "real": sized, "many": many, "night": night, "rows": rows}))
    return 0 if all(item["met"] is not False for item in rows) else 1


def _real(root: Path, studies: int, trials: int) -> dict[str, Any]:
    """Bytes and milliseconds of records as a study of torch, numpy and cupy leaves them."""
    ms, sizes, packed = [], [], []
    for number in range(studies):
        with RunWriter(root / f"run{number}", _spec()) as writer:
            for trial in _trials(trials):
                record = _record(trial, keys=240, events=370)
                start = time.perf_counter()
                writer.add(record)
                ms.append((time.perf_counter() - start) * 1e3)
            for path in (writer.folder / "records").iterdir():
                data = path.read_bytes()
                sizes.append(len(data))
                packed.append(len(zlib.compress(data, 1)))
    return {
        "record_bytes": round(statistics.mean(sizes)),
        "compression": round(sum(sizes) / sum(packed), 2),
        "ms_per_record": round(statistics.mean(ms), 3),
        "ms": [round(value, 3) for value in statistics.quantiles(ms, n=20)],
    }


def _many(root: Path, records: int, trials: int) -> dict[str, Any]:
    """Many studies of small records: seconds a record over time, listing, and how much of the outputs is kept."""
    rng = random.Random(20261201)
    known = [_digest(rng) for _ in range(200)]
    times: list[float] = []
    left = within = 0
    across: set[str] = set()
    studies = max(1, records // trials)
    with _without_fsync():
        for number in range(studies):
            pool = [
                f"sha256:{rng.getrandbits(256):064x}" if rng.random() < NEW else rng.choice(known)
                for _ in range(2 * OUTPUTS)
            ]
            kept: set[str] = set()
            start = time.process_time()
            with RunWriter(root / f"{number:07d}", _spec()) as writer:
                for trial in _trials(trials):
                    digests = (
                        pool[:OUTPUTS] if trial.order == ORDERS[0] else pool[OUTPUTS // 2 : OUTPUTS // 2 + OUTPUTS]
                    )
                    writer.add(_record(trial, digests=digests))
                    left += OUTPUTS
                    kept.update(digests)
                writer.finish(_study())
            times.append(time.process_time() - start)
            within += len(kept)
            across |= kept
    tenth = max(1, studies // 10)
    # What is left over after ten parts is too few studies to tell anything.
    parts = [statistics.median(times[part * tenth : (part + 1) * tenth]) for part in range(min(10, studies))]
    first = parts[0] if len(parts) > 1 else times[0]
    listing = []
    for _ in range(3):
        start = time.perf_counter()
        found = runs_in(root)
        scanned = (time.perf_counter() - start) / len(found)
        start = time.perf_counter()
        headlines = [Run(path).study().headline for path in found[:1000]]
        listing.append((scanned + (time.perf_counter() - start) / len(headlines)) * 1e3)
    start = time.perf_counter()
    whole = Run(found[len(found) // 2]).records()
    one = (time.perf_counter() - start) * 1e3
    if len(whole) != trials or len(found) != studies:
        raise SystemExit(f"{len(found)} studies of {studies} were found, {len(whole)} records of {trials}")
    return {
        "studies": studies,
        "cpu_ms_per_record": [round(part / trials * 1e3, 3) for part in parts],
        "growth": [round(part / first, 3) for part in parts[-2:]],
        "list_ms": [round(value, 3) for value in listing],
        "one_study_ms": round(one, 2),
        "files": studies * (trials + 6),
        "kept_within_studies": within / left,
        "kept_across_studies": len(across) / left,
    }


def _digest(rng: random.Random) -> str:
    return f"sha256:{rng.getrandbits(256):064x}"


class _without_fsync:  # noqa: N801 - a context manager, used like a function
    """The writer's fsync does nothing."""

    def __enter__(self) -> None:
        self._fsync: Callable[[int], None] = os.fsync
        store.os.fsync = lambda _: None  # type: ignore[attr-defined]

    def __exit__(self, *_: object) -> None:
        store.os.fsync = self._fsync  # type: ignore[attr-defined]


def _trials(count: int) -> list[Trial]:
    return [Trial(order=ORDERS[number % 2], repeat=number // 2, capture=number % 6 < 4) for number in range(count)]


def _record(trial: Trial, *, keys: int = 0, events: int = 0, digests: list[str] | None = None) -> Record:
    """Large where keys and events are many, as bare trials never are."""
    rng = random.Random(f"{trial.order} {trial.repeat}")
    capture = trial.capture and keys > 0
    return Record(
        trial=trial,
        effective_order=trial.order,
        ok=True,
        seconds=1.0 + rng.random(),
        outputs=tuple(
            Output(name=f"out{number}", dtype="float32", shape=(1000,), nbytes=4000, digest=digest)
            for number, digest in enumerate(digests or ())
        ),
        snapshots=tuple(
            Snapshot(
                phase=phase,
                at=rng.random(),
                ms=rng.random(),
                kinds={
                    kind: {
                        f"{kind}.setting.{number}": f"/site-packages/lib{number}.so {number:x}"
                        for number in range(keys)
                    }
                    for kind in ("libraries", "process")
                },
            )
            for phase in (("t0", "t1:a", "t1:b", "t2", "t3") if capture else ())
        ),
        events=tuple(
            Event(
                kind="import",
                at=rng.random(),
                phase="t1:a",
                name=f"torch.nn.modules.module{number}",
                value=f"/home/user/.venv/lib/python3.11/site-packages/torch/nn/modules/module{number}.py",
                file="/home/user/.venv/lib/python3.11/site-packages/torch/nn/__init__.py",
                line=number,
                module="torch.nn",
            )
            for number in range(events if capture else 0)
        ),
    )


def _spec() -> Spec:
    return Spec(target=TARGET, workload_digest="", subjects=("a", "b"), orders=ORDERS, python="/python", cwd="/")


def _study() -> Study:
    return msgspec.structs.replace(_STUDY)


_STUDY = Study(
    reprocheck_version="0",
    verdict="identical",
    exit_code=0,
    headline="identical: 10 outputs equal bit for bit in 2 orders",
    reason="",
    workload=TARGET.text,
    target=TARGET,
    subjects=("a", "b"),
    subjects_from="",
    orders=(),
    plan="",
    groups=(),
    outputs=(),
    noise=Noise(p_value=None, repeats=3, trials=6),
)


if __name__ == "__main__":
    sys.exit(main())

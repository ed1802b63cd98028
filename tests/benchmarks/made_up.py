"""Trials that are made up in no time, so that what is measured is what reprocheck itself does with them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from reprocheck.engine.phases import RawOutput, RawRecord
from reprocheck.model import Event, Record, Snapshot, Target, Trial

__all__ = ["TARGET", "MadeUp", "write_array"]

TARGET = Target(text="work.py::run", kind="function", path="/work.py", name="run")


class MadeUp:
    """An engine whose trials leave so many arrays of so many bytes; in some orders each of them differs in one bit."""

    def __init__(self, scratch: Path, *, outputs: int, nbytes: int, differs: Callable[[Trial], bool]) -> None:
        """`scratch` should be on the store's file system."""
        self._scratch = scratch
        self._outputs = outputs
        self._nbytes = nbytes
        self._differs = differs
        self._number = 0
        self.made: Callable[[Trial, Path], RawRecord] = self._record

    def run(self, trials: Iterable[Trial], keep: Callable[[RawRecord, Path], Any]) -> Iterator[Any]:
        """As an engine does."""
        for trial in trials:
            self._number += 1
            folder = self._scratch / f"{self._number:06d}"
            (folder / "arrays").mkdir(parents=True)
            yield keep(self.made(trial, folder / "arrays"), folder)
            shutil.rmtree(folder)

    def _record(self, trial: Trial, folder: Path) -> RawRecord:
        outputs = []
        for number in range(self._outputs):
            file = f"{number:06d}.safetensors"
            count = write_array(folder / file, self._nbytes, number, other=self._differs(trial))
            outputs.append(
                RawOutput(name=f"out{number}", dtype="float32", shape=(count,), nbytes=4 * count, file=file, python="x")
            )
        record = Record(
            trial=trial,
            effective_order=trial.order,
            ok=True,
            seconds=1.0,
            snapshots=tuple(_SNAPSHOTS) if trial.capture else (),
            events=tuple(_EVENTS) if trial.capture else (),
        )
        return RawRecord(record=record, outputs=tuple(outputs))


def write_array(path: Path, nbytes: int, seed: int, *, other: bool = False) -> int:
    """A stored output of so many bytes; returns its number of elements."""
    count = max(1, nbytes // 4)
    header = json.dumps({"value": {"dtype": "F32", "shape": [count], "data_offsets": [0, 4 * count]}}).encode()
    header += b" " * (-len(header) % 8)
    with path.open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        step = 1 << 22
        for start in range(0, count, step):
            part = np.arange(start + seed, start + seed + min(step, count - start), dtype=np.float32)
            if other and start == 0:
                part[:1].view(np.uint32)[0] ^= 1
            part.tofile(file)
    return count


# About what a captured trial of torch and numpy leaves: four snapshots of some 80 keys, 200 events.
_SNAPSHOTS = [
    Snapshot(
        phase=phase,
        at=0.1,
        ms=1.0,
        kinds={
            kind: {f"key{number}": f"value {number}" for number in range(40)} for kind in ("environ", "fp", "process")
        },
    )
    for phase in ("t0", "t1:a", "t2", "t3")
]
_EVENTS = [
    Event(kind="import", at=0.1, phase="t1:a", name=f"module{number}", file="/site/module.py", line=number)
    for number in range(200)
]

"""Running trials into a run folder: what the journal has is not run again, what ends is kept at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import msgspec

from reprocheck.engine.forks import ForkEngine
from reprocheck.engine.local import LocalEngine
from reprocheck.engine.phases import RawRecord
from reprocheck.model import Output, Record, Trial
from reprocheck.store.objects import TRACE
from reprocheck.store.run import RunWriter, storage_errors

__all__ = ["Progress", "Runner", "Silent"]


class Progress(Protocol):
    """What a front end is told while trials run."""

    def expect(self, trials: int) -> None:
        """So many trials more are planned."""

    def ended(self, record: Record) -> None:
        """A trial ended (or was found in the journal)."""

    def note(self, text: str) -> None:
        """Something worth a line."""


class Silent:
    """Progress for callers that show none."""

    def expect(self, trials: int) -> None:
        """Say nothing."""

    def ended(self, record: Record) -> None:
        """Say nothing."""

    def note(self, text: str) -> None:
        """Say nothing."""


@dataclass(frozen=True, slots=True)
class Runner:
    """An engine, the run folder its trials go to, and who is told."""

    writer: RunWriter
    engine: LocalEngine | ForkEngine
    progress: Progress = field(default_factory=Silent)

    def run(self, trials: Sequence[Trial]) -> list[Record]:
        """The records of `trials`, in their order; only those the journal does not have yet are run.

        Raises `StoreError` when the folder can't be written and `HarnessError` when a worker can't start; what ended
        before that is kept.
        """
        found = [self.writer.done(trial) for trial in trials]
        todo = [trial for trial, record in zip(trials, found, strict=True) if record is None]
        self.progress.expect(len(trials))
        for record in found:
            if record is not None:
                self.progress.ended(record)
        for record in self.engine.run(todo, self._keep):
            self.writer.add(record)
            self.progress.ended(record)
        done = [self.writer.done(trial) for trial in trials]
        return [record for record in done if record is not None]

    def _keep(self, raw: RawRecord, folder: Path) -> Record:
        """Move what the trial wrote into the store, before its folder goes."""
        objects = self.writer.objects
        with storage_errors(self.writer.folder):
            outputs = tuple(
                Output(
                    name=item.name,
                    dtype=item.dtype,
                    shape=item.shape,
                    nbytes=item.nbytes,
                    digest=objects.take(folder / "arrays" / item.file),
                    python=item.python,
                )
                for item in raw.outputs
            )
            trace = folder / "trace.jsonl"
            digest = objects.take(trace, TRACE) if trace.exists() else None
        return msgspec.structs.replace(raw.record, outputs=outputs, trace=digest)

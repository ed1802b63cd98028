"""Running trials into a run folder: what the journal has is not run again, what ends is kept at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import msgspec

from reprocheck.engine.base import Engine
from reprocheck.engine.machine import refuse_unlike
from reprocheck.engine.phases import RawRecord
from reprocheck.engine.trial import Job
from reprocheck.model import Machine, Record, Setting, Trial
from reprocheck.store.objects import TRACE
from reprocheck.store.run import RunWriter, storage_errors, trial_key

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
    """An engine, the run folder its trials go to, and who is told.

    All its trials are of one level of the varied settings. Who asks need not know: trials and records come and go
    without it, and only the engine and the store see it.
    """

    writer: RunWriter
    engine: Engine
    progress: Progress = field(default_factory=Silent)
    mixed: bool = False
    """Whether trials on machines of different kinds may stand in one run."""
    level: Setting = field(default_factory=dict)
    told: set[str] = field(default_factory=set)
    """Keys of the trials that progress knows of: each is counted once, though the journal may be asked again."""

    def at(self, level: Setting) -> Runner:
        """This runner for trials of another level."""
        return replace(self, level=level)

    @property
    def job(self) -> Job:
        """What all its trials have in common, the level's variables included."""
        job = self.engine.job
        return msgspec.structs.replace(job, env={**job.env, **self.level})

    def done(self, trial: Trial) -> Record | None:
        """The record of `trial` if the journal has it."""
        record = self.writer.done(self._levelled(trial))
        return None if record is None else msgspec.structs.replace(record, trial=trial)

    def run(self, trials: Sequence[Trial]) -> list[Record]:
        """The records of `trials`, in their order; only those the journal does not have yet are run.

        Raises `StoreError` when the folder can't be written and `HarnessError` when a worker can't start; what ended
        before that is kept.
        """
        self.ahead([(self.level, trial) for trial in trials])
        done = [self.done(trial) for trial in trials]
        return [record for record in done if record is not None]

    def ahead(self, trials: Sequence[tuple[Setting, Trial]]) -> None:
        """Run trials of several levels in the order given, for whoever asks for them later. Raises as `run`."""
        levelled = [msgspec.structs.replace(trial, level=level) for level, trial in trials]
        found = [self.writer.done(trial) for trial in levelled]
        todo = [trial for trial, record in zip(levelled, found, strict=True) if record is None]
        known = [record for record in found if record is not None and trial_key(record.trial) not in self.told]
        self.told.update(map(trial_key, levelled))
        self.progress.expect(len(known) + len(todo))
        for record in known:
            self.progress.ended(record)
        for record in self.engine.run(todo, self._keep):
            if not self.mixed and (before := self._machine()) is not None:
                refuse_unlike(before, record)
            self.writer.add(record)
            self.progress.ended(record)

    def _levelled(self, trial: Trial) -> Trial:
        return msgspec.structs.replace(trial, level=self.level)

    def _machine(self) -> Machine | None:
        """Where the run's first trial ran."""
        return next((record.machine for record in self.writer.records() if record.machine is not None), None)

    def _keep(self, raw: RawRecord, folder: Path) -> Record:
        """Move what the trial wrote into the store, before its folder goes."""
        objects = self.writer.objects
        with storage_errors(self.writer.folder):
            record = raw.with_outputs(lambda file: objects.take(folder / "arrays" / file))
            trace = folder / "trace.jsonl"
            digest = objects.take(trace, TRACE) if trace.exists() else None
        return msgspec.structs.replace(record, trace=digest)

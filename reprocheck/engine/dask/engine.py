"""The engine that runs trials on a Dask cluster: Slurm, Kubernetes, or a few machines with `dask worker`.

Dask moves assignments and answers, nothing else: the environment, the time-out and the process are those of the local
engine. A trial whose Dask worker vanished is run again, which is no repeat and no difference; a trial that crashed is
a record and never run again.
"""

from __future__ import annotations

import contextlib
import queue
import secrets
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

import msgspec
from distributed import CancelledError, Client, Future
from distributed.scheduler import KilledWorker

from reprocheck.config.options import Options
from reprocheck.engine.dask import task
from reprocheck.engine.dask.cluster import connected
from reprocheck.engine.dask.fleet import Fleet
from reprocheck.engine.dask.parcels import TRACE, Answer, Assignment, premises_for, trusted
from reprocheck.engine.dask.places import Blocks, Place
from reprocheck.engine.gate import visible_gpus
from reprocheck.engine.local import default_jobs
from reprocheck.engine.phases import RawRecord
from reprocheck.engine.trial import Job
from reprocheck.errors import HarnessError, UsageError
from reprocheck.model import Machine, Struct, Trial

__all__ = ["DaskEngine", "dask_engine"]

T = TypeVar("T")

LOOK_S = 1.0
"""Between two looks at which Dask workers are there."""
RETURN_S = 15.0
"""How long a machine may be away (its Dask worker restarts) before its trials go to another one."""
ATTEMPTS = 4
"""How often a trial may be started before losing its Dask worker is an error."""
AHEAD = 2
"""Trials sent for each that can run: a Dask worker that ends one begins the next without asking."""
KILL_S = 10.0
"""How long to wait, when interrupted, until the far trials are killed."""


class _Flight(Struct, frozen=True, kw_only=True):
    """A trial under way."""

    trial: Trial
    place: Place
    attempt: int


@contextlib.contextmanager
def dask_engine(
    job: Job,
    scratch: Path,
    options: Options,
    *,
    bound: Mapping[int, Machine],
    note: Callable[[str], None],
) -> Iterator[DaskEngine]:
    """The engine for a study, connected; `bound` says where earlier trials of the run were made, by repeat number.

    Raises `UsageError` when the cluster's machines can't run the study as it was asked (one sentence names the machine
    and what it lacks), and `HarnessError` when there is no cluster.
    """
    jobs = options.jobs or default_jobs()
    devices = len(visible_gpus(job.environment)) if options.scheduler is None else 0
    with connected(options.scheduler, scratch, jobs=jobs, gpus=devices, note=note) as client:
        engine = DaskEngine(job, scratch, options, client, bound=bound, note=note)
        try:
            yield engine
        finally:
            engine.close()


class DaskEngine:
    """Runs trials on the workers of a Dask cluster."""

    def __init__(
        self,
        job: Job,
        scratch: Path,
        options: Options,
        client: Client,
        *,
        bound: Mapping[int, Machine],
        note: Callable[[str], None],
    ) -> None:
        """As `dask_engine`; looks at every Dask worker before anything is run."""
        self.job = job
        self._premises = premises_for(job, own=options.scheduler is None)
        self._study = f"reprocheck-{secrets.token_hex(6)}"
        self._scratch = scratch
        self._shared = Path(options.shared) / self._study if options.shared else scratch
        self._options = options
        self._client = client
        self._note = note
        self._blocks = Blocks(job.target.text, bound)
        self._away: dict[int, float] = {}
        self._number = 0
        scratch.mkdir(parents=True, exist_ok=True)
        try:
            self._shared.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"--shared `{options.shared}` can't be written: {error.strerror}; name another") from error
        self._fleet = Fleet(client, self._premises, options, self._shared, note)

    def run(self, trials: Iterable[Trial], keep: Callable[[RawRecord, Path], T]) -> Iterator[T]:
        """As `Engine.run`; `keep` is called in this thread."""
        waiting = [(trial, 1) for trial in trials]
        flying: dict[Future, _Flight] = {}
        ended: queue.SimpleQueue[Future] = queue.SimpleQueue()
        try:
            while waiting or flying:
                if time.monotonic() - self._fleet.looked > LOOK_S:
                    self._fleet.look()
                    waiting += self._taken_back(flying)
                    self._move(waiting)
                waiting = self._send(waiting, flying, ended)
                try:
                    future = ended.get(timeout=LOOK_S)
                except queue.Empty:
                    continue
                # Not there: it was given up, and answered all the same.
                flight = flying.pop(future, None)
                if flight is None:
                    continue
                answer, files = self._answer(future, flight)
                if answer.lost:
                    waiting.append((flight.trial, self._another(flight)))
                    continue
                if answer.fault is not None:
                    raise UsageError(answer.fault) if answer.usage else HarnessError(answer.fault)
                yield self._kept(answer, files, flight, keep)
        finally:
            self._abort(flying)

    def close(self) -> None:
        """Leave nothing behind on the machines."""
        # A cluster that is gone has nothing left to be asked.
        with contextlib.suppress(Exception):
            self._client.run(task.finish, workers=self._fleet.there(), on_error="ignore")
        if self._shared != self._scratch:
            shutil.rmtree(self._shared, ignore_errors=True)

    def _send(
        self, waiting: list[tuple[Trial, int]], flying: dict[Future, _Flight], ended: queue.SimpleQueue[Future]
    ) -> list[tuple[Trial, int]]:
        """Send what there is room for; returns the rest."""
        rest: list[tuple[Trial, int]] = []
        room = {place.machine: AHEAD * place.capacity for place in self._fleet.places}
        bound = self._options.jobs if self._options.scheduler else None
        total = (bound or sum(room.values())) - len(flying)
        for flight in flying.values():
            room[flight.place.machine] = room.get(flight.place.machine, 0) - 1
        for index, (trial, attempt) in enumerate(waiting):
            if total < 1:
                return rest + waiting[index:]
            place = self._blocks.place(trial.repeat, self._fleet.places)
            if place is None or room[place.machine] < 1:
                rest.append((trial, attempt))
                continue
            room[place.machine] -= 1
            total -= 1
            future = self._submit(trial, place)
            flying[future] = _Flight(trial=trial, place=place, attempt=attempt)
            future.add_done_callback(ended.put)
        return rest

    def _submit(self, trial: Trial, place: Place) -> Future:
        self._number += 1
        assignment = Assignment(
            premises=self._premises,
            study=self._study,
            trial=trial,
            parent=str(self._shared) if place.shared else None,
        )
        return self._client.submit(
            task.run,
            msgspec.json.encode(assignment),
            key=f"{self._study}-{self._number:06d}",
            workers=list(place.addresses),
            allow_other_workers=False,
            resources={"GPU": self._fleet.gpus} if self._fleet.gpus else None,
            retries=0,
            pure=False,
        )

    def _answer(self, future: Future, flight: _Flight) -> tuple[Answer, dict[str, bytes]]:
        try:
            data, files = future.result()
        except KilledWorker:
            return Answer(lost=True), {}
        except CancelledError as error:
            raise HarnessError(
                "the Dask scheduler is gone; what is done is kept: continue with --resume when it is back"
            ) from error
        except Exception as error:
            raise HarnessError(
                f"{_named(flight.trial)} came to no end in Dask "
                f"({type(error).__name__}: {str(error).partition(chr(10))[0]}); what is done is kept: --resume"
            ) from error
        return msgspec.json.decode(data, type=Answer), files

    def _taken_back(self, flying: dict[Future, _Flight]) -> list[tuple[Trial, int]]:
        """Trials whose Dask workers are all gone: Dask would keep them for addresses that never return."""
        there = {address for place in self._fleet.places for address in place.addresses}
        again = []
        for future, flight in list(flying.items()):
            if not there & set(flight.place.addresses) and not future.done():
                del flying[future]
                self._client.cancel([future], force=True)
                again.append((flight.trial, self._another(flight)))
        return again

    def _another(self, flight: _Flight) -> int:
        """The number of a trial's next attempt. Raises `HarnessError` when it had enough."""
        if flight.attempt >= ATTEMPTS:
            raise HarnessError(
                f"{_named(flight.trial)} lost its Dask worker {flight.attempt} times; see the logs of the workers "
                "(memory?), then continue with --resume"
            )
        self._note(f"a Dask worker on {flight.place.machine.host} is gone: {_named(flight.trial)} is run again")
        return flight.attempt + 1

    def _move(self, waiting: Iterable[tuple[Trial, int]]) -> None:
        """Bind blocks anew whose machine does not come back."""
        now = time.monotonic()
        for repeat in {trial.repeat for trial, _ in waiting}:
            if self._blocks.place(repeat, self._fleet.places) is not None:
                self._away.pop(repeat, None)
            elif self._fleet.places and now - self._away.setdefault(repeat, now) > RETURN_S:
                machine = self._blocks.release(repeat)
                if machine is not None:
                    self._note(f"{machine.host} stays away: the rest of repeat {repeat} runs elsewhere")

    def _kept(
        self, answer: Answer, files: Mapping[str, bytes], flight: _Flight, keep: Callable[[RawRecord, Path], T]
    ) -> T:
        """What `keep` makes of a trial's files, once they are in a folder of ours."""
        raw, name = trusted(answer, files, flight.trial)
        folder = self._scratch / name
        try:
            if not flight.place.shared:
                (folder / "arrays").mkdir(parents=True)
                for file, data in files.items():
                    (folder / file if file == TRACE else folder / "arrays" / file).write_bytes(data)
            elif self._shared != self._scratch:
                shutil.move(self._shared / name, folder)
            return keep(raw, folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _abort(self, flying: dict[Future, _Flight]) -> None:
        """Cancel what is under way, and wait until the far processes are killed."""
        if not flying:
            return
        # A scheduler that is gone can't be asked; its workers end, and their reapers kill the trials.
        with contextlib.suppress(Exception):
            self._client.cancel(list(flying), force=True)
            flying.clear()
            deadline = time.monotonic() + KILL_S
            while time.monotonic() < deadline:
                left = self._client.run(task.active, self._study, workers=self._fleet.there(), on_error="ignore")
                if not any(left.values()):
                    return
                time.sleep(0.05)


def _named(trial: Trial) -> str:
    return f"the trial {','.join(trial.order) or '(no subjects)'} (repeat {trial.repeat})"

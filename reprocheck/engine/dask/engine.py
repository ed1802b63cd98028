"""The engine that runs trials on a Dask cluster: Slurm, Kubernetes, or a few machines with `dask worker`.

Dask moves assignments and answers, nothing else: the environment, the time-out and the process are those of the local
engine. A trial whose Dask worker vanished is run again, which is no repeat and no difference; a trial that crashed is
a record and never run again.
"""

from __future__ import annotations

import contextlib
import queue
import re
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
from reprocheck.engine.dask.cluster import connected, refuse_strangers, workers_of
from reprocheck.engine.dask.parcels import Answer, Assignment, Inspection, premises_for
from reprocheck.engine.dask.places import Blocks, Place, WorkerInfo, needed_gpus, places_of, refuse_mixed, selected
from reprocheck.engine.gate import visible_gpus
from reprocheck.engine.local import default_jobs
from reprocheck.engine.machine import alike, named
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
GONE_S = 60.0
"""How long there may be no Dask worker at all."""
ATTEMPTS = 4
"""How often a trial may be started before losing its Dask worker is an error."""
KILL_S = 10.0
"""How long to wait, when interrupted, until the far trials are killed."""

_FOLDER = re.compile(r"dask-[0-9a-f]{16}")
_TRACE = "trace.jsonl"
_FILE = re.compile(r"\d{6}\.safetensors|trace\.jsonl")


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
    with connected(options.scheduler, jobs=jobs, gpus=devices, note=note) as client:
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
        self._inspected: dict[str, Inspection] = {}
        self._declined: set[str] = set()
        self._places: tuple[Place, ...] = ()
        self._away: dict[int, float] = {}
        self._looked = self._seen = time.monotonic()
        self._number = 0
        scratch.mkdir(parents=True, exist_ok=True)
        try:
            self._shared.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"--shared `{options.shared}` can't be written: {error.strerror}; name another") from error
        self._gpus = self._begin()

    def run(self, trials: Iterable[Trial], keep: Callable[[RawRecord, Path], T]) -> Iterator[T]:
        """As `Engine.run`; `keep` is called in this thread."""
        waiting = [(trial, 1) for trial in trials]
        flying: dict[Future, _Flight] = {}
        ended: queue.SimpleQueue[Future] = queue.SimpleQueue()
        try:
            while waiting or flying:
                if time.monotonic() - self._looked > LOOK_S:
                    self._look()
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
            self._client.run(task.finish, workers=self._there(), on_error="ignore")
        if self._shared != self._scratch:
            shutil.rmtree(self._shared, ignore_errors=True)

    def _begin(self) -> int:
        """Look at the Dask workers asked for and refuse those that can't do; returns how many devices a trial takes."""
        workers = selected(workers_of(self._client), self._options.workers)
        gpus = needed_gpus(workers, self._options.gpus)
        refuse_strangers(self._client, [worker.address for worker in workers])
        for address, found in self._inspect([worker.address for worker in workers]).items():
            if found.problem:
                raise UsageError(found.problem)
            if self._options.shared and not found.shared:
                raise UsageError(
                    f"--shared `{self._options.shared}` isn't seen on {found.machine.host}, or can't be written there; "
                    "name a folder that all machines have in common"
                )
            self._inspected[address] = found
        self._places = self._places_of(workers, gpus)
        if self._options.machines != "any":
            refuse_mixed(self._places)
        return gpus

    def _look(self) -> None:
        """Learn which Dask workers there are now; newcomers are used where they fit, and never an error."""
        there = workers_of(self._client)
        self._looked = time.monotonic()
        new = [w.address for w in there if w.address not in self._inspected and w.address not in self._declined]
        if new:
            self._take_in(new)
        self._places = self._places_of(there, self._gpus)
        if self._places:
            self._seen = self._looked
        elif self._looked - self._seen > GONE_S:
            raise HarnessError(
                f"there has been no Dask worker for {GONE_S:.0f} s; what is done is kept: start one and use --resume"
            )

    def _take_in(self, addresses: list[str]) -> None:
        known = [found.machine for found in self._inspected.values()]
        try:
            refuse_strangers(self._client, addresses)
            found = self._inspect(addresses)
        except UsageError as error:
            self._declined.update(addresses)
            self._note(f"left out: {error}")
            return
        for address, inspection in found.items():
            machine, problem = inspection.machine, inspection.problem
            if self._options.workers and machine not in known:
                self._declined.add(address)
                continue
            if not problem and self._options.machines != "any" and known and not alike(known[0], machine):
                problem = f"its machine differs ({named(known[0], machine)})"
            if not problem and self._options.shared and not inspection.shared:
                problem = f"it does not see `{self._options.shared}`"
            if problem:
                self._declined.add(address)
                self._note(f"the Dask worker {address} is left out: {problem}")
            else:
                self._inspected[address] = inspection

    def _places_of(self, workers: Iterable[WorkerInfo], gpus: int) -> tuple[Place, ...]:
        return places_of(
            [worker for worker in workers if worker.address in self._inspected],
            {address: found.machine for address, found in self._inspected.items()},
            {address: found.shared for address, found in self._inspected.items()},
            gpus,
        )

    def _inspect(self, addresses: list[str]) -> dict[str, Inspection]:
        """What the Dask workers say of their machines; those that went meanwhile are left out."""
        token = secrets.token_hex(16)
        seen = self._shared / f"seen-{token}"
        seen.write_text(token, "ascii")
        data = msgspec.json.encode(self._premises)
        try:
            answers = self._client.run(task.inspect, data, str(seen), token, workers=addresses, on_error="return")
        finally:
            seen.unlink()
        found = {}
        for address, answer in answers.items():
            if isinstance(answer, OSError):
                continue
            if isinstance(answer, Exception):
                raise HarnessError(f"the Dask worker {address} could not be looked at: {answer}")
            found[address] = msgspec.json.decode(answer, type=Inspection)
        return found

    def _send(
        self, waiting: list[tuple[Trial, int]], flying: dict[Future, _Flight], ended: queue.SimpleQueue[Future]
    ) -> list[tuple[Trial, int]]:
        """Send what there is room for; returns the rest."""
        rest = []
        room = {place.machine: place.capacity for place in self._places}
        for flight in flying.values():
            room[flight.place.machine] = room.get(flight.place.machine, 0) - 1
        total = (self._options.jobs or sum(place.capacity for place in self._places)) - len(flying)
        for trial, attempt in waiting:
            place = self._blocks.place(trial.repeat, self._places) if total > 0 else None
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
            resources={"GPU": self._gpus} if self._gpus else None,
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
        there = {address for place in self._places for address in place.addresses}
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
            if self._blocks.place(repeat, self._places) is not None:
                self._away.pop(repeat, None)
            elif self._places and now - self._away.setdefault(repeat, now) > RETURN_S:
                machine = self._blocks.release(repeat)
                if machine is not None:
                    self._note(f"{machine.host} stays away: the rest of repeat {repeat} runs elsewhere")

    def _kept(
        self, answer: Answer, files: Mapping[str, bytes], flight: _Flight, keep: Callable[[RawRecord, Path], T]
    ) -> T:
        """What `keep` makes of a trial's files, once they are in a folder of ours."""
        raw, name = answer.raw, answer.folder or ""
        # The other side is not trusted with paths.
        if raw is None or not _FOLDER.fullmatch(name) or not all(_FILE.fullmatch(file) for file in files):
            raise HarnessError(f"the Dask worker on {flight.place.machine.host} gave an answer that makes no sense")
        if not all(_FILE.fullmatch(output.file) for output in raw.outputs):
            raise HarnessError(f"the Dask worker on {flight.place.machine.host} names files that can't be a trial's")
        raw = msgspec.structs.replace(raw, record=msgspec.structs.replace(raw.record, trial=flight.trial))
        folder = self._scratch / name
        try:
            if not flight.place.shared:
                (folder / "arrays").mkdir(parents=True)
                for file, data in files.items():
                    (folder / file if file == _TRACE else folder / "arrays" / file).write_bytes(data)
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
                left = self._client.run(task.active, self._study, workers=self._there(), on_error="ignore")
                if not any(left.values()):
                    return
                time.sleep(0.05)

    def _there(self) -> list[str]:
        """Our Dask workers as of now: asking one that went costs half a minute."""
        return [worker.address for worker in workers_of(self._client) if worker.address in self._inspected]


def _named(trial: Trial) -> str:
    return f"the trial {','.join(trial.order) or '(no subjects)'} (repeat {trial.repeat})"

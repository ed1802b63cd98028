"""The Dask workers of a study: which there are, what their machines are, and which may run its trials."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
from distributed import Client

from reprocheck.config.options import Options
from reprocheck.engine.dask import task
from reprocheck.engine.dask.cluster import refuse_strangers, workers_of
from reprocheck.engine.dask.parcels import Inspection, Premises
from reprocheck.engine.dask.places import Place, WorkerInfo, needed_gpus, places_of, refuse_mixed, selected
from reprocheck.engine.machine import alike, named
from reprocheck.errors import HarnessError, UsageError

__all__ = ["Fleet"]

GONE_S = 60.0
"""How long there may be no Dask worker at all."""

PAUSE_S = 10.0
"""After not having looked for so long, nothing is known of how long nobody has been there."""


class Fleet:
    """Looks at Dask workers before they are given trials, at first and whenever others join."""

    def __init__(
        self, client: Client, premises: Premises, options: Options, folder: Path, note: Callable[[str], None]
    ) -> None:
        """Look at the Dask workers asked for; `folder` is where trials work on machines that see it.

        Raises `UsageError` for those that can't run the study, and when not all their machines are alike.
        """
        self.places: tuple[Place, ...] = ()
        self.looked = self._seen = time.monotonic()
        self._client = client
        self._premises = premises
        self._options = options
        self._folder = folder
        self._note = note
        self._inspected: dict[str, Inspection] = {}
        self._declined: set[str] = set()
        self.gpus = self._begin()

    def there(self) -> list[str]:
        """Addresses of our Dask workers as of now: asking one that went costs half a minute."""
        return [worker.address for worker in workers_of(self._client) if worker.address in self._inspected]

    def look(self) -> None:
        """Learn which Dask workers there are now; newcomers are used where they fit, and never an error."""
        there = workers_of(self._client)
        before, self.looked = self.looked, time.monotonic()
        if self.looked - before > PAUSE_S:
            self._seen = self.looked  # nobody looked for long, between two batches of trials
        new = [w.address for w in there if w.address not in self._inspected and w.address not in self._declined]
        if new:
            self._take_in(new)
        self.places = self._places_of(there, self.gpus)
        if self.places:
            self._seen = self.looked
        elif self.looked - self._seen > GONE_S:
            raise HarnessError(
                f"there has been no Dask worker for {GONE_S:.0f} s; what is done is kept: start one and use --resume"
            )

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
        self.places = self._places_of(workers, gpus)
        if self._options.machines != "any":
            refuse_mixed(self.places)
        return gpus

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
        seen = self._folder / f"seen-{token}"
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

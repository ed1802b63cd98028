"""Which Dask workers a study may use, and which of their machines a trial goes to. Pure.

Trials with the same repeat number run on the same machine (a *block*): every order is then run as often on one machine
as any other order, and a machine can never be taken for an order.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence

from reprocheck.engine.machine import alike, named
from reprocheck.errors import UsageError
from reprocheck.model import Machine, Struct

__all__ = ["Blocks", "Place", "WorkerInfo", "needed_gpus", "places_of", "refuse_mixed", "selected"]

GPU = "GPU"
"""Name of the Dask resource that a device is."""


class WorkerInfo(Struct, frozen=True, kw_only=True):
    """A Dask worker as its scheduler knows it."""

    address: str
    name: str
    host: str
    threads: int
    gpus: int = 0
    """How many devices it offers, as the Dask resource `GPU`."""


class Place(Struct, frozen=True, kw_only=True):
    """One machine, and the Dask workers through which trials get there."""

    machine: Machine
    addresses: tuple[str, ...]
    capacity: int
    """Trials at a time."""
    shared: bool
    """Whether it sees the asking process's folder."""


def selected(workers: Sequence[WorkerInfo], wanted: Sequence[str]) -> tuple[WorkerInfo, ...]:
    """The Dask workers that `wanted` names by address, name or host; all of them when it is empty.

    Raises `UsageError` for a name that nobody has.
    """
    if not wanted:
        return tuple(workers)
    for name in wanted:
        if not any(name in _names(worker) for worker in workers):
            there = ", ".join(sorted(worker.address for worker in workers)) or "none"
            raise UsageError(f"the cluster has no Dask worker `{name}`; --workers takes addresses or hosts of: {there}")
    return tuple(worker for worker in workers if set(_names(worker)) & set(wanted))


def needed_gpus(workers: Sequence[WorkerInfo], asked: int | None) -> int:
    """How many devices a trial takes: as asked, otherwise one where every Dask worker offers some.

    Raises `UsageError` when no Dask worker has as many.
    """
    if asked is None:
        return 1 if workers and all(worker.gpus for worker in workers) else 0
    if asked and not any(worker.gpus >= asked for worker in workers):
        most = max((worker.gpus for worker in workers), default=0)
        raise UsageError(
            f"no Dask worker offers {asked} of the resource GPU (the most is {most}); "
            'start workers with --resources "GPU=1", or ask for less with --gpus'
        )
    return asked


def places_of(
    workers: Iterable[WorkerInfo], machines: Mapping[str, Machine], shared: Mapping[str, bool], gpus: int
) -> tuple[Place, ...]:
    """The machines of those workers that offer `gpus` devices, in an order that depends on nothing else.

    `machines` and `shared` go by the worker's address.
    """
    by_machine: dict[Machine, list[WorkerInfo]] = {}
    for worker in workers:
        if worker.gpus >= gpus:
            by_machine.setdefault(machines[worker.address], []).append(worker)
    found = [
        Place(
            machine=machine,
            addresses=tuple(sorted(worker.address for worker in group)),
            capacity=sum(min(worker.threads, worker.gpus // gpus) if gpus else worker.threads for worker in group),
            shared=all(shared[worker.address] for worker in group),
        )
        for machine, group in by_machine.items()
    ]
    return tuple(sorted(found, key=lambda place: (place.machine.host, place.machine.gpus, place.addresses)))


def refuse_mixed(places: Sequence[Place]) -> None:
    """Raise `UsageError` naming the differences when not all machines are alike."""
    for place in places[1:]:
        first = places[0]
        if not alike(first.machine, place.machine):
            raise UsageError(
                f"the Dask workers' machines differ ({named(first.machine, place.machine)}), which would be compared "
                f"along with the orders; keep to alike ones with --workers, e.g. --workers {first.addresses[0]}, "
                "or accept the machine as a factor with --machines any"
            )


class Blocks:
    """Which machine each repeat number belongs to; once said, it stays so while that machine is there."""

    def __init__(self, study: str, bound: Mapping[int, Machine]) -> None:
        """`study` spreads studies over a cluster; `bound` is what earlier trials of the run have settled."""
        self._offset = zlib.crc32(study.encode())
        self._bound = dict(bound)

    def place(self, repeat: int, places: Sequence[Place]) -> Place | None:
        """The place for trials with this repeat number; None while the machine it is bound to is away."""
        if not places:
            return None
        machine = self._bound.get(repeat)
        if machine is None:
            chosen = places[(self._offset + repeat) % len(places)]
            self._bound[repeat] = chosen.machine
            return chosen
        return next((place for place in places if place.machine == machine), None)

    def release(self, repeat: int) -> Machine | None:
        """Give up the machine of a repeat number, because it does not come back; returns it."""
        return self._bound.pop(repeat, None)


def _names(worker: WorkerInfo) -> tuple[str, ...]:
    bare = worker.address.rpartition("://")[2]
    return worker.address, bare, worker.name, worker.host

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given, strategies as st

from reprocheck.engine.dask.places import (
    Blocks,
    Place,
    WorkerInfo,
    needed_gpus,
    places_of,
    refuse_mixed,
    selected,
)
from reprocheck.errors import UsageError
from reprocheck.model import Machine

BASE = Machine(host="", cpu="EPYC", features="f", cores=8, kernel="6.1", libc="glibc 2.36", python="cpython 3.12.1")


def machine(host: str, **facts: object) -> Machine:
    return msgspec.structs.replace(BASE, host=host, **facts)


def worker(address: str, *, gpus: int = 0, threads: int = 2, name: str = "") -> WorkerInfo:
    host = address.rpartition("://")[2].partition(":")[0]
    return WorkerInfo(address=address, name=name or address, host=host, threads=threads, gpus=gpus)


def place(host: str, **facts: object) -> Place:
    return Place(machine=machine(host, **facts), addresses=(f"tcp://{host}:1",), capacity=2, shared=True)


THREE = (worker("tcp://a:1"), worker("tcp://a:2", name="second"), worker("tcp://b:1"))


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ([], ["tcp://a:1", "tcp://a:2", "tcp://b:1"]),
        (["tcp://a:1"], ["tcp://a:1"]),
        (["a:1"], ["tcp://a:1"]),
        (["second"], ["tcp://a:2"]),
        (["a"], ["tcp://a:1", "tcp://a:2"]),
        (["b", "second"], ["tcp://a:2", "tcp://b:1"]),
    ],
)
def test_workers_go_by_address_name_and_host(wanted: list[str], found: list[str]) -> None:
    assert [one.address for one in selected(THREE, wanted)] == found


def test_a_worker_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(UsageError, match=r"no Dask worker `c`; .*tcp://a:1, tcp://a:2, tcp://b:1"):
        selected(THREE, ["a", "c"])


def test_devices_are_taken_where_every_worker_offers_some() -> None:
    with_gpu, without = worker("tcp://a:1", gpus=2), worker("tcp://b:1")
    assert needed_gpus([with_gpu], None) == 1
    assert needed_gpus([with_gpu, without], None) == 0
    assert needed_gpus([], None) == 0
    assert needed_gpus([with_gpu, without], 2) == 2
    with pytest.raises(UsageError, match=r"offers 3 of the resource GPU \(the most is 2\)"):
        needed_gpus([with_gpu, without], 3)


def test_a_place_is_a_machine_with_all_its_workers() -> None:
    machines = {one.address: machine(one.host) for one in THREE}
    shared = {"tcp://a:1": True, "tcp://a:2": False, "tcp://b:1": True}
    first, second = places_of(THREE, machines, shared, 0)
    assert first.addresses == ("tcp://a:1", "tcp://a:2")
    assert first.capacity == 4
    assert not first.shared, "one that does not see the folder is enough"
    assert second.addresses == ("tcp://b:1",)
    assert second.shared


def test_devices_bound_how_much_a_place_takes() -> None:
    there = (worker("tcp://a:1", gpus=3, threads=8), worker("tcp://b:1", threads=8))
    machines = {one.address: machine(one.host) for one in there}
    (only,) = places_of(there, machines, dict.fromkeys(machines, True), 2)
    assert only.addresses == ("tcp://a:1",)
    assert only.capacity == 1


def test_two_workers_with_a_device_each_are_two_places() -> None:
    there = THREE[:2]
    machines = {"tcp://a:1": machine("a", gpus=("GPU-1",)), "tcp://a:2": machine("a", gpus=("GPU-2",))}
    assert len(places_of(there, machines, dict.fromkeys(machines, True), 0)) == 2


def test_machines_that_differ_are_refused_with_the_way_out() -> None:
    refuse_mixed([place("a"), place("b")])
    with pytest.raises(UsageError) as told:
        refuse_mixed([place("a"), place("b"), place("c", cpu="Xeon", cores=4)])
    assert str(told.value) == (
        "the Dask workers' machines differ (CPU: EPYC on a, Xeon on c; usable cores: 8 on a, 4 on c), which would be "
        "compared along with the orders; keep to alike ones with --workers, e.g. --workers tcp://a:1, "
        "or accept the machine as a factor with --machines any"
    )


def shares(blocks: Blocks, places: Sequence[Place], orders: int, repeats: int) -> list[Counter[str]]:
    """For each order, how many of its trials every machine gets."""
    found = []
    for _ in range(orders):
        counts: Counter[str] = Counter()
        for repeat in range(repeats):
            where = blocks.place(repeat, places)
            assert where is not None
            counts[where.machine.host] += 1
        found.append(counts)
    return found


@given(st.integers(1, 6), st.integers(1, 5), st.integers(1, 12), st.text(max_size=5))
def test_every_order_meets_every_machine_alike(count: int, orders: int, repeats: int, study: str) -> None:
    places = [place(f"h{number}") for number in range(count)]
    found = shares(Blocks(study, {}), places, orders, repeats)
    assert all(one == found[0] for one in found)
    counts = [found[0][one.machine.host] for one in places]
    assert max(counts) - min(counts) <= 1


@given(st.text(max_size=5), st.permutations([0, 1, 2, 3, 4, 5]))
def test_a_block_stays_where_it_is_whatever_comes_and_goes(study: str, sequence: list[int]) -> None:
    blocks, few, many = Blocks(study, {}), [place("a"), place("b")], [place("a"), place("b"), place("c"), place("d")]
    before = {repeat: blocks.place(repeat, few) for repeat in sequence}
    assert {repeat: blocks.place(repeat, many) for repeat in sequence} == before


def test_a_block_whose_machine_is_away_waits_until_it_is_given_up() -> None:
    blocks = Blocks("study", {0: machine("gone")})
    assert blocks.place(0, [place("a")]) is None
    assert blocks.release(0) == machine("gone")
    assert blocks.place(0, [place("a")]) == place("a")
    assert blocks.place(1, []) is None
    assert blocks.place(1, [place("b")]) == place("b"), "having found none settles nothing"

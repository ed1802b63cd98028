"""Which orders load alike."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from hypothesis import given, strategies as st

from reprocheck.model import Event, Record, Snapshot, Trial
from reprocheck.plan.load_trace import audits, classes

Order = tuple[str, ...]


def probe(order: str, *events: tuple[str, str, str | None], state: Mapping[str, Any] | None = None) -> Record:
    subjects = tuple(order)
    return Record(
        trial=Trial(order=subjects, repeat=0, imports_only=True),
        effective_order=subjects,
        ok=True,
        snapshots=(Snapshot(phase="t2", at=0.0, ms=0.0, kinds={"all": dict(state or {})}),),
        events=tuple(Event(kind=k, at=float(i), phase="t2", name=n, value=v) for i, (k, n, v) in enumerate(events)),
    )


def comparable(kinds: Mapping[str, Any]) -> Mapping[str, Any]:
    return {f"{kind}.{key}": value for kind, values in kinds.items() for key, value in values.items()}


def test_the_sequence_of_loads_and_settings_tells_orders_apart() -> None:
    first, second = ("library", "/lib/a.so", "a"), ("library", "/lib/b.so", "b")
    variable = ("putenv", "OMP_NUM_THREADS", "1")
    stands = classes(
        [
            probe("abc", first, second),
            probe("acb", first, ("import", "pure", "/site/pure.py"), second),
            probe("bac", second, first),
            probe("bca", second, first, variable),
            probe("cab", second, first, ("putenv", "OMP_NUM_THREADS", "2")),
            probe("cba", first, second, ("import", "_native", "/site/_native.abi3.so")),
        ],
        comparable,
    )
    assert stands[tuple("acb")] == tuple("abc"), "a module of pure Python leaves nothing"
    assert sum(order == stand for order, stand in stands.items()) == 5


def test_so_does_the_state_they_end_in() -> None:
    stands = classes([probe("ab", state={"threads": 1}), probe("ba", state={"threads": 2})], comparable)
    assert stands == {("a", "b"): ("a", "b"), ("b", "a"): ("b", "a")}


def test_an_order_whose_imports_failed_or_that_was_not_captured_stands_for_itself() -> None:
    failed = Record(trial=Trial(order=("b", "a"), repeat=0, imports_only=True), effective_order=("b",), ok=False)
    bare = Record(trial=Trial(order=("c", "d"), repeat=0, imports_only=True), effective_order=("c", "d"), ok=True)
    stands = classes([failed, bare], comparable)
    assert all(order == stand for order, stand in stands.items())


@given(st.dictionaries(st.sampled_from(list(itertools.permutations("abcd"))), st.integers(0, 5), min_size=1))
def test_one_order_of_every_class_that_has_several_is_audited(trace: dict[Order, int]) -> None:
    records = [probe("".join(order), ("library", f"/{number}.so", None)) for order, number in trace.items()]
    stands = classes(records, comparable)
    assert all(trace[order] == trace[stand] for order, stand in stands.items())
    assert all(stands[stand] == stand for stand in stands.values())
    chosen = audits(stands)
    sizes: dict[int, int] = {}
    for number in trace.values():
        sizes[number] = sizes.get(number, 0) + 1
    assert sorted(trace[order] for order in chosen) == sorted(number for number, size in sizes.items() if size > 1)
    assert all(order != stand == stands[order] for order, stand in chosen.items())


def test_the_audit_is_the_order_that_is_most_unlike() -> None:
    stands = dict.fromkeys(itertools.permutations("abc"), tuple("abc"))
    assert audits(stands) == {tuple("cba"): tuple("abc")}

"""Which orders load alike: their imports leave the same trace of what was loaded and set, and the same state.

A trace is the sequence of first loads: native objects as they come in, extension modules, and every variable that is
set, in the order in which it happened. Modules of pure Python that load and set nothing leave nothing in it. To it
belongs the state in which the imports left the process, as far as it is captured and comparable. Two orders with equal
traces went through the same native history; what no reader sees could still tell them apart, which is why one order of
every class is run as an audit.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from reprocheck.model import Record

__all__ = ["audits", "classes", "load_trace"]

_KINDS = ("library", "dlopen", "putenv", "unsetenv", "error")
_NATIVE = (".so", ".pyd", ".dll", ".dylib")

Order = tuple[str, ...]
Comparable = Callable[[Mapping[str, Any]], Mapping[str, Any]]


def load_trace(record: Record, comparable: Comparable) -> object | None:
    """What `record`'s imports loaded and set, hashable; None where they did not all succeed or nothing was captured.

    `comparable` gives captured state as it is compared: flat, without what varies from run to run.
    """
    last = next((snapshot for snapshot in record.snapshots if snapshot.phase == "t2"), None)
    if not record.ok or last is None or len(record.effective_order) != len(record.trial.order):
        return None
    loads = tuple(
        (event.kind, event.name, event.value if event.kind == "putenv" else None)
        for event in record.events
        if event.kind in _KINDS or (event.kind == "import" and (event.value or "").endswith(_NATIVE))
    )
    state = tuple(sorted((key, repr(value)) for key, value in comparable(last.kinds).items()))
    return loads, state


def classes(records: Sequence[Record], comparable: Comparable) -> dict[Order, Order]:
    """Order -> the first order with the same load trace; an order without a trace stands for itself."""
    stands: dict[Order, Order] = {}
    known: dict[object, Order] = {}
    for record in records:
        order = record.trial.order
        trace = load_trace(record, comparable)
        stands[order] = order if trace is None else known.setdefault(trace, order)
    return stands


def audits(stands: Mapping[Order, Order]) -> dict[Order, Order]:
    """One order of every class that has several -> the one that stands for it: the order that is farthest from it.

    Far is measured in pairs of subjects that come the other way round; of several the first in the plan is taken.
    """
    farthest: dict[Order, Order] = {}
    for order, stand in stands.items():
        known = farthest.get(stand)
        if order != stand and (known is None or _inversions(order, stand) > _inversions(known, stand)):
            farthest[stand] = order
    return {order: stand for stand, order in farthest.items()}


def _inversions(order: Order, other: Order) -> int:
    place = {name: number for number, name in enumerate(other)}
    return sum(place[a] > place[b] for a, b in itertools.combinations(order, 2))

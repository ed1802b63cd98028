"""Kernel evidence: which implementation each operator ran in either order, from a pair of trials of its own."""

from __future__ import annotations

from collections.abc import Sequence

from reprocheck.compare.groups import outcome_key
from reprocheck.explain.locate.align import Pair, align
from reprocheck.explain.locate.passes import Passes
from reprocheck.explain.locate.reading import Operator, Trace
from reprocheck.explain.locate.telling import shown_file
from reprocheck.explain.locate.verbose import Reader
from reprocheck.headline import order_text
from reprocheck.model import KernelDifference, Record

__all__ = ["VERBOSE", "kernel_differences", "kernels_of"]

Order = tuple[str, ...]
VERBOSE = {"MKL_VERBOSE": "1", "ONEDNN_VERBOSE": "1"}
"""Set for these trials only. They make the libraries print, and change no result."""
MAX_DIFFERENCES = 50
MAX_SHOWN = 3


def kernel_differences(
    passes: Passes, orders: tuple[Order, Order], root: str | None, notes: list[str]
) -> tuple[KernelDifference, ...]:
    """Operators for which the orders ran other kernels, in execution order; what hampers it is added to `notes`."""
    passes.context.runner.progress.note("locating: which kernels ran")
    records = passes.records_with({"modes": ["kernels"]}, VERBOSE)
    failed = next((record for record in records if not record.ok), None)
    if failed is not None:
        message = failed.failure.message if failed.failure is not None else "no reason given"
        notes.append(f"the trials that list kernels failed: {message}")
        return ()
    if any(_changed(record, passes) for record in records):
        notes.append("listing kernels changes outputs")
    a, b = (passes.trace_of(record) for record in records)
    kernels = (kernels_of(a), kernels_of(b))
    if not any(kernels):
        notes.append("no kernel was seen: nothing of MKL, oneDNN or CUDA ran inside the operators")
    found: dict[tuple[object, ...], KernelDifference] = {}
    for step in align([item.key for item in a.operators], [item.key for item in b.operators]):
        if not isinstance(step, Pair):
            continue
        item = a.operators[step.a]
        ran = (kernels[0].get(item.number, ()), kernels[1].get(b.operators[step.b].number, ()))
        if ran[0] == ran[1]:
            continue
        found.setdefault((item.name, item.place, item.module, item.phase), _difference(item, ran, orders, root))
    return tuple(list(found.values())[:MAX_DIFFERENCES])


def kernels_of(trace: Trace) -> dict[int, tuple[str, ...]]:
    """Operator number -> the kernels that ran inside it."""
    reader = Reader()
    found: dict[int, tuple[str, ...]] = {}
    for lines in trace.kernels:
        kernels = reader.kernels(lines.lines)
        if kernels and lines.number >= 0:
            found[lines.number] = (*found.get(lines.number, ()), *kernels)
    return found


def _changed(record: Record, passes: Passes) -> bool:
    patterns = passes.context.outputs
    untraced = {outcome_key(other, patterns) for other in passes.untraced(record.trial.order)}
    return outcome_key(record, patterns) not in untraced


def _difference(
    item: Operator, ran: tuple[tuple[str, ...], tuple[str, ...]], orders: tuple[Order, Order], root: str | None
) -> KernelDifference:
    place = item.place
    where = f" at {shown_file(place.file, root)}:{place.line}" if place else ""
    where += f" in `{item.module}`" if item.module else ""
    sides = [f"`{order_text(order)}` ran {text}" for order, text in zip(orders, _sides(ran), strict=True)]
    return KernelDifference(
        operator=item.name,
        index=item.number,
        module=item.module,
        file=place.file if place else None,
        line=place.line if place else None,
        kernels=ran,
        text=f"`{item.name}`{where}: {'; '.join(sides)}",
    )


def _sides(ran: tuple[tuple[str, ...], tuple[str, ...]]) -> tuple[str, str]:
    """Both sides in short: library, version and routines; in full where they differ only in the details."""
    short = (_short(ran[0]), _short(ran[1]))
    return short if short[0] != short[1] else (_shown(ran[0]), _shown(ran[1]))


def _short(kernels: Sequence[str]) -> str:
    by_library: dict[str, dict[str, None]] = {}
    for kernel in kernels:
        library, colon, rest = kernel.partition(": ")
        if not colon:
            by_library.setdefault(kernel, {})
            continue
        # MKL's routine stands before its arguments; oneDNN's kind and implementation are the second and third field.
        name = ",".join(rest.split(",")[1:3]) if library.startswith("oneDNN") else rest.partition("(")[0]
        by_library.setdefault(library, {})[f"`{name}`"] = None
    return _shown([f"{library} {', '.join(names)}".rstrip() for library, names in by_library.items()])


def _shown(kernels: Sequence[str]) -> str:
    distinct = list(dict.fromkeys(kernels))
    if not distinct:
        return "none that was seen"
    more = f" and {len(distinct) - MAX_SHOWN} more" if len(distinct) > MAX_SHOWN else ""
    return ", ".join(distinct[:MAX_SHOWN]) + more

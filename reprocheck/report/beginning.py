"""Where a divergence starts, in a few lines: first line, operator, what differs there, what tracing changed."""

from __future__ import annotations

from collections.abc import Iterator

from reprocheck.headline import order_text
from reprocheck.model import Difference, Study
from reprocheck.words import counted, differ

__all__ = ["beginning"]

MOST_UNALIGNED = 4
MOST_KERNELS = 4
MOST_NOTES = 6


def beginning(study: Study) -> list[tuple[str, str]]:
    """(label, text) in reading order; empty for a study that was not traced."""
    return list(_lines(study)) if study.traced is not None else []


def _lines(study: Study) -> Iterator[tuple[str, str]]:
    traced = study.traced
    assert traced is not None  # noqa: S101 - the caller has seen to it
    first, second = (order_text(order) for order in traced.orders)
    line, origin = study.first_line, study.origin
    if line is not None:
        yield "line", line.text
        if line.difference is not None:
            yield "", _difference(f"`{line.variable}`", line.difference, first, second)
    if origin is not None:
        yield "operator", origin.text
        if origin.output is not None and origin.output.difference is not None:
            yield "", _difference(origin.output.name, origin.output.difference, first, second)
        if study.inherited or origin.repeated:
            yield "", _after(study.inherited, origin.repeated)
    for item in study.unaligned[:MOST_UNALIGNED]:
        yield "unaligned", item.text
    if len(study.unaligned) > MOST_UNALIGNED:
        yield "", f"and {len(study.unaligned) - MOST_UNALIGNED} more operators that did not run alike"
    for kernel in study.kernels[:MOST_KERNELS]:
        yield "kernel", kernel.text
    if len(study.kernels) > MOST_KERNELS:
        yield "", f"and {len(study.kernels) - MOST_KERNELS} more operators with other kernels"
    if line is None and origin is None:
        yield "nothing", f"no line and no operator differs between traced runs of `{first}` and `{second}`"
    for note in traced.notes[:MOST_NOTES]:
        yield "note", note
    yield "traced", f"`{first}` and `{second}`: {_seen(study)}, in {traced.trials} trials of their own"


def _seen(study: Study) -> str:
    traced = study.traced
    assert traced is not None  # noqa: S101 - see above
    parts = []
    if "lines" in traced.modes:
        parts.append(f"{traced.lines:,} executed statements")
    if "ops" in traced.modes:
        noisy = f", {traced.noisy:,} of which vary anyway" if traced.noisy else ""
        parts.append(f"{traced.operators:,} operators{noisy}")
    return " and ".join(parts)


def _after(inherited: int, repeated: int) -> str:
    parts = []
    if inherited:
        parts.append(f"{counted(inherited, 'later operator')} inherited it")
    if repeated:
        verb = "parts by itself" if repeated == 1 else "part by themselves"
        parts.append(f"{counted(repeated, 'later one')} {verb}, with equal inputs")
    return "; ".join(parts)


def _difference(what: str, found: Difference, first: str, second: str) -> str:
    if found.kind == "equal":
        return f"{what} is equal when it is kept in full: keeping it changed something"
    if found.kind in ("dtype", "shape"):
        left, right = f"{found.other_dtype}{list(found.other_shape)}", f"{found.dtype}{list(found.shape)}"
        return f"{what} is {left} in `{first}` and {right} in `{second}`"
    if found.kind == "missing":
        return f"{what} is there in one order only"
    text = f"{what}, {found.dtype}{list(found.shape)}: {differ(found.differing, found.size, 'element')}"
    if found.max_ulp is not None:
        text += f", by {found.max_ulp:,} ULP at most"
    if found.max_abs is not None:
        text += f", {found.max_abs:.2g} absolute"
    if found.nan_changed:
        text += f", {found.nan_changed:,} are NaN on one side"
    if found.first_values is not None and found.first_index is not None:
        right, left = found.first_values
        text += f"; first at {list(found.first_index)}: {left} in `{first}`, {right} in `{second}`"
    return text

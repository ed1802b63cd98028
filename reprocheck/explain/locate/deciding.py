"""Whether a divergence is located, and in which two orders."""

from __future__ import annotations

from pathlib import Path

from reprocheck.errors import UsageError
from reprocheck.explain.context import Context
from reprocheck.model import Study

__all__ = ["TRACES", "locate", "orders_to_trace"]

Order = tuple[str, ...]
TRACES = ("auto", "lines", "ops", "kernels", "none")
"""What may be asked for: lines and operators after a divergence, one of them, kernels as well, or nothing."""
_MODES = {"auto": ("lines", "ops"), "kernels": ("lines", "ops"), "lines": ("lines",), "ops": ("ops",)}


def locate(study: Study, context: Context, *, trace: str = "auto", export: Path | None = None) -> Study:
    """`study` with its first line, origin, inherited and unaligned operators, and kernels if asked for.

    A study without a divergence comes back as it is, unless traces are asked for by name or to be exported. `export` is
    a folder for the traces, one operator and one executed line a text line.

    Raises:
        UsageError: there is no such `trace`, or `export` can't be written.
        StoreError: a trace is gone or damaged.
    """
    if trace not in TRACES:
        raise UsageError(f"`{trace}` can't be traced; choose one of {', '.join(TRACES)}")
    asked = trace != "auto" or export is not None
    if trace == "none" or study.target.suite:
        return study
    orders = orders_to_trace(study, asked=asked)
    if orders is None:
        return study
    # Only a study that differs pays for loading what compares arrays.
    from reprocheck.explain.locate.locating import Locating

    return Locating(study, context, orders).run(_MODES[trace], kernels=trace == "kernels", export=export)


def orders_to_trace(study: Study, *, asked: bool) -> tuple[Order, Order] | None:
    """The two orders to compare: the first one and the first that differs from it; twice the same for a noisy study.

    Where all orders agree and importing only some of the subjects does not, the first order and that arm.

    None when there is nothing to locate: orders that agree (unless `asked` for), or orders that fail.
    """
    arms = [arm for arm in study.orders if not arm.presence and arm.same_as is None and arm.failures == 0]
    if not arms:
        return None
    first = arms[0]
    if study.verdict == "noisy":
        noisy = next((arm for arm in arms if arm.group is None), first)
        return noisy.order, noisy.order
    for arm in arms[1:]:
        if arm.group != first.group or set(arm.groups) != set(first.groups):
            return first.order, arm.order
    for arm in study.orders:
        if arm.presence and study.exit_code and arm.failures == 0 and arm.group not in (None, first.group):
            return first.order, arm.order
    if asked:
        return first.order, arms[-1].order
    return None

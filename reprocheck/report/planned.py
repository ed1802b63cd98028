"""What was meant to run against what ran: one home for its words in every format."""

from __future__ import annotations

from reprocheck.headline import coverage_text, order_text
from reprocheck.model import Study

__all__ = ["planned_rows"]

MAX_ORDERS = 4


def planned_rows(study: Study) -> list[tuple[str, str]]:
    """(name, sentence): what was achieved, what was not run and why, and what was taken to be alike."""
    rows = []
    covered = study.coverage
    if covered is not None:
        text = coverage_text(covered.achieved)
        count = f"{covered.run} of {covered.planned} orders"
        if covered.achieved != covered.stated:
            text += f", by {count}; the plan has {coverage_text(covered.stated)}"
        rows.append(("covered", text))
        if covered.cut_short:
            rows.append(
                (
                    "cut short",
                    f"no trial got beyond its imports in {_orders(covered.cut_short)}: counted as far as it got",
                )
            )
    if study.not_run is not None:
        text = f"{study.not_run.why}; {study.not_run.trials} planned trials were saved"
        if study.not_run.orders:
            text += f": {_orders(study.not_run.orders)}"
        rows.append(("not run", text))
    reduction = study.reduction
    if reduction is not None:
        rows.append(("reduced", _reduced(study)))
    return rows


def _reduced(study: Study) -> str:
    found = study.reduction
    assert found is not None  # noqa: S101 - asked by the only caller
    told = f"{found.probes} orders load in {found.classes} ways, as {found.probes} import-only probes show"
    if found.abandoned:
        return f"warning: {found.abandoned} ({told}; no trial was saved)"
    audits = len(found.audits)
    if not found.left_out and not audits:
        return f"{told}: nothing to leave out"
    agreed = f"{audits} order{'' if audits == 1 else 's'} run as an audit agree{'s' if audits == 1 else ''}"
    return f"{told}; {found.left_out} orders are stood for by others, which saved {found.saved} trials; {agreed}"


def _orders(orders: tuple[tuple[str, ...], ...]) -> str:
    shown = ", ".join(f"`{order_text(order)}`" for order in orders[:MAX_ORDERS])
    return shown if len(orders) <= MAX_ORDERS else f"{shown} and {len(orders) - MAX_ORDERS} more"

"""Outputs that differ, one a row; where a row is wider than the terminal, one a block."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from reprocheck.model import Difference

__all__ = ["print_differing"]

COLUMNS = ("output", "dtype, shape", "differing", "max ulp", "max abs", "max rel", "first at")


def print_differing(
    differing: Sequence[tuple[str, Difference | None]],
    values: str,
    console: Console,
    *,
    only: tuple[str, str] = ("not in the reference group", "only in the reference group"),
) -> None:
    """Print them; `values` is the title over the two values, `only` says where an output is that one side lacks."""
    titles = (*COLUMNS, values)
    rows = [(name, *_cells(difference, only)) for name, difference in differing]
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for title in titles:
        table.add_column(title, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    if Measurement.get(console, console.options, table).maximum < console.width - 2 or not rows:
        console.print(Padding(table, (0, 0, 0, 2)))
        return
    for name, *cells in rows:
        console.print(Text(f"  {name}"), soft_wrap=True)
        for line in _filled(cells, titles[1:], console.width - 4):
            console.print(Text(f"    {line}"), soft_wrap=True)


def _filled(cells: Sequence[str], titles: Sequence[str], width: int) -> list[str]:
    """The cells with their titles, as many to a line as fit."""
    items = [cell if at == 0 else f"{titles[at]} {cell}" for at, cell in enumerate(cells) if cell != "–"]
    lines = items[:1]
    for item in items[1:]:
        if len(lines[-1]) + 2 + len(item) <= width:
            lines[-1] += f"  {item}"
        else:
            lines.append(item)
    return lines


def _cells(difference: Difference | None, only: tuple[str, str]) -> tuple[str, ...]:
    """One row, but for the name."""
    if difference is None:
        return ()
    if difference.kind == "missing":
        return (only[bool(difference.other_dtype)],)
    if difference.kind in ("dtype", "shape"):
        left = f"{difference.dtype}{list(difference.shape)}"
        right = f"{difference.other_dtype}{list(difference.other_shape)}"
        return (f"{left} against {right}",)
    share = f"{difference.differing:,} of {difference.size:,}"
    special = []
    if difference.nan_changed:
        special.append(f"{difference.nan_changed:,} NaN")
    if difference.inf_changed:
        special.append(f"{difference.inf_changed:,} inf")
    if difference.signed_zero:
        special.append(f"{difference.signed_zero:,} sign of zero")
    first = difference.first_values or ("", "")
    return (
        f"{difference.dtype}{list(difference.shape)}",
        share + (f" ({', '.join(special)})" if special else ""),
        "–" if difference.max_ulp is None else f"{difference.max_ulp:,}",
        _float(difference.max_abs),
        _float(difference.max_rel),
        str(list(difference.first_index or ())),
        f"{first[0]} | {first[1]}",
    )


def _float(value: float | None) -> str:
    return "–" if value is None else f"{value:.2g}"

"""Traces as text, one operator and one executed line a text line, for `diff` and for spreadsheets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from reprocheck.errors import UsageError
from reprocheck.explain.locate.reading import Fact, LineStep, Operator, Place, Trace

__all__ = ["export_traces", "line_rows", "operator_rows"]

OPERATOR_COLUMNS = ("operator", "phase", "module", "place", "through", "arguments", "inputs", "outputs")
LINE_COLUMNS = ("place", "call", "loops", "variable", "value")


def export_traces(folder: Path, orders: tuple[tuple[str, ...], ...], traces: Sequence[Trace]) -> list[Path]:
    """Write `1-a+b.ops.tsv` and `1-a+b.lines.tsv` for each order; returns the files.

    Columns are separated by tabs under one line of headings. Rows carry no numbers, so that one operator more in one
    order is one line more for `diff`. Raises `UsageError` if the folder can't be written.
    """
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for index, (order, trace) in enumerate(zip(orders, traces, strict=True), 1):
            name = f"{index}-{re.sub(r'[^A-Za-z0-9_.+-]+', '_', '+'.join(order)) or 'none'}"
            for kind, columns, rows in (
                ("ops", OPERATOR_COLUMNS, operator_rows(trace.operators)),
                ("lines", LINE_COLUMNS, line_rows(trace.lines)),
            ):
                if kind not in trace.modes:
                    continue
                path = folder / f"{name}.{kind}.tsv"
                path.write_text(
                    "".join("\t".join(map(_cell, row)) + "\n" for row in (columns, *rows)), encoding="utf-8"
                )
                written.append(path)
    except OSError as error:
        raise UsageError(
            f"--trace-export `{folder}` can't be written: {error.strerror}; name another folder"
        ) from error
    return written


def operator_rows(operators: Iterable[Operator]) -> Iterable[tuple[str, ...]]:
    """The cells of each operator, in the order of `OPERATOR_COLUMNS`."""
    for item in operators:
        yield (
            item.name,
            item.phase or "forward",
            item.module or "",
            _place(item.place),
            _place(item.through),
            item.arguments + (f" generator {item.random}" if item.random else ""),
            " ".join(map(_fact, item.inputs)),
            " ".join(map(_fact, item.outputs)),
        )


def line_rows(lines: Iterable[LineStep]) -> Iterable[tuple[str, ...]]:
    """The cells of each variable that an executed line set, changed or met, in the order of `LINE_COLUMNS`."""
    for step in lines:
        loops = " ".join(f"{place.line}:{count}" for place, count in step.loops)
        for sign, values in (("<", step.first), ("=", step.after), ("~", step.changed)):
            for name, fact in values.items():
                yield _place(step.place), str(step.call), loops, f"{name} {sign}", _fact(fact)


def _fact(fact: Fact) -> str:
    return f"{fact.dtype}{list(fact.shape)}:{fact.digest or '-'}".replace(" ", "")


def _place(place: Place | None) -> str:
    return f"{place.file}:{place.line}" if place else ""


def _cell(text: str) -> str:
    return text.replace("\t", " ").replace("\n", " ")

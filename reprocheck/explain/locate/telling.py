"""What was found, as records of the study and in sentences."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from reprocheck.explain.locate.first_line import Line
from reprocheck.explain.locate.origin import Found
from reprocheck.explain.locate.passes import Kept
from reprocheck.explain.locate.reading import Operator, Place
from reprocheck.explain.locate.sequences import Sequences
from reprocheck.headline import order_text
from reprocheck.model import Difference, FirstLine, OperatorOrigin, OperatorOutput

__all__ = ["first_line_record", "origin_record", "shown_file", "source_line"]

Order = tuple[str, ...]


def first_line_record(line: Line, kept: Kept | None, root: str | None) -> FirstLine:
    """The record of a first line; `root` is the workload's folder, which file names are told relative to."""
    step = line.a
    difference = kept.difference("line") if kept is not None and line.kind != "path" else None
    place = f"{shown_file(step.place.file, root)}:{step.place.line}"
    inner = step.loops[-1] if step.loops else None
    if inner is not None:
        where = "" if inner[0].file == step.place.file else f"{shown_file(inner[0].file, root)}:"
        place += f", iteration {inner[1]:,} of the loop at {where}{inner[0].line}"
    elif step.call > 1:
        place += f", in call {step.call:,} of `{step.place.function}`"
    source = source_line(step.place)
    shown = f": `{source}`" if source else ""
    if line.kind == "path":
        text = f"the orders run other lines from here on: {place}{shown}"
    elif line.kind == "met":
        text = f"`{line.variable}` differs already when {place} first reads it{shown}"
    elif line.kind == "changed" and line.b is None:
        text = f"{place} changes `{line.variable}` in one order only{shown}"
    elif line.kind == "changed":
        text = f"{place} is the first line after which a variable differs, `{line.variable}`, changed in place{shown}"
    else:
        text = f"{place} is the first line after which a variable differs, `{line.variable}`{shown}"
    return FirstLine(
        kind=line.kind,
        text=text,
        file=step.place.file,
        line=step.place.line,
        function=step.place.function,
        source=source,
        variable=line.variable,
        iteration=inner[1] if inner is not None else None,
        loop_line=inner[0].line if inner is not None else None,
        call=step.call,
        dtype=line.fact.dtype if line.fact is not None else "",
        shape=line.fact.shape if line.fact is not None else (),
        difference=difference,
    )


def origin_record(
    found: Found, sequences: Sequences, orders: tuple[Order, Order], kept: Kept | None, root: str | None
) -> OperatorOrigin:
    """The record of an origin."""
    a = sequences.a[found.a] if found.a is not None else None
    b = sequences.b[found.b] if found.b is not None else None
    item = a or b
    if item is None:
        raise ValueError("an origin without an operator")
    slot = found.slot
    difference = None
    if kept is not None:
        difference = _kept_difference(found, a, b, kept)
        if slot is None and difference is not None:
            slot = difference[0]
    output = None
    if slot is not None:
        facts = item.inputs if found.side == "in" else item.outputs
        if slot < len(facts):
            output = OperatorOutput(
                name=f"{'input' if found.side == 'in' else 'output'} {slot}",
                dtype=facts[slot].dtype,
                shape=facts[slot].shape,
                difference=difference[1] if difference is not None else None,
            )
    place = item.place
    return OperatorOrigin(
        kind=found.kind,
        text=_sentence(found, a, b, orders, root),
        operator=item.name,
        other_operator=b.name if found.kind == "replaced" and a is not None and b is not None else None,
        index=item.number,
        module=item.module,
        phase=item.phase or "forward",
        file=place.file if place else None,
        line=place.line if place else None,
        source=source_line(place) if place else "",
        forward_line=item.forward.line if item.forward else None,
        through=f"{item.through.file}:{item.through.line}" if item.through else None,
        inputs_equal=found.side == "out" and found.kind in ("operator", "data"),
        inputs=tuple(fact.text for fact in item.inputs),
        arguments=item.arguments,
        output=output,
        repeated=found.repeated,
    )


def _kept_difference(found: Found, a: Operator | None, b: Operator | None, kept: Kept) -> tuple[int, Difference] | None:
    """(slot, difference) of the value to show: the one that is known to differ, else the first kept one that does."""
    if a is None or b is None:
        return None
    count = min(len(a.inputs), len(b.inputs)) if found.side == "in" else min(len(a.outputs), len(b.outputs))
    for slot in range(count) if found.slot is None else (found.slot,):
        difference = kept.difference(f"{found.side}[{slot}]")
        if difference is not None and difference.kind != "equal":
            return slot, difference
    return None


def _sentence(
    found: Found, a: Operator | None, b: Operator | None, orders: tuple[Order, Order], root: str | None
) -> str:
    item = a or b
    assert item is not None  # noqa: S101 - the caller has seen to it
    where = _where(item, root)
    name = f"`{item.name}`"
    first, second = order_text(orders[0]), order_text(orders[1])
    if found.kind == "replaced":
        if a is not None and b is not None and a.name == b.name:
            left, right = (", ".join(fact.text for fact in side.outputs) for side in (a, b))
            return f"{name}{where} made {left} in `{first}` and {right} in `{second}`"
        if a is not None and b is not None:
            return f"the orders did not run the same operators: {name} was replaced by `{b.name}`{where}"
        return f"only `{first if a is not None else second}` ran {name}{where}"
    if found.kind in ("random", "initialisation"):
        what = "while a module is set up, " if found.kind == "initialisation" else ""
        return f"{what}{name}{where} draws from a generator whose state differs between the orders"
    if found.kind == "data":
        return f"{name}{where} made different data in the two orders"
    if found.kind == "input":
        if found.slot is None:
            return f"{name}{where} was called with other arguments"
        fact = item.inputs[found.slot]
        return (
            f"input {found.slot} ({fact.text}) of {name}{where} differs already, and nothing traced had made it: "
            "it comes from before the workload began, or from outside torch, numpy and cupy"
        )
    text = f"{name}{where} is the first operator with equal inputs and unequal outputs"
    if found.moved:
        text += " (its inputs came in another order)"
    elif found.layout:
        text += " (its inputs are equal, but laid out in memory with other strides)"
    return text


def _where(item: Operator, root: str | None) -> str:
    text = f" in `{item.module}`" if item.module else ""
    if item.phase == "backward":
        text += ", backward"
        if item.forward is not None:
            text += f" of {shown_file(item.forward.file, root)}:{item.forward.line}"
    elif item.phase == "optimiser":
        text += ", in the optimiser's step"
    if item.place is not None:
        text += f" at {shown_file(item.place.file, root)}:{item.place.line}"
    if item.through is not None:
        text += f", through {shown_file(item.through.file, root)}:{item.through.line}"
    return text


def shown_file(file: str, root: str | None) -> str:
    """A file as people read it: relative to the workload's folder where it is inside."""
    if root and file.startswith(root.rstrip("/") + "/"):
        return file[len(root.rstrip("/")) + 1 :]
    return file


def source_line(place: Place) -> str:
    """The text of a source line, stripped; empty if the file is not there."""
    lines = _lines(place.file)
    return lines[place.line - 1].strip() if 0 < place.line <= len(lines) else ""


@cache
def _lines(file: str) -> tuple[str, ...]:
    try:
        return tuple(Path(file).read_text(encoding="utf-8", errors="replace").splitlines())
    except OSError:
        return ()

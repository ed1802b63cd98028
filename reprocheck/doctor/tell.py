"""The examination for people, and its schema for programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from reprocheck.doctor.result import Changed, Examination, Split, Varying
from reprocheck.report.text import value_text
from reprocheck.words import counted

__all__ = ["lines", "schema"]

_MARKS = {"yes": "✓", "limited": "~", "no": "✗"}
_MOST = 12


def schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of what `--format json` prints."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **msgspec.json.schema(Examination)}


def lines(found: Examination) -> Iterator[str]:
    """The whole report, the answer first."""
    told = f"{found.trials} identical trials through the engine `{found.engine}`"
    if found.healthy:
        yield f"healthy: {told} agree in {found.outputs} outputs and {found.state_keys} state keys"
    else:
        respects = counted(len(found.unsound), "respect")
        yield f"not sound: {told} differ in {respects}: no verdict made here can be trusted"
    yield ""
    yield f"  python    {found.python} ({found.python_version})"
    yield f"  subjects  {', '.join(found.subjects) or 'none'}"
    expected = [item.name for item in found.varying if item.expected]
    if expected:
        yield f"  anew      {', '.join(expected)}: generators start anew in every process; --seed pins them"
    if found.unsound:
        yield ""
        yield "what differs between identical trials"
        yield from (_varying(item) for item in found.unsound[:_MOST])
        yield from _more(len(found.unsound))
    yield from _section("what the engine changed, against an interpreter started plainly", found.disturbed)
    yield from _section("what every trial is given on purpose", [item for item in found.changed if item.intended])
    yield ""
    yield "what this machine can show (✓ yes, ~ with limits, ✗ no)"
    width = max(len(item.what) for item in found.abilities)
    for item in found.abilities:
        yield f"  {_MARKS[item.status]} {item.what:{width}}  {item.why}"
    yield ""
    yield from _time(found.time)
    for note in found.notes:
        yield f"note: {note}"


def _varying(item: Varying) -> str:
    return f"  {item.what} `{item.name}`: {' | '.join(item.values)}{f' - {item.why}' if item.why else ''}"


def _section(title: str, items: list[Changed] | tuple[Changed, ...]) -> Iterator[str]:
    yield ""
    yield title
    if not items:
        yield "  nothing"
    for item in items[:_MOST]:
        values = f"{value_text(item.plain, 60)} -> {value_text(item.engine, 60)}"
        yield f"  {item.key}: {values}{'' if item.intended else f' - {item.why}'}"
    yield from _more(len(items))


def _more(count: int) -> Iterator[str]:
    if count > _MOST:
        yield f"  and {count - _MOST} more (see --format json)"


def _time(split: Split) -> Iterator[str]:
    yield f"time per trial: {split.total:.3f} s"
    for name in ("start", "imports", "snapshots", "workload", "save", "rest"):
        seconds = getattr(split, name)
        share = seconds / split.total if split.total else 0.0
        yield f"  {name:9}  {seconds:7.3f} s  {share:4.0%}"

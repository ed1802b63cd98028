from __future__ import annotations

from reprocheck.explain.locate.sequences import Sequences
from tests.unit.locate.conftest import Make


def test_replaced_inserted_and_missing(make: type[Make]) -> None:
    first, both = make.op("exp", "x", "e"), make.op("abs", "y", "z")
    a = make.trace(first, make.op("addmm", "e", "y", line=7), both, make.op("sum", "z", "s"))
    b = make.trace(first, make.op("fused", "e", "y", line=7), make.op("neg", "y", "n"), both)

    found = [(item.kind, item.operator, item.other) for item in Sequences(a, b).unaligned()]

    assert found == [("replaced", "addmm", "fused"), ("inserted", "neg", None), ("missing", "sum", None)]


def test_text_names_the_place(make: type[Make]) -> None:
    a = make.trace(make.op("addmm", "e", "y", line=7, module="head"))
    b = make.trace(make.op("fused", "e", "y", line=7, module="head"))

    (item,) = Sequences(a, b).unaligned()

    assert item.text == "`addmm` was replaced by `fused` at /w/work.py:7 in `head`"
    assert (item.file, item.line, item.module) == ("/w/work.py", 7, "head")


def test_reordered(make: type[Make]) -> None:
    first, second = make.op("load", "p", "a"), make.op("save", "q", "b")

    sequences = Sequences(make.trace(first, second), make.trace(second, first))

    (found,) = sequences.unaligned()
    assert found.kind == "reordered"
    assert found.operator in {"load", "save"}


def test_repeated_findings_are_counted(make: type[Make]) -> None:
    steps = [make.op("exp", f"x{n}", f"e{n}") for n in range(3)]
    a = make.trace(*[item for step in steps for item in (step, make.op("abs", "e", "z", line=4))])
    b = make.trace(*steps)

    (item,) = Sequences(a, b).unaligned()

    assert (item.kind, item.count) == ("missing", 3)
    assert item.text == "only the first order ran `abs` at /w/work.py:4, 3 times"


def test_equal_sequences(make: type[Make]) -> None:
    trace = make.trace(make.op("exp", "x", "e"))

    assert Sequences(trace, trace).unaligned() == ()

from __future__ import annotations

from pathlib import Path

from reprocheck.explain.locate.export import export_traces
from tests.unit.locate.conftest import Make


def test_one_operator_more_is_one_line_more(make: type[Make], tmp_path: Path) -> None:
    a = make.trace(make.op("exp", "x", "e"), make.op("abs", "e", "z"), lines=(make.line(1, x="1"),))
    b = make.trace(make.op("exp", "x", "e"), make.op("mul", "e", "m"), make.op("abs", "e", "z"))

    written = export_traces(tmp_path, (("a", "b/c"), ("b/c", "a")), (a, b))

    names = [path.name for path in written]
    assert names == ["1-a+b_c.ops.tsv", "1-a+b_c.lines.tsv", "2-b_c+a.ops.tsv", "2-b_c+a.lines.tsv"]
    first, second = (written[index].read_text(encoding="utf-8").splitlines() for index in (0, 2))
    (more,) = [row for row in second if row not in first]
    assert more == "mul\tforward\t\t/w/work.py:1\t\t\tfloat32[2]:e\tfloat32[2]:m"
    assert len(second) == len(first) + 1


def test_cells_hold_no_separators(make: type[Make], tmp_path: Path) -> None:
    trace = make.trace(make.op("load", "", "d", arguments="'a\tb\nc'"))

    (path, _) = export_traces(tmp_path, (("a",),), (trace,))

    assert path.read_text(encoding="utf-8").splitlines()[1].split("\t")[5] == "'a b c'"

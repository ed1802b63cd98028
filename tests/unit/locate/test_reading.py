from __future__ import annotations

from pathlib import Path

import pytest

from reprocheck.errors import StoreError
from reprocheck.explain.locate.reading import Place, read_trace

HEAD = '{"k":"trace","version":1,"modes":["lines","ops"],"libraries":{"torch":"2.13.0"}}\n'
SITES = (
    '{"k":"site","id":0,"file":"/w/work.py","line":3,"function":"run"}\n'
    '{"k":"site","id":1,"file":"/w/t.py","line":9,"function":"f"}\n'
)
OP = (
    '{"k":"op","n":4,"op":"aten::mm","in":[["float32",[2,2],"ab",[1,2]],["float32",[2,2],"cd",null,"cuda:0"]],'
    '"out":[["float32",[2,2],null]],"s":0,"via":1,"m":"head","ph":"backward","node":"MmBackward0","fs":0,"a":"_, 1"}\n'
)
LINE = '{"k":"line","s":0,"n":7,"call":2,"it":[[0,5]],"r":{"w":["float",[],"0x1.0p+0"]},"v":{"x":["int",[],"3"]}}\n'


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "trace.jsonl"
    path.write_text(text, encoding="utf-8")
    return path


def test_everything(tmp_path: Path) -> None:
    kernel = '{"k":"kernel","n":4,"lines":["MKL_VERBOSE …"]}\n'
    note = '{"k":"note","text":"so"}\n'

    trace = read_trace(written(tmp_path, HEAD + SITES + OP + LINE + kernel + note + note))

    (operator,), (step,), (lines,) = trace.operators, trace.lines, trace.kernels
    assert (operator.name, operator.number, operator.module, operator.phase) == ("aten::mm", 4, "head", "backward")
    assert operator.place == operator.forward == Place(file="/w/work.py", line=3, function="run")
    assert operator.through == Place(file="/w/t.py", line=9, function="f")
    assert [fact.text for fact in operator.inputs] == ["float32[2, 2]", "float32[2, 2] on cuda:0"]
    assert operator.inputs[0].strides == (1, 2)
    assert operator.outputs[0].digest is None
    assert (step.number, step.call, step.loops[0][1]) == (7, 2, 5)
    assert (step.first["w"].digest, step.after["x"].digest) == ("0x1.0p+0", "3")
    assert lines.number == 4
    assert trace.notes == ("so",)
    assert trace.libraries == {"torch": "2.13.0"}


def test_a_cut_last_line_is_left_out(tmp_path: Path) -> None:
    trace = read_trace(written(tmp_path, HEAD + SITES + OP + OP[:40]))

    assert len(trace.operators) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD + "{}\n" + OP, "is no trace: line 2"),
        (HEAD + '{"k":"op","n":"x"}\n' + OP, "is no trace: line 2"),
        (HEAD.replace("1,", "2,", 1), "version 2"),
        ("", "version 0"),
    ],
)
def test_foreign_content(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(StoreError, match=message):
        read_trace(written(tmp_path, text))


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be read"):
        read_trace(tmp_path / "none.jsonl")


def test_an_unknown_site_is_no_place(tmp_path: Path) -> None:
    assert read_trace(written(tmp_path, HEAD + OP)).operators[0].place is None

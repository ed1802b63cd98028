from __future__ import annotations

import textwrap
from pathlib import Path

from reprocheck.worker.trace.syntax import Source


def parsed(tmp_path: Path, text: str) -> Source:
    path = tmp_path / "source.py"
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return Source(str(path))


def test_names(tmp_path: Path) -> None:
    source = parsed(tmp_path, "y = self.w @ x.t() + f(z[i].q)\n")

    statement = source.statement(1)
    assert statement is not None
    assert statement.sets == ("y",)
    assert set(statement.reads) >= {"y", "self", "self.w", "x", "x.t", "f", "z", "i"}


def test_what_sets_and_what_changes(tmp_path: Path) -> None:
    source = parsed(tmp_path, "a, (b, c.d) = f()\na[0] = 1\nx += y\nfor k in r: pass\nwith o() as w: pass\n(m := 1)\n")

    sets = [source.statement(line).sets for line in range(1, 7)]
    assert sets == [("a", "b", "c.d"), (), ("x",), ("k",), ("w",), ("m",)]
    assert "a" in source.statement(2).reads


def test_loops(tmp_path: Path) -> None:
    source = parsed(
        tmp_path,
        """\
        for a in x:
            while b:
                c = 1
            else:
                d = 1
            def f():
                e = 1
        else:
            g = 1
        """,
    )

    loops = {line: source.statement(line).loops for line in (1, 2, 3, 5, 7, 9)}
    assert loops == {1: (1,), 2: (1, 2), 3: (1, 2), 5: (1,), 7: (), 9: ()}


def test_lines_of_a_statement(tmp_path: Path) -> None:
    source = parsed(tmp_path, "x = f(\n    1,\n    2,\n)\nif (\n    x\n):\n    y = 1\n")

    assert source.statement(1) is source.statement(4)
    assert source.statement(5) is source.statement(7)
    assert source.statement(8) is not source.statement(7)
    assert source.statement(99) is None


def test_every_kind_of_block(tmp_path: Path) -> None:
    source = parsed(
        tmp_path,
        """\
        try:
            a = 1
        except E as e:
            b = 1
        else:
            c = 1
        finally:
            d = 1
        match v:
            case 1:
                m = 1
        async def f():
            async for i in x:
                n = 1
        class C:
            k = 1
        """,
    )

    sets = {line: source.statement(line).sets for line in (2, 4, 6, 8, 11, 14, 16)}
    assert sets == {2: ("a",), 4: ("b",), 6: ("c",), 8: ("d",), 11: ("m",), 14: ("n",), 16: ("k",)}


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    assert Source(str(tmp_path / "none.py")).statement(1) is None
    assert parsed(tmp_path, "def (").statement(1) is None

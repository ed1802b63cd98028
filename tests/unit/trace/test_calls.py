"""The call trace: what is recorded of numpy, of toolboxes and of numbers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.trace.conftest import Bench, kinds

pytest.importorskip("numpy")


def ops(records: list[dict[str, Any]]) -> list[tuple[int, str, int, int]]:
    """(line, operator, number of inputs, number of outputs) of each."""
    return [(r["s"][0], r["op"], len(r["in"]), len(r["out"])) for r in kinds(records, "op")]


def test_functions_methods_and_operators(bench: Bench) -> None:
    records = bench.trace(
        """\
        import numpy as np
        from numpy import dot
        def run():
            a = np.arange(6.0).reshape(2, 3)
            b = dot(a, a.T)
            c = np.linalg.solve(b + np.eye(2), b)
            d = -c ** 2
            d += 1
            return d.sum(axis=0)
        """,
        "ops",
    )

    assert ops(records) == [
        (4, "numpy.arange", 0, 1),
        (4, "numpy.ndarray.reshape", 1, 1),
        (5, "numpy.dot", 2, 1),
        (6, "numpy.eye", 0, 1),
        (6, "numpy +", 2, 1),
        (6, "numpy.linalg.solve", 2, 1),
        (7, "numpy **", 1, 1),
        (7, "numpy unary -", 1, 1),
        (8, "numpy +=", 1, 1),
        (9, "numpy.ndarray.sum", 1, 1),
    ]
    by_name = {r["op"]: r for r in kinds(records, "op")}
    assert by_name["numpy.ndarray.sum"]["a"] == "axis=0"
    assert by_name["numpy **"]["in"][0] == by_name["numpy.linalg.solve"]["out"][0]


def test_out_and_in_place(bench: Bench) -> None:
    records = bench.trace(
        """\
        import numpy as np
        def run():
            a, out = np.ones(3), np.empty(3)
            np.add(a, a, out=out)
            out.sort()
            np.copyto(a, out)
            return a
        """,
        "ops",
    )

    found = {r["op"]: r for r in kinds(records, "op")}
    assert found["numpy.empty"]["out"][0][2] is None
    assert [len(found["numpy.add"][side]) for side in ("in", "out")] == [2, 1]
    assert found["numpy.copyto"]["out"] == [found["numpy.add"]["out"][0]]
    assert found["numpy.ndarray.sort"]["out"] == [], "they were in order already"


def test_generators_have_a_state(bench: Bench) -> None:
    records = bench.trace(
        """\
        import random
        import numpy as np
        def run():
            rng = np.random.default_rng(0)
            a = rng.normal(size=3)
            b = rng.normal(size=3)
            c = random.Random(1).random()
            return a, b, c
        """,
        "ops",
    )

    first, second, third = [r for r in kinds(records, "op") if "rng" in r]
    assert first["op"] == second["op"] == "numpy.Generator.normal"
    assert first["rng"] != second["rng"]
    assert third["op"] == "random.Random.random"


def test_calls_of_the_workload_itself_are_not_recorded(bench: Bench) -> None:
    records = bench.trace(
        """\
        import numpy as np
        class Filter:
            def __init__(self, w):
                self.w = w
            def __call__(self, x):
                return x * self.w
        def scale(x):
            return x + 1
        def run():
            return scale(Filter(np.ones(2))(np.ones(2)))
        """,
        "ops",
    )

    assert [name for _, name, _, _ in ops(records)] == ["numpy.ones", "numpy.ones", "numpy *", "numpy +"]


def test_toolboxes_are_operators_of_their_own(bench: Bench) -> None:
    bench.write("def gain(x):\n    return x * 2.0\ndef touch(x):\n    x[0] = 9\n", "site-packages/toolbox.py")
    records = bench.trace(
        """\
        import importlib.util, pathlib
        import numpy as np
        path = pathlib.Path(__file__).parent / "site-packages" / "toolbox.py"
        spec = importlib.util.spec_from_file_location("toolbox", path)
        toolbox = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(toolbox)
        def run():
            x = np.zeros(2)
            toolbox.touch(x)
            y = toolbox.gain(1.5)
            z = toolbox.gain(3)
            return x, y
        """,
        "ops",
    )

    found = [r for r in kinds(records, "op") if r["op"].startswith("toolbox")]
    assert [(r["op"], len(r["in"]), len(r["out"])) for r in found] == [
        ("toolbox.touch", 1, 1),
        ("toolbox.gain", 0, 1),
        ("toolbox.gain", 0, 1),
    ]
    assert found[1]["out"] == [["float", [], (3.0).hex()]]


def test_plain_python_leaves_no_records(bench: Bench) -> None:
    records = bench.trace(
        """\
        def run():
            xs = [str(n) + "x" for n in range(10)]
            total = sum(len(x) * 2 for x in xs)
            return sorted(xs), total / 2
        """,
        "ops",
    )

    assert kinds(records, "op") == []
    assert bench.result[1] == 20.0


def test_exceptions_leave_nothing_behind(bench: Bench) -> None:
    records = bench.trace(
        """\
        import numpy as np
        def run():
            x = np.ones(2)
            for n in range(3):
                try:
                    np.add(x, np.linalg.inv(np.zeros((2, 2))))
                except np.linalg.LinAlgError:
                    pass
            return np.exp(x)
        """,
        "ops",
    )

    assert [name for _, name, _, _ in ops(records)][-1] == "numpy.exp"
    assert "numpy.add" not in [name for _, name, _, _ in ops(records)]


def test_star_arguments_and_containers(bench: Bench) -> None:
    records = bench.trace(
        """\
        import numpy as np
        def run():
            a = np.ones(2)
            pair = [a, a * 2]
            b = np.stack(pair, **{"axis": 0})
            c = np.maximum(*pair)
            q, r = np.linalg.qr(np.eye(2))
            return b, c
        """,
        "ops",
    )

    found = {name: (line, inputs, outputs) for line, name, inputs, outputs in ops(records)}
    assert found["numpy.stack"] == (5, 2, 1)
    assert found["numpy.maximum"] == (6, 2, 1)
    assert found["numpy.linalg.qr"] == (7, 1, 2)


def test_values_are_kept(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys
    import types

    kept: list[tuple[str, Any]] = []
    monkeypatch.setitem(
        sys.modules, "reprocheck", types.SimpleNamespace(record=lambda name, value: kept.append((name, value.copy())))
    )

    bench.trace("import numpy as np\ndef run():\n    a = np.ones(2)\n    return a + 1\n", "ops", keep={"op": 1})

    assert [(name, value.tolist()) for name, value in kept] == [
        ("@trace/in[0]", [1.0, 1.0]),
        ("@trace/out[0]", [2.0, 2.0]),
    ]


def test_files_that_are_imported_on_the_way(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    bench.write("import numpy as np\n\ndef grow(x):\n    return np.exp(x)\n", "imported_on_the_way.py")
    monkeypatch.syspath_prepend(str(bench.folder))
    monkeypatch.delitem(sys.modules, "imported_on_the_way", raising=False)

    records = bench.trace(
        """\
        import numpy as np
        def run():
            import imported_on_the_way as tools
            return tools.grow(np.ones(2)), type(tools.__loader__).__name__
        """,
        "ops",
    )

    assert [name for _, name, _, _ in ops(records)] == ["numpy.ones", "numpy.exp"]
    assert bench.result[1] == "SourceFileLoader"
    assert not any(type(finder).__name__ == "Later" for finder in sys.meta_path)


def test_inputs_that_a_call_changes_are_not_kept(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the call is recorded they hold what it left in them, which is not what it was given."""
    import sys
    import types

    kept: list[str] = []
    monkeypatch.setitem(sys.modules, "reprocheck", types.SimpleNamespace(record=lambda name, _: kept.append(name)))

    bench.trace(
        "import numpy as np\ndef run():\n    a = np.ones(2)\n    np.copyto(a, 3.0)\n    return a\n",
        "ops",
        keep={"op": 1},
    )

    assert kept == ["@trace/out[0]"]

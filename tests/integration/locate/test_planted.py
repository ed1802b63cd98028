"""Planted divergences in numpy, in Python's own numbers and in a stand-in for cupy, in real interpreters."""

from __future__ import annotations

from pathlib import Path

import pytest

from reprocheck.errors import UsageError
from reprocheck.model import Target
from tests.conftest import Lab
from tests.integration.locate.planting import Plant, located, marked

CUPY = (Path(__file__).parent / "standin_cupy.py").read_text(encoding="utf-8")

PLANTS = [
    Plant(
        name="number-in-a-loop",
        toolbox="plant.value = 2.0 ** -40",
        work="""
            import plant
            def step(x, i):
                if i == 3:
                    x += getattr(plant, "value", 0.0)  # HERE
                return x * 2
            def run():
                total = 1.0
                for i in range(5):
                    total = step(total, i)
                return total
        """,
        line={"kind": "set", "variable": "x", "iteration": 4, "loop_line": 9, "call": 4},
    ),
    Plant(
        name="while-loop",
        toolbox="import math; sqrt = math.sqrt; math.sqrt = lambda x: sqrt(x) * (1 + 2 ** -52 * (x < 3))",
        work="""
            import math
            def run():
                x = 1000.0
                while x > 1.5:
                    x = math.sqrt(x)  # HERE
                return x
        """,
        line={"variable": "x", "iteration": 4, "loop_line": 5},
        origin={"kind": "replaced", "operator": "math.sqrt"},
    ),
    Plant(
        name="numpy-function-replaced",
        toolbox="""
import numpy
dot = numpy.dot
numpy.dot = lambda a, b: dot(a, b) * (1 + 2 ** -52)
""",
        work="""
            import numpy as np
            def run():
                a = np.arange(9.0).reshape(3, 3)
                b = np.dot(a, a)  # HERE
                return b.sum()
        """,
        line={"variable": "b"},
        origin={"kind": "replaced", "operator": "numpy.dot", "other_operator": "b.<lambda>"},
    ),
    Plant(
        name="toolbox-function",
        toolbox="plant.gain = 1.0000000000000002",
        work="""
            import numpy as np
            import c
            def run():
                x = np.linspace(0.1, 1, 5)
                y = c.scale(x)  # HERE
                return y + 1
        """,
        files={"site-packages/c.py": "import plant\n\ndef scale(x):\n    return x * getattr(plant, 'gain', 1.0)\n"},
        options={"imports": ("a", "b", "c"), "order": [("a", "b", "c"), ("b", "a", "c")]},
        line={"variable": "y"},
        origin={"kind": "operator", "operator": "c.scale", "inputs_equal": True},
    ),
    Plant(
        name="toolbox-function-in-place",
        toolbox="plant.gain = 1.0000000000000002",
        work="""
            import numpy as np
            import c
            def run():
                x = np.linspace(0.1, 1, 5)
                c.scale_(x)  # HERE
                return x
        """,
        files={"site-packages/c.py": "import plant\n\ndef scale_(x):\n    x *= getattr(plant, 'gain', 0.5)\n"},
        options={"imports": ("a", "b", "c"), "order": [("a", "b", "c"), ("b", "a", "c")]},
        line={"kind": "changed", "variable": "x"},
        origin={"kind": "operator", "operator": "c.scale_"},
    ),
    Plant(
        name="numpy-subclass-operator",
        toolbox="plant.gain = 1.0000000000000002",
        work="""
            import numpy as np
            import c
            def run():
                x = np.linspace(0.1, 1, 5).view(c.Signal)
                y = np.linspace(0.1, 1, 5)
                z = y @ y
                w = x @ y  # HERE
                return np.asarray(w) * z
        """,
        files={
            "site-packages/c.py": """
                import numpy as np
                import plant
                class Signal(np.ndarray):
                    def __matmul__(self, other):
                        return np.asarray(self) @ other * getattr(plant, "gain", 1.0)
            """
        },
        options={"imports": ("a", "b", "c"), "order": [("a", "b", "c"), ("b", "a", "c")]},
        line={"variable": "w"},
        origin={"kind": "operator", "operator": "numpy @"},
    ),
    Plant(
        name="numpy-generator-state",
        toolbox="import c; c.rng.random()",
        work="""
            import c
            def run():
                x = c.rng.normal(size=3)  # HERE
                return x * 2
        """,
        files={"site-packages/c.py": "import numpy\n\nrng = numpy.random.default_rng(0)\n"},
        line={"variable": "x"},
        origin={"kind": "random", "operator": "numpy.Generator.normal"},
    ),
    Plant(
        name="data-read",
        toolbox="plant.scale = 2.0",
        work="""
            import numpy as np
            import c
            def run():
                x = np.ones(3)
                table = c.load()  # HERE
                return x * table
        """,
        files={
            "site-packages/c.py": "import numpy\nimport plant\n\ndef load():\n"
            "    return numpy.full(3, getattr(plant, 'scale', 1.0))\n"
        },
        options={"imports": ("a", "b", "c"), "order": [("a", "b", "c"), ("b", "a", "c")]},
        line={"variable": "table"},
        origin={"kind": "data", "operator": "c.load"},
    ),
    Plant(
        name="global-before-the-workload",
        toolbox="plant.scale = 2.0",
        work="""
            import numpy as np
            import plant
            SCALE = np.full(3, getattr(plant, "scale", 1.0))
            def run():
                x = np.ones(3)
                y = x * SCALE  # HERE
                return y
        """,
        line={"kind": "met", "variable": "SCALE"},
        origin={"kind": "input", "operator": "numpy *"},
    ),
    Plant(
        name="attribute-of-an-object",
        toolbox="plant.scale = 2.0",
        work="""
            import numpy as np
            import plant
            class Filter:
                def __init__(self):
                    self.weights = np.ones(3)
                def tune(self):
                    self.weights = self.weights * getattr(plant, "scale", 1.0)  # HERE
                def apply(self, x):
                    return self.weights @ x
            def run():
                f = Filter()
                f.tune()
                return f.apply(np.ones(3))
        """,
        line={"kind": "set", "variable": "self.weights", "function": "Filter.tune"},
        origin={"kind": "input", "operator": "numpy *"},
    ),
    Plant(
        name="other-lines",
        toolbox="plant.fast = True",
        work="""
            import plant
            def run():
                x = 1.0
                if hasattr(plant, "fast"):
                    x = x * 3.0
                else:
                    x = x * 2.0  # HERE
                return x
        """,
        line={"kind": "path"},
    ),
    Plant(
        name="item-of-a-list",
        toolbox="plant.value = 5.0",
        work="""
            import plant
            def run():
                xs = [1.0, 2.0, 3.0]
                n = 2
                xs[n] = getattr(plant, "value", 4.0)  # HERE
                return xs
        """,
        line={"kind": "changed", "variable": "xs[2]"},
    ),
    Plant(
        name="over-several-lines",
        toolbox="plant.value = 5.0",
        work="""
            import plant
            def run():
                x = dict(  # HERE
                    a=1.0,
                    b=getattr(
                        plant, "value", 4.0
                    ),
                )
                return x
        """,
        line={"kind": "set", "variable": "x.b"},
    ),
    Plant(
        name="generator-function",
        toolbox="plant.value = 5.0",
        work="""
            import plant
            def numbers():
                for n in range(4):
                    y = float(n)
                    if n == 2:
                        y = getattr(plant, "value", 4.0)  # HERE
                    yield y
            def run():
                total = 0.0
                for y in numbers():
                    total += y
                return total
        """,
        line={"kind": "set", "variable": "y", "function": "numbers", "iteration": 3, "loop_line": 4},
    ),
    Plant(
        name="script",
        toolbox="plant.value = 2.0 ** -50",
        work="""
            import plant
            x = 1.0
            for i in range(4):
                x = x * 1.5
                if i == 1:
                    x = x + getattr(plant, "value", 0.0)  # HERE
            result = x
        """,
        target="work.py",
        line={"kind": "set", "variable": "x", "iteration": 2, "loop_line": 4},
    ),
    Plant(
        name="script-with-numpy",
        toolbox="import numpy; solve = numpy.linalg.solve; numpy.linalg.solve = lambda a, b: solve(a, b) + 1e-9",
        work="""
            import numpy as np
            a = np.eye(3) * 2
            b = np.ones(3)
            x = np.linalg.solve(a, b)  # HERE
            y = x * 2
        """,
        target="work.py",
        line={"kind": "set", "variable": "x"},
        origin={"kind": "replaced", "operator": "numpy.linalg.solve"},
    ),
    Plant(
        name="cupy-operator",
        toolbox="plant.bump = 'matmul'",
        work="""
            import cupy as cp
            def run():
                a = cp.asarray([[1.0, 2.0], [3.0, 4.0]])
                b = a + 1
                c = a @ b  # HERE
                return c
        """,
        files={"site-packages/cupy.py": CUPY},
        options={"imports": ("a", "b", "cupy"), "order": [("a", "b", "cupy"), ("b", "a", "cupy")]},
        line={"variable": "c"},
        origin={"kind": "operator", "operator": "cupy @"},
    ),
    Plant(
        name="cupy-function",
        toolbox="plant.bump = 'solve'",
        work="""
            import cupy as cp
            def run():
                a = cp.asarray([[1.0, 2.0], [3.0, 4.0]])
                x = cp.linalg.solve(a, cp.asarray([1.0, 2.0]))  # HERE
                return [x, cp.exp(x)]
        """,
        files={"site-packages/cupy.py": CUPY},
        options={"imports": ("a", "b", "cupy"), "order": [("a", "b", "cupy"), ("b", "a", "cupy")]},
        line={"variable": "x"},
        origin={"kind": "operator", "operator": "cupy.linalg.solve", "inputs_equal": True},
    ),
    Plant(
        name="cupy-raw-kernel",
        toolbox="plant.bump = 'kernel'",
        work="""
            import cupy as cp
            saxpy = cp.RawKernel("…", "saxpy")
            def run():
                x = cp.asarray([1.0, 2.0])
                y = cp.asarray([3.0, 4.0])
                saxpy((1,), (2,), (2.0, x, y))  # HERE
                return y
        """,
        files={"site-packages/cupy.py": CUPY},
        options={"imports": ("a", "b", "cupy"), "order": [("a", "b", "cupy"), ("b", "a", "cupy")]},
        line={"kind": "changed", "variable": "y"},
        origin={"kind": "operator", "operator": "cupy.RawKernel(saxpy)"},
    ),
]


@pytest.mark.parametrize("plant", PLANTS, ids=str)
def test_the_named_place_is_the_planted_one(plant: Plant, lab: Lab) -> None:
    study = located(plant, lab)

    place = marked(lab, plant)
    line, origin = study.first_line, study.origin
    assert study.traced is not None
    assert study.traced.observer == "agrees"
    assert line is not None
    assert (line.file, line.line) == place
    assert {name: getattr(line, name) for name in plant.line or {}} == plant.line
    if plant.origin is not None:
        assert origin is not None
        assert {name: getattr(origin, name) for name in plant.origin} == plant.origin
        assert (origin.file, origin.line) == place


def test_what_varies_anyway_is_not_blamed(lab: Lab) -> None:
    plant = Plant(
        name="noise",
        toolbox="plant.value = 5.0",
        work="""
            import os, time
            import plant
            def run():
                started = time.perf_counter()
                noise = float(os.urandom(1)[0])
                x = 2.0
                x = x * getattr(plant, "value", 4.0)  # HERE
                elapsed = time.perf_counter() - started
                return x
        """,
    )

    study = located(plant, lab)

    assert study.first_line is not None
    assert (study.first_line.file, study.first_line.line) == marked(lab, plant)
    assert study.first_line.variable == "x"


def test_numpy_is_traced_in_test_files_that_pytest_loads_itself(lab: Lab) -> None:
    plant = Plant(
        name="pytest",
        toolbox="import numpy\ndot = numpy.dot\nnumpy.dot = lambda a, b: dot(a, b) * (1 + 2 ** -52)",
        target="test_work.py",
        work="""
            import numpy as np
            import pytest

            @pytest.fixture
            def data():
                return np.arange(9.0).reshape(3, 3)

            def test_it(data, record):
                x = np.add(data, 1)
                y = np.dot(x, data)  # HERE
                assert y.sum() > 0
                record("y", y)
        """,
    )
    file = lab.folder / "test_work.py"
    # Without hypothesis' plugin, which is imported, asserts rewritten, in every trial.
    quick = ("-p", "no:hypothesispytest")
    target = Target(text="test_work.py::test_it", kind="pytest", path=str(file), name="test_it", args=quick)

    study = located(plant, lab, target)

    assert study.origin is not None
    assert study.first_line is not None
    assert (study.origin.kind, study.origin.operator) == ("replaced", "numpy.dot")
    assert (
        (study.origin.file, study.origin.line) == (study.first_line.file, study.first_line.line) == marked(lab, plant)
    )


def test_where_identical_runs_differ(lab: Lab) -> None:
    lab.write(
        a="",
        b="",
        work="""
            import os
            def run():
                x = 1.0
                y = x + int.from_bytes(os.urandom(6), "big")
                return y
        """,
    )

    study = lab.check(trace="auto", max_repeat=3)

    assert study.verdict == "noisy"
    assert study.first_line is not None
    assert (study.first_line.line, study.first_line.variable) == (5, "y")
    assert study.traced is not None
    assert study.traced.orders[0] == study.traced.orders[1]


def test_a_divergence_that_tracing_ends(lab: Lab) -> None:
    """A workload that looks at the trace function: the honest answer is that nothing can be said."""
    plant = Plant(
        name="shy",
        toolbox="plant.value = 5.0",
        work="""
            import sys
            import plant
            def run():
                traced = sys.gettrace() is not None or "__reprocheck_end__" in vars(sys.modules["builtins"])
                if hasattr(sys, "monitoring"):
                    traced = traced or any(sys.monitoring.get_tool(n) == "reprocheck" for n in range(6))
                return 1.0 if traced else getattr(plant, "value", 4.0)
        """,
    )

    study = located(plant, lab)

    assert study.traced is not None
    assert study.traced.observer == "vanished"
    assert study.first_line is None
    assert study.origin is None
    assert any("makes the divergence vanish" in note for note in study.traced.notes)
    assert any("`result` is the first output" in note for note in study.traced.notes)


def test_a_workload_that_tracing_breaks_is_traced_more_lightly(lab: Lab) -> None:
    plant = Plant(
        name="fragile",
        toolbox="plant.value = 5.0",
        work="""
            import plant
            def inner(x):
                return x + 1
            def run():
                assert len(inner.__code__.co_names) == 0, "somebody changed my code"
                x = getattr(plant, "value", 4.0)  # HERE
                return inner(x)
        """,
    )

    study = located(plant, lab)

    assert study.traced is not None
    assert study.traced.observer == "failed"
    assert any("somebody changed my code" in note for note in study.traced.notes)
    assert study.first_line is not None
    assert (study.first_line.file, study.first_line.line) == marked(lab, plant)


def test_nothing_is_traced_without_a_divergence(lab: Lab) -> None:
    lab.write(a="", b="", work="def run():\n    return 1.0")

    assert lab.check(explain=True).traced is None


def test_traces_of_equal_orders_can_be_exported(lab: Lab) -> None:
    lab.write(a="", b="", work="import numpy as np\ndef run():\n    x = np.ones(3)\n    return x @ x")

    study = lab.check(trace_export="traces", repeat=1, observer=False, trace="auto")

    files = sorted(path.name for path in (lab.folder / "traces").iterdir())
    assert files == ["1-a+b.lines.tsv", "1-a+b.ops.tsv", "2-b+a.lines.tsv", "2-b+a.ops.tsv"]
    first, second = ((lab.folder / "traces" / name).read_text(encoding="utf-8") for name in files[1::2])
    assert first == second
    rows = [line.split("\t") for line in first.splitlines()]
    assert rows[0][:4] == ["operator", "phase", "module", "place"]
    assert [row[0] for row in rows[1:]] == ["numpy.ones", "numpy @"]
    assert all(len(row) == len(rows[0]) for row in rows)
    assert study.traced is not None
    assert study.first_line is None
    assert study.origin is None


def test_trace_modes(lab: Lab) -> None:
    plant = PLANTS[2]
    lines = located(Plant(**{**vars(plant), "options": {"trace": "lines"}}), lab)

    assert lines.traced is not None
    assert lines.traced.modes == ("lines",)
    assert lines.first_line is not None
    assert lines.origin is None


def test_unknown_trace(lab: Lab) -> None:
    lab.write(a="", b="", work="def run():\n    return 1.0")

    with pytest.raises(UsageError, match="`everything` can't be traced; choose one of auto, lines, ops, kernels, none"):
        lab.check(trace="everything")


def test_export_that_cannot_be_written(lab: Lab) -> None:
    lab.write(a="", b="", work="def run():\n    return 1.0")
    (lab.folder / "taken").write_text("", encoding="utf-8")

    with pytest.raises(UsageError, match=r"--trace-export .*taken.* can't be written"):
        lab.check(trace_export="taken")


def test_threads_are_named_as_not_traced(lab: Lab) -> None:
    plant = Plant(
        name="thread",
        toolbox="plant.value = 5.0",
        work="""
            import threading
            import plant
            def run():
                found = []
                worker = threading.Thread(target=lambda: found.append(getattr(plant, "value", 4.0)))
                worker.start()
                worker.join()
                x = found[0] * 2.0
                return x
        """,
    )

    study = located(plant, lab)

    assert study.traced is not None
    assert "what a thread started at work.py:7 does is not traced" in study.traced.notes


def test_merely_importing_a_subject(lab: Lab) -> None:
    lab.write(
        state="value = 1.0",
        a="",
        b="import state\nstate.value = 2.0",
        work="""
            import state
            def run():
                x = 3.0
                y = x * state.value
                return y
        """,
    )

    study = lab.check(presence=True, trace="auto")

    assert study.verdict == "identical"
    assert study.exit_code == 1
    assert study.traced is not None
    assert study.traced.orders == (("a", "b"), ())
    assert study.traced.observer == "agrees"
    assert study.first_line is not None
    assert (study.first_line.line, study.first_line.variable, study.first_line.kind) == (5, "state.value", "met")


def test_a_cut_trace_says_so_and_shows_what_it_has(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    plant = Plant(
        name="long",
        toolbox="plant.value = 5.0",
        work="""
            import plant
            def run():
                x = getattr(plant, "value", 4.0)  # HERE
                for n in range(400_000):
                    x = x + 1
                return x
        """,
    )
    monkeypatch.setattr("reprocheck.explain.locate.passes.LEAST_SECONDS", 1e-3)
    monkeypatch.setattr("reprocheck.explain.locate.passes.TIMES_AS_LONG", 0)

    study = located(plant, lab)

    assert study.traced is not None
    assert "the trace stops here: it takes too long" in study.traced.notes
    assert study.traced.lines < 1000
    assert study.first_line is not None
    assert (study.first_line.file, study.first_line.line) == marked(lab, plant)

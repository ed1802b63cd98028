"""The line trace, on whatever interpreter runs the tests (`settrace` before 3.12, `sys.monitoring` from then on)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.trace.conftest import Bench, kinds


def told(records: list[dict[str, Any]], field: str = "v") -> list[tuple[int, str, str]]:
    """(line, variable, value) of everything that was set."""
    return [
        (record["s"][0], name, fact[2])
        for record in kinds(records, "line")
        for name, fact in record.get(field, {}).items()
    ]


def test_variables_that_a_line_sets(bench: Bench) -> None:
    records = bench.trace(
        """\
        def run():
            x = 1
            y = x + 1.5
            name = "no number"
            return y
        """,
        "lines",
    )

    assert told(records) == [(2, "x", "1"), (3, "y", (2.5).hex()), (5, "return value", (2.5).hex())]


def test_loops_are_counted(bench: Bench) -> None:
    records = bench.trace(
        """\
        def run():
            total = 0
            for i in range(3):
                for j in range(2):
                    total += 1
            while total > 4:
                total -= 1
            return total
        """,
        "lines",
    )

    seen = [(r["s"][0], r["it"]) for r in kinds(records, "line") if "total" in r.get("v", {}) and r["s"][0] in (5, 7)]
    inner = [(5, [(3, i), (4, j)]) for i in (1, 2, 3) for j in (1, 2)]
    assert seen == [*inner, (7, [(6, 1)]), (7, [(6, 2)])]


def test_loops_of_callers_are_known(bench: Bench) -> None:
    records = bench.trace(
        """\
        def step(x):
            y = x * 2
            return y
        def run():
            x = 1
            for n in range(3):
                x = step(x)
            return x
        """,
        "lines",
    )

    inside = [(r["call"], r["it"]) for r in kinds(records, "line") if r["s"] == (2, "step")]
    assert inside == [(1, [(6, 1)]), (2, [(6, 2)]), (3, [(6, 3)])]


def test_a_loop_entered_again_counts_from_one(bench: Bench) -> None:
    records = bench.trace(
        """\
        def run():
            x = 0
            for a in range(2):
                for b in range(2):
                    x += 1
        """,
        "lines",
    )

    assert [r["it"][1][1] for r in kinds(records, "line") if r["s"][0] == 5] == [1, 2, 1, 2]


def test_changes_in_place(bench: Bench) -> None:
    records = bench.trace(
        """\
        def grow(xs):
            xs.append(3)
        def run():
            xs = [1, 2]
            grow(xs)
            xs[0] = 9
            return None
        """,
        "lines",
    )

    changed = told(records, "c")
    assert (2, "xs[2]", "3") in changed
    assert (5, "xs[2]", "3") in changed
    assert (6, "xs[0]", "9") in changed


def test_first_meetings_are_told_before_the_line_runs(bench: Bench) -> None:
    records = bench.trace(
        """\
        STATE = {"n": 1}
        def run():
            STATE["n"] = 2
            return None
        """,
        "lines",
    )

    (record,) = [r for r in kinds(records, "line") if r["s"][0] == 3]
    assert record["r"]["STATE.n"][2] == "1"
    assert record["c"]["STATE.n"][2] == "2"


def test_attributes_are_read_without_running_code(bench: Bench) -> None:
    records = bench.trace(
        """\
        class Thing:
            def __init__(self):
                self.value = 1.0
                self.reads = 0
            @property
            def tricky(self):
                self.reads += 1
                return 5.0
        def run():
            thing = Thing()
            thing.value = thing.value + 1
            x = thing.tricky
            return thing.reads
        """,
        "lines",
    )

    assert bench.result == 1
    assert (11, "thing.value", (2.0).hex()) in told(records)


def test_a_statement_over_several_lines_counts_once(bench: Bench) -> None:
    records = bench.trace(
        """\
        def run():
            x = sum(
                [
                    1,
                    2,
                ]
            )
            return x
        """,
        "lines",
    )

    assert [record["s"][0] for record in kinds(records, "line")] == [2, 8]


def test_generators_go_on_where_they_were(bench: Bench) -> None:
    records = bench.trace(
        """\
        def numbers():
            for n in range(3):
                y = n * 2
                yield y
        def run():
            return sum(numbers())
        """,
        "lines",
    )

    assert [r["it"] for r in kinds(records, "line") if r["s"][0] == 3] == [[(2, 1)], [(2, 2)], [(2, 3)]]


def test_exceptions_pass_through(bench: Bench) -> None:
    records = bench.trace(
        """\
        def fail(n):
            x = n
            raise ValueError(x)
        def run():
            seen = 0
            for n in range(3):
                try:
                    fail(n)
                except ValueError as error:
                    seen += 1
            return seen
        """,
        "lines",
    )

    assert bench.result == 3
    assert [value for line, name, value in told(records) if name == "seen"] == ["0", "1", "2", "3"]


def test_recursion(bench: Bench) -> None:
    records = bench.trace(
        """\
        def down(n):
            if n:
                x = down(n - 1) + 1
                return x
            return 0
        def run():
            return down(3)
        """,
        "lines",
    )

    assert bench.result == 3
    assert [value for line, name, value in told(records) if name == "x"] == ["1", "2", "3"]


def test_other_files_are_not_traced(bench: Bench) -> None:
    bench.write("def helper(x):\n    y = x + 1\n    return y\n", "site-packages/foreign.py")
    bench.write("def helper(x):\n    z = x + 1\n    return z\n", "near.py")
    records = bench.trace(
        """\
        import importlib.util, pathlib
        def load(name):
            path = pathlib.Path(__file__).parent / name
            spec = importlib.util.spec_from_file_location(path.stem, path)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return module
        foreign, near = load("site-packages/foreign.py"), load("near.py")
        def run():
            return foreign.helper(near.helper(1))
        """,
        "lines",
    )

    names = {name for _, name, _ in told(records)}
    assert "z" in names
    assert "y" not in names


def test_arrays_of_numpy(bench: Bench) -> None:
    pytest.importorskip("numpy")
    records = bench.trace(
        """\
        import numpy as np
        def run():
            x = np.arange(3.0)
            x[1] = 7
            y = {"a": [x, x * 2]}
            return None
        """,
        "lines",
    )

    assert [name for _, name, _ in told(records)] == ["x", "y.a[0]", "y.a[1]"]
    assert [(line, name) for line, name, _ in told(records, "c")] == [(4, "x")]


def test_modules_gradients_and_optimisers(bench: Bench) -> None:
    pytest.importorskip("torch")
    records = bench.trace(
        """\
        import torch
        def run():
            torch.manual_seed(0)
            model = torch.nn.Linear(2, 1)
            optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
            loss = model(torch.ones(3, 2)).sum()
            loss.backward()
            optimiser.step()
            return loss.detach()
        """,
        "lines",
    )

    assert {name for line, name, _ in told(records) if line == 4} == {"model.weight", "model.bias"}
    assert {name for line, name, _ in told(records, "c") if line == 7} == {"model.weight.grad", "model.bias.grad"}
    assert {name for line, name, _ in told(records, "c") if line == 8} == {
        "optimiser.param_groups[0].params[0]",
        "optimiser.param_groups[0].params[1]",
    }


def test_memory_that_nobody_filled_has_no_digest(bench: Bench) -> None:
    pytest.importorskip("torch")
    records = bench.trace(
        """\
        import numpy as np
        import torch
        def run():
            x = torch.empty(3)
            y = np.empty(3)
            x.fill_(2)
            y[:] = 3
            return None
        """,
        "lines",
        "ops",
    )

    assert [(line, name, value is None) for line, name, value in told(records)] == [(4, "x", True), (5, "y", True)]
    changed = [(line, name, value is None) for line, name, value in told(records, "c")]
    # What memory happens to hold may be the very values that are filled in.
    assert set(changed) <= {(6, "x", False), (7, "y", False)}


def test_a_value_is_kept_when_asked_for(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys
    import types

    kept: list[tuple[str, Any]] = []
    monkeypatch.setitem(
        sys.modules, "reprocheck", types.SimpleNamespace(record=lambda name, value: kept.append((name, value)))
    )
    source = """\
        def run():
            x = 1.0
            for i in range(3):
                x = x * 2
            return x
        """
    records = bench.trace(source, "lines")
    number = next(r["n"] for r in kinds(records, "line") if r.get("it") == [(3, 2)] and "x" in r.get("v", {}))

    bench.trace(source, "lines", keep={"line": [number, "x"]})

    assert kept == [("@trace/line", 4.0)]

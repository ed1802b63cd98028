"""Studies and run folders made up for the tests of reports: real arrays, real comparisons, invented trials."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from reprocheck.compare.groups import group_records
from reprocheck.compare.outputs import compare_groups
from reprocheck.headline import headline
from reprocheck.model import (
    Arm,
    Cause,
    Change,
    Consequence,
    Event,
    FirstLine,
    Noise,
    NotCompared,
    OperatorOrigin,
    OperatorOutput,
    Origin,
    Output,
    Record,
    Remedy,
    Reproducer,
    Rule,
    Snapshot,
    StateDifference,
    Study,
    Target,
    Tolerance,
    Traced,
    Trial,
    Unaligned,
)
from reprocheck.store.objects import ARRAY, TRACE, ObjectStore
from reprocheck.store.run import RunWriter, Spec

__all__ = ["HOSTILE", "full_study", "make_run", "orders_of", "tiny_study"]

Order = tuple[str, ...]
Arrays = Mapping[str, NDArray[Any]]

HOSTILE = (
    "<script>alert(1)</script>",
    "]]></script><!--",
    '"><img src=x onerror=alert(1)>',
    "\u202egnp.exe\u2066",
    "{{ 7 * 7 }}{% raw %}",
    "a`b`c | d\nsecond line\x00\x1b[31m",
    "::error file=x::y%0A@everyone",
    "$\\frac{a}$ 数値",
    "javascript:alert(1)//" + "x" * 10_240,
)
"""Names that a workload may give its outputs."""

_CODES = {"float32": "F32", "float64": "F64", "int64": "I64", "bool": "BOOL", "float16": "F16"}


def orders_of(*subjects: str) -> list[Order]:
    """All orders of some subjects."""
    return list(itertools.permutations(subjects))


def tiny_study(**changes: Any) -> Study:
    """The smallest study: two orders that agree on one output."""
    target = Target(text="work.py::run", kind="function", path="/home/jane doe/secret/work.py", name="run")
    study = Study(
        reprocheck_version="0",
        verdict="identical",
        exit_code=0,
        headline="",
        reason="all outcomes are equal",
        workload=target.text,
        target=target,
        subjects=("a", "b"),
        subjects_from="--imports",
        orders=tuple(
            Arm(order=order, effective_order=order, group="A", groups=("A",) * 3, trials=3)
            for order in orders_of("a", "b")
        ),
        plan="all: 2 orders of 2 subjects",
        groups=(),
        outputs=(),
        noise=Noise(p_value=None, repeats=3, trials=6, bound=0.39, observer="agrees"),
        command=("reprocheck", "run", "work.py::run", "--imports", "a,b"),
        environment={"python": "/home/jane doe/venv/bin/python", "pinned": {"PYTHONHASHSEED": "0"}, "dropped": []},
        started="2026-12-01T10:00:00+0000",
        seconds=3.5,
    )
    changed = msgspec.structs.replace(study, **changes)
    return changed if changed.headline else msgspec.structs.replace(changed, headline=headline(changed))


def make_run(
    folder: Path,
    outcomes: Mapping[Order, Sequence[Arrays]],
    *,
    study: Mapping[str, Any] | None = None,
    records: Mapping[str, Any] | None = None,
    traces: Mapping[Order, Sequence[Mapping[str, Any]]] | None = None,
) -> Study:
    """A run folder in which each order gave, trial by trial, these outputs; returns its study.

    `study` and `records` replace fields; `traces` are the lines of a traced trial of an order.
    """
    orders = list(outcomes)
    base = tiny_study(subjects=orders[0], **{"workload": "work.py::run", **(study or {})})
    spec = Spec(
        target=base.target, workload_digest="", subjects=orders[0], orders=tuple(orders), python="/python", cwd="/"
    )
    kept = []
    with RunWriter(folder, spec) as writer:
        known: dict[tuple[str, int], Output] = {}
        for order, trials in outcomes.items():
            for repeat, arrays in enumerate(trials):
                trial = Trial(order=order, repeat=repeat)
                outputs = tuple(_output(name, value, writer.objects, folder, known) for name, value in arrays.items())
                record = Record(
                    trial=trial,
                    effective_order=order,
                    ok=True,
                    outputs=outputs,
                    python={"version": "3.11.7", "implementation": "cpython"},
                    seconds=2.0,
                    **_story(order),
                )
                record = msgspec.structs.replace(record, **(records or {}))
                writer.add(record)
                kept.append(record)
        for order, lines in (traces or {}).items():
            writer.add(_traced(order, lines, writer.objects, folder))
        grouping = group_records(kept)
        by_group = {
            group.id: {output.name: output for output in kept[grouping.examples[group.id]].outputs}
            for group in grouping.groups
        }
        differences, groups = compare_groups(
            grouping.groups, by_group, grouping.reference(), writer.objects, lambda _: Tolerance()
        )
        found: dict[Order, list[str]] = {}
        for group, record in zip(grouping.ids, kept, strict=True):
            found.setdefault(record.trial.order, []).append(group)
        diverges = len(groups) > 1
        made = msgspec.structs.replace(
            base,
            verdict="order-dependent" if diverges else "identical",
            exit_code=1 if diverges else 0,
            reason="each order is stable over its repeats, and orders disagree" if diverges else base.reason,
            plan=f"all: {len(orders)} orders of {len(orders[0])} subjects",
            orders=tuple(
                Arm(
                    order=order,
                    effective_order=order,
                    group=ids[0] if len(set(ids)) == 1 else None,
                    groups=tuple(ids),
                    trials=len(ids),
                )
                for order, ids in found.items()
            ),
            groups=groups,
            outputs=differences,
            noise=Noise(p_value=0.008 if diverges else None, repeats=3, trials=len(kept), observer="agrees"),
            run_dir=str(folder),
            **{name: value for name, value in (study or {}).items() if name != "workload"},
        )
        made = msgspec.structs.replace(made, headline=headline(made))
        writer.finish(made)
    return made


def _output(
    name: str, value: NDArray[Any], objects: ObjectStore, folder: Path, known: dict[tuple[str, int], Output]
) -> Output:
    """The output `name` with its array stored; each array object is stored, and each output made, once."""
    made = known.get((name, id(value)))
    if made is None:
        stored = known.get(("", id(value))) or _stored(value, objects, folder)
        known["", id(value)] = stored
        made = known[name, id(value)] = msgspec.structs.replace(stored, name=name)
    return made


def _stored(value: NDArray[Any], objects: ObjectStore, folder: Path) -> Output:
    data = np.ascontiguousarray(value).tobytes()
    entry = {"dtype": _CODES[value.dtype.name], "shape": list(value.shape), "data_offsets": [0, len(data)]}
    header = json.dumps({"value": entry}).encode()
    file = folder.with_name(folder.name + ".partial") / "new"
    file.write_bytes(len(header).to_bytes(8, "little") + header + data)
    digest = objects.take(file, ARRAY)
    return Output(name="", dtype=value.dtype.name, shape=value.shape, nbytes=value.nbytes, digest=digest)


def _traced(order: Order, lines: Sequence[Mapping[str, Any]], objects: ObjectStore, folder: Path) -> Record:
    file = folder.with_name(folder.name + ".partial") / "new"
    head = {"k": "trace", "version": 1, "modes": ["ops"], "libraries": {}}
    file.write_text("".join(json.dumps(line) + "\n" for line in (head, *lines)))
    trial = Trial(order=order, repeat=0, capture=False, trace={"modes": ["ops"]})
    return Record(trial=trial, effective_order=order, ok=True, trace=objects.take(file, TRACE))


def _story(order: Order) -> dict[str, Any]:
    """Timeline, events and snapshots of a trial of `order`."""
    timeline, events, snapshots = {"start": 0.001}, [], []
    at = 0.01
    for number, name in enumerate(order):
        timeline[f"importing:{name}"] = at
        where: dict[str, Any] = {
            "file": f"/venv/lib/python3.11/site-packages/{name}/__init__.py",
            "line": 12,
            "module": name,
        }
        events.append(Event(kind="import", at=at, phase=f"t1:{name}", name=name))
        events.append(Event(kind="library", at=at + 0.1, phase=f"t1:{name}", name=f"/venv/lib/lib{name}.so.1", **where))
        if number == 0:
            events.append(
                Event(kind="putenv", at=at + 0.2, phase=f"t1:{name}", name="OMP_NUM_THREADS", value=name, **where)
            )
        at += 0.4
        timeline[f"imported:{name}"] = at
        snapshots.append(Snapshot(phase=f"t1:{name}", at=at, ms=1.0, kinds={}))
        at += 0.01
    objects = [
        {"path": f"/venv/lib/lib{name}.so.1", "soname": f"lib{name}.so.1", "build_id": "ab" * 20} for name in order
    ]
    libraries = {"objects": objects, "binding.torch/lib/libtorch_cpu.so.blas": f"/venv/lib/lib{order[0]}.so.1"}
    snapshots.append(Snapshot(phase="t2", at=at, ms=9.0, kinds={"libraries": libraries}))
    timeline |= {"workload": at, "returned": at + 1.0, "saved": at + 1.1, "end": at + 1.2}
    torch = {
        "alloc.0.reserved": 64 << 20,
        "alloc.0.allocated": (32 + len(order[0])) << 20,
        "alloc.0.largest_free_block": 20 << 20,
        "alloc.0.segments": 4,
        "alloc.0.free_blocks": 3,
    }
    snapshots.append(Snapshot(phase="t3", at=at + 1.1, ms=9.0, kinds={"torch": torch}))
    return {"timeline": timeline, "events": tuple(events), "snapshots": tuple(snapshots)}


def full_study(folder: Path) -> Study:
    """A run folder with a finding of every kind, on `mkl`, `torch` and `toolbox`."""
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(96, 64)).astype(np.float32)
    other = matrix.copy()
    other[20:40, 10:30] *= np.float32(1 + 1e-6)
    other[70, 50] = np.nan
    curve = np.cumsum(rng.normal(size=2000))
    moved = curve.copy()
    moved[1200:] += 1e-9
    cube = rng.normal(size=(5, 24, 32))
    pushed = cube.copy()
    pushed[3, 4:9] += 1e-12
    same = np.arange(12)
    good: Arrays = {"step.loss": curve, "step.weights": matrix, "cube": cube, "ids": same}
    bad: Arrays = {"step.loss": moved, "step.weights": other, "cube": pushed, "ids": same}
    outcomes = {
        order: [bad if order.index("toolbox") < order.index("torch") else good] * 3
        for order in orders_of("mkl", "torch", "toolbox")
    }
    orders = list(outcomes)
    changes = tuple(
        Change(
            group=group,
            order=order,
            value=value,
            phase=f"t1:{by}",
            event=Event(
                kind="putenv",
                at=0.21,
                phase=f"t1:{by}",
                name="OMP_NUM_THREADS",
                value=value,
                file=str(Path(np.__file__).parent / "__init__.py"),
                line=30,
                module=by,
            ),
        )
        for group, order, value, by in (("A", orders[0], "absent", "mkl"), ("B", orders[1], "1", "toolbox"))
    )
    states = (
        StateDifference(
            key="environ.python.OMP_NUM_THREADS",
            phase="t2",
            severity="numeric",
            why="OpenMP's number of threads, read when its runtime starts.",
            changes=changes,
        ),
        StateDifference(
            key="libraries.family.blas",
            phase="t2",
            severity="latent",
            why="The objects that provide this library, in load order.",
            changes=tuple(
                msgspec.structs.replace(change, value=value, event=None)
                for change, value in zip(
                    changes, (["/venv/lib/libmkl.so"], ["/venv/lib/libmkl.so", "/venv/lib/libblas.so"]), strict=True
                )
            ),
        ),
    )
    cause = Cause(
        key="environ.python.OMP_NUM_THREADS",
        kind="environment",
        status="confirmed",
        text="`OMP_NUM_THREADS` is 1 when `toolbox` comes before `torch`: setting it flips the outcome, both ways",
        good="absent",
        bad="1",
        groups=("A", "B"),
        orders=(orders[0], orders[4]),
        event=Origin(by="toolbox", file=str(Path(np.__file__).parent / "__init__.py"), line=30),
        tried=("`OMP_NUM_THREADS` unset in `toolbox,mkl,torch`: A", "`OMP_NUM_THREADS=1` in `mkl,torch,toolbox`: B"),
        trials=8,
    )
    line = FirstLine(
        kind="set",
        text="work.py:31, iteration 4 of the loop at 29 is the first line after which a variable differs, `weights`: "
        "`weights = weights - rate * grad`",
        file="/home/jane doe/secret/work.py",
        line=31,
        source="weights = weights - rate * grad",
        variable="weights",
        iteration=4,
        loop_line=29,
        dtype="float32",
        shape=(96, 64),
    )
    origin = OperatorOrigin(
        kind="operator",
        text="operator 3, `aten.mm`, was given equal inputs and gave another output",
        operator="aten.mm",
        index=3,
        module="encoder.layers.0",
        file="/home/jane doe/secret/work.py",
        line=31,
        source="grad = features.T @ error",
        inputs_equal=True,
        inputs=("float32[96, 64]", "float32[64, 8]"),
        output=OperatorOutput(name="output 0", dtype="float32", shape=(96, 8)),
        repeated=1,
    )
    return make_run(
        folder,
        outcomes,
        study={
            "workload": "work.py::run",
            "state_differences": states,
            "causes": (cause,),
            "consequences": (Consequence(key="openmp.libgomp.max_threads", cause=cause.key, good=2, bad=1),),
            "rule": Rule(
                sentence="`toolbox` before `torch` gives group B, all other orders group A",
                kind="order",
                pair=("toolbox", "torch"),
                swap=(orders[0], orders[1]),
                context=("mkl",),
                explained=6,
                total=6,
                held_back=2,
            ),
            "remedy": Remedy(
                text="set `OMP_NUM_THREADS=1` before Python starts",
                agrees=True,
                kind="environment",
                orders=6,
                tried_trials=12,
                snippets={"shell": "export OMP_NUM_THREADS=1", "Dockerfile": "ENV OMP_NUM_THREADS=1"},
                failed=("importing `torch` first: two orders still differ",),
                untried=("another release of `toolbox` (1.7 is installed) may not do this; not tried",),
            ),
            "reproducer": Reproducer(
                path="reproduce.py", reproduces=True, text="import os\nprint('A' if 1 else 'B')\n"
            ),
            "first_line": line,
            "origin": origin,
            "inherited": 40,
            "unaligned": (
                Unaligned(kind="inserted", operator="aten.copy_", text="only the second order ran `aten.copy_`"),
            ),
            "traced": Traced(
                orders=(orders[0], orders[4]),
                modes=("lines", "ops"),
                observer="agrees",
                operators=9,
                lines=80,
                trials=6,
            ),
            "not_compared": (NotCompared(name="model", reason="a `Module` holds no values of its own"),),
            "notes": ("seed 7 was set before the workload",),
        },
        traces={orders[0]: _operators("x"), orders[4]: _operators("y")},
    )


def _operators(result: str) -> list[dict[str, Any]]:
    """Nine operators of which the one numbered 3 gives `result`, and all later ones depend on it."""
    lines: list[dict[str, Any]] = [
        {"k": "site", "id": 0, "file": "/home/jane doe/secret/work.py", "line": 31, "function": "run"}
    ]
    before = "in"
    for number in range(9):
        after = f"{result}{number}" if number >= 3 else f"d{number}"
        operator = {
            "k": "op",
            "n": number,
            "op": "aten.mm" if number == 3 else "aten.add",
            "in": [["float32", [96, 64], before]],
            "out": [["float32", [96, 8], after]],
            "s": 0,
            "m": "encoder.layers.0",
        }
        lines.append(operator)
        before = after
    return lines

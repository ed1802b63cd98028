"""Every verb of the worker's interventions, in a real interpreter: it does what it says, and reports it."""

from __future__ import annotations

import ctypes.util
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from reprocheck.model import Record
from tests.integration.explain.conftest import Bench

QUIET = "def run(): return 1.0"


def act(verb: str, at: str, **fields: Any) -> dict[str, Any]:
    return {"do": verb, "at": at, "id": "x", **fields}


def reports(record: Record) -> list[dict[str, Any]]:
    assert record.ok, record.failure
    return [{key: value for key, value in report.items() if key not in ("do", "id")} for report in record.actions]


def test_environment_before_an_import_and_before_the_workload(bench: Bench) -> None:
    bench.write(
        a="import os\nos.environ['OMP_NUM_THREADS'] = '1'",
        b="import os\nseen = os.environ.get('OMP_NUM_THREADS', 'none')",
        work="import b, os\ndef run(): return {'import': b.seen, 'workload': os.environ['OMP_NUM_THREADS']}",
    )
    changed = bench.trial(
        "ab",
        act("env", "before:b", name="OMP_NUM_THREADS", value=None),
        act("env", "t2", name="OMP_NUM_THREADS", value="3"),
    )
    bench.write(b="seen = 'none'", work="import b\ndef run(): return {'import': b.seen, 'workload': '3'}")
    plain = bench.trial("ba")

    assert reports(changed) == [
        {"when": "before:b", "ok": True, "was": "1", "now": "absent"},
        {"when": "t2", "ok": True, "was": "absent", "now": "3"},
    ]
    assert {o.name: o.digest for o in changed.outputs} == {o.name: o.digest for o in plain.outputs}


def test_environment_of_c_alone(bench: Bench) -> None:
    bench.write(
        a="",
        work="""
            import ctypes, os
            getenv = ctypes.CDLL(None).getenv
            getenv.restype = ctypes.c_char_p
            def run():
                return [str(getenv(b"KMP_BLOCKTIME")), str(os.environ.get("KMP_BLOCKTIME"))]
            """,
    )
    changed = bench.trial("a", act("env", "t0", name="KMP_BLOCKTIME", value="7", where="c"))
    bench.write(work="def run(): return [str(b'7'), 'None']")

    assert reports(changed) == [{"when": "t0", "ok": True, "was": "absent", "now": "7"}]
    assert [o.digest for o in changed.outputs] == [o.digest for o in bench.trial("a").outputs]


def test_moments_inside_an_import(bench: Bench) -> None:
    bench.write(
        {"pkg/__init__.py": "import pkg.one, pkg.two", "pkg/one.py": "", "pkg/two.py": ""},
        other="import sys\nseen = ','.join(name for name in ('pkg.one', 'pkg.two') if name in sys.modules)",
        work="import other\ndef run(): return other.seen",
    )
    between = bench.trial(
        ["pkg"], act("import", "past:pkg.one", name="other"), act("import", "before:none", name="other")
    )
    bench.write(work="def run(): return 'pkg.one'")

    assert reports(between) == [
        {"when": "past:pkg.one", "ok": True, "was": "not loaded"},
        {"when": "before:none", "ok": False, "error": "this moment never came"},
    ]
    assert between.outputs[0].digest == bench.trial(["pkg"]).outputs[0].digest


def test_what_an_action_imported_is_not_loaded_twice(bench: Bench) -> None:
    bench.write(
        counted="import builtins\nbuiltins.count = getattr(builtins, 'count', 0) + 1",
        a="import counted",
        work="import builtins\ndef run(): return float(builtins.count)",
    )
    record = bench.trial("a", act("import", "before:counted", name="counted"))
    bench.write(work="def run(): return 1.0")

    assert record.outputs[0].digest == bench.trial("a").outputs[0].digest


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="bits of MXCSR are spelled out")
def test_floating_point_control(bench: Bench) -> None:
    bench.write(
        a="numbers = [2.2250738585072014e-308, 0.5]\nhalf = numbers[0] * numbers[1]",
        b="numbers = [2.2250738585072014e-308, 0.5]\nhalf = numbers[0] * numbers[1]",
        work="import a, b\ndef run(): return [float(a.half == 0), float(b.half == 0)]",
    )
    record = bench.trial(
        "ab",
        act("fp", "before:a", ftz=True, daz=True),
        act("fp", "before:b", ftz=False, daz=False),
        act("fp", "t2", rounding="up"),
        act("fp", "t2", rounding="nearest"),
    )
    bench.write(work="def run(): return [1.0, 0.0]")

    assert [(r["was"], r["now"], r["ok"]) for r in reports(record)] == [
        ("0x1f80", "0x9fc0", True),
        ("0x9fc0", "0x1f80", True),
        ("0x1f80", "0x5f80", True),
        ("0x5f80", "0x1f80", True),
    ]
    assert [o.digest for o in record.outputs] == [o.digest for o in bench.trial("ab").outputs]


def test_floating_point_of_workers_without_any_is_an_error_in_the_report(bench: Bench) -> None:
    bench.write(a="", work=QUIET)

    (report,) = reports(bench.trial("a", act("fp", "t2", where="workers", ftz=True)))

    assert report["ok"] is False
    assert "no OpenMP runtime is loaded" in report["error"]


def test_random_states_are_told_put_back_and_seeded(bench: Bench) -> None:
    bench.write(a="import random\nrandom.seed(3)", b="", work="import random\ndef run(): return random.random()")
    (told,) = reports(bench.trial("a", act("rng", "t2", of="random")))
    bench.write(a="import random\nrandom.seed(4)")
    restored = bench.trial("ab", act("rng", "t2", of="random", state=told["state"]))
    seeded = bench.trial("ba", act("rng", "workload", of="all", seed=3))
    absent = bench.trial("b", act("rng", "t2", of="numpy"))
    bench.write(a="import random\nrandom.seed(3)")
    plain = bench.trial("ab", env={"AGAIN": "1"})

    assert reports(restored)[0]["ok"] is True
    assert {record.outputs[0].digest for record in (restored, seeded, plain)} == {plain.outputs[0].digest}
    assert reports(absent) == [{"when": "t2", "ok": None, "error": "numpy is not loaded"}]


def test_numpy_state_and_settings(bench: Bench) -> None:
    bench.write(
        a="import numpy\nnumpy.random.seed(5)",
        work="import numpy\ndef run(): return {'x': numpy.random.rand(2), 'e': str(numpy.geterr()['divide'])}",
    )
    (told,) = reports(bench.trial("a", act("rng", "t2", of="numpy")))
    bench.write(a="import numpy\nnumpy.random.seed(6)")
    record = bench.trial(
        "a",
        act("rng", "t2", of="numpy", state=told["state"]),
        act("set", "t2", key="numpy.errstate.divide", value="raise"),
        act("set", "t2", key="numpy.nothing", value=1),
    )
    bench.write(
        work="import numpy\nnumpy.random.seed(5)\ndef run(): return {'x': numpy.random.rand(2), 'e': 'raise'}",
    )

    assert [report["ok"] for report in reports(record)] == [True, True, False]
    assert "no setter for numpy.nothing" in reports(record)[2]["error"]
    assert {o.name: o.digest for o in record.outputs} == {
        o.name: o.digest for o in bench.trial("a", env={"AGAIN": "1"}).outputs
    }


@pytest.mark.parametrize(
    ("key", "value", "reads"),
    [
        ("process.locale.ctype", "C", "__import__('locale').setlocale(__import__('locale').LC_CTYPE)"),
        ("process.gc.threshold", [101, 11, 12], "str(__import__('gc').get_threshold())"),
        ("process.switch_interval", 0.25, "sys.getswitchinterval()"),
        ("process.recursion_limit", 4321, "float(sys.getrecursionlimit())"),
        ("process.start_method", "spawn", "__import__('multiprocessing').get_start_method()"),
        ("process.cwd", "/usr", "__import__('os').getcwd()"),
        ("process.dlopen_flags", 258, "float(sys.getdlopenflags())"),
    ],
)
def test_settings_of_the_process(bench: Bench, key: str, value: Any, reads: str) -> None:
    bench.write(a="", work=f"import sys\ndef run(): return {reads}")

    record = bench.trial("a", act("set", "t2", key=key, value=value))
    plain = bench.trial("a")

    (report,) = reports(record)
    assert (report["ok"], report["now"]) == (True, value)
    assert record.outputs[0].digest != plain.outputs[0].digest


def test_affinity_in_the_kernels_spelling(bench: Bench) -> None:
    first = min(os.sched_getaffinity(0))
    bench.write(a="", work="import os\ndef run(): return float(len(os.sched_getaffinity(0)))")

    (report,) = reports(bench.trial("a", act("set", "t2", key="process.affinity", value=str(first))))

    assert (report["ok"], report["now"]) == (True, [first])


def test_patches_are_undone_and_put_in(bench: Bench) -> None:
    bench.write(
        a="import math\ndef fsum(numbers): return 7.0\nmath.fsum = fsum",
        b="",
        work="import math\ndef run(): return math.fsum([1.0, 2.0])",
    )
    place = {"namespace": "math", "name": "fsum"}
    undone = bench.trial(
        "ab", act("patch", "before:a", **place, mode="remember"), act("patch", "t2", **place, mode="original")
    )
    definition = f"a.fsum ({bench.folder / 'a.py'}:2)"
    put = bench.trial(
        "ab",
        act("patch", "before:a", **place, mode="remember"),
        act("patch", "after:a", **place, mode="original"),
        act("patch", "t2", **place, mode="replacement", definition=definition),
    )
    missing = bench.trial("ab", act("patch", "t2", **place, mode="replacement", definition="a.none (/x.py:1)"))
    plain = bench.trial("ab")

    assert reports(undone)[1] == {"when": "t2", "ok": True, "was": definition, "now": "own"}
    assert undone.outputs[0].digest != plain.outputs[0].digest
    assert [report["now"] for report in reports(put)] == ["own", "own", definition]
    assert put.outputs[0].digest == plain.outputs[0].digest
    assert "does not exist in this process" in reports(missing)[0]["error"]


def test_libraries_are_loaded_first(bench: Bench) -> None:
    if ctypes.util.find_library("z") is None:
        pytest.skip("no zlib to load")
    bench.write(a="", work=QUIET)

    record = bench.trial("a", act("load", "t0", path="libz.so.1", everywhere=True), act("local", "t0"))

    first, second = reports(record)
    assert first["ok"] is True
    assert any("libz.so" in path for path in first["now"])
    assert second["ok"] is True
    scope = next(s for s in record.snapshots if s.phase == "t0").kinds["libraries"]["scope.global"]
    assert any("libz.so" in path for path in scope)


def test_missing_library_is_told(bench: Bench) -> None:
    bench.write(a="", work=QUIET)

    (report,) = reports(bench.trial("a", act("load", "t0", path="libnowhere.so.9", everywhere=False)))

    assert report["ok"] is False
    assert "libnowhere.so.9" in report["error"]


def test_watching_imports_begin_and_end(bench: Bench) -> None:
    bench.write({"pkg/__init__.py": "import pkg.one", "pkg/one.py": "import fractions"}, work=QUIET)

    record = bench.trial(["pkg"], act("watch", "before:pkg", mode="begin"), act("watch", "after:pkg", mode="end"))

    seen = [(place, name) for place, name, _ in reports(record)[1]["now"] if name.startswith(("pkg", "fractions"))]
    assert seen == [
        ("before", "pkg.one"),
        ("before", "fractions"),
        ("past", "fractions"),
        ("past", "pkg.one"),
        ("past", "pkg"),
    ]


def test_looking_closer(bench: Bench) -> None:
    bench.write(a="import math\nmath.fsum = lambda numbers: 0.0", b="", work=QUIET)

    record = bench.trial("ab", act("look", "before:b", readers=["patches"]))

    assert reports(record)[0]["kinds"]["patches"]["math.fsum"].startswith("a.<lambda>")


@pytest.mark.parametrize(
    ("verb", "reads"),
    [
        ("entropy", "float(int.from_bytes(os.urandom(6), 'big')) + __import__('random').random()"),
        ("clock", "time.time() + time.perf_counter() + __import__('datetime').datetime.now().timestamp()"),
        ("address", "float(id(object()))"),
    ],
)
def test_pins_make_runs_alike(bench: Bench, verb: str, reads: str) -> None:
    bench.write(a="", work=f"import os, time\ndef run(): return {reads}")
    actions = (act(verb, "t0"),)

    pinned = {bench.trial("a", *actions, env={"RUN": str(number)}).outputs[0].digest for number in range(3)}
    free = {bench.trial("a", env={"RUN": str(number)}).outputs[0].digest for number in range(3)}

    assert len(pinned) == 1
    assert len(free) == 3


def test_unknown_verb_is_told_and_fails_nothing(bench: Bench) -> None:
    bench.write(a="", work=QUIET)

    (report,) = reports(bench.trial("a", act("juggle", "t2")))

    assert report["ok"] is False
    assert "KeyError" in report["error"]


def interpreters() -> list[str]:
    """Every other Python 3.9 or later that pyenv has here."""
    places = sorted(Path("~/.pyenv/versions").expanduser().glob("3.*/bin/python"))
    recent = [path for path in places if int(path.parts[-3].split(".")[1]) >= 9]
    return [str(path) for path in recent if not str(path).startswith(sys.base_prefix)]


@pytest.mark.parametrize("python", interpreters())
def test_verbs_on_other_interpreters(bench: Bench, python: str) -> None:
    bench.python = python
    bench.write(
        {"pkg/__init__.py": "import pkg.one", "pkg/one.py": "import os\nos.environ['OMP_NUM_THREADS'] = '1'"},
        work="import os\ndef run(): return os.environ['OMP_NUM_THREADS']",
    )

    record = bench.trial(
        ["pkg"],
        act("watch", "before:pkg", mode="begin"),
        act("env", "past:pkg.one", name="OMP_NUM_THREADS", value="5"),
        act("fp", "t2", rounding="nearest"),
        act("set", "t2", key="process.recursion_limit", value=1234),
        act("look", "t2", readers=["patches"]),
        act("watch", "after:pkg", mode="end"),
        act("rng", "t2", of="random", seed=1),
        act("entropy", "t2"),
    )

    assert all(report["ok"] for report in reports(record)), reports(record)

from __future__ import annotations

from typing import Any

import pytest

from reprocheck.explain.interventions import KINDS, Pair, candidates
from reprocheck.explain.interventions.base import Step, course, told
from reprocheck.explain.interventions.environment import Environment
from reprocheck.explain.interventions.floating import FloatingPoint
from reprocheck.explain.interventions.libraries import LibraryCopy, Load, copies
from reprocheck.explain.interventions.patches import Patch
from reprocheck.explain.interventions.settings import Setting
from reprocheck.explain.interventions.threads import Threads, library_of
from reprocheck.explain.views import WORKLOAD, Views, differences
from reprocheck.model import Change, Record, StateDifference, Trial
from tests.unit.explain.making import record

KEY = "environ.python.OMP_NUM_THREADS"


def states(order: str, *values: dict[str, Any]) -> dict[str, dict[str, dict[str, Any]]]:
    """Flat `kind.key` -> value at t0, after each subject, and before the workload (as after the last)."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for phase, flat in zip(["t0", *(f"t1:{name}" for name in order), "t2"], (*values, values[-1]), strict=True):
        kinds: dict[str, dict[str, Any]] = {"environ": {}, "process": {}}
        for key, value in flat.items():
            kind, _, rest = key.partition(".")
            kinds.setdefault(kind, {})[rest] = value
        found[phase] = kinds
    return found


def made(order: str, *values: dict[str, Any]) -> Record:
    return record(order, states=states(order, *values))


def pair(good: Record, bad: Record) -> tuple[Pair, tuple[StateDifference, ...]]:
    return Pair(good=Views(good), bad=Views(bad)), differences([good], [bad])


def difference(key: str, good: Any, bad: Any) -> StateDifference:
    changes = tuple(
        Change(group=group, order=("a", "b"), value=value, phase="t2")
        for group, value in (("good", good), ("bad", bad))
    )
    return StateDifference(key=key, phase="t2", severity="numeric", why="", changes=changes)


def test_a_course_gives_every_import_the_other_orders_world() -> None:
    good = Views(made("ba", {}, {}, {KEY: "1"}))
    bad = Views(made("ab", {}, {KEY: "1"}, {KEY: "1"}))

    on_good = course(bad, good, (KEY,), absent=True)
    on_bad = course(good, bad, (KEY,), absent=True)

    assert on_good == (
        Step("before:b", {KEY: "1"}, changes=True),
        Step("before:a", {KEY: "absent"}, changes=False),
        Step(WORKLOAD, {KEY: "1"}, changes=False),
    )
    assert on_bad == (
        Step("before:b", {KEY: "absent"}, changes=True),
        Step(WORKLOAD, {KEY: "1"}, changes=False),
    )
    assert told(on_bad, lambda values: str(values[KEY])) == "absent when `b` is imported"


def test_a_value_that_is_not_kept_gives_no_course() -> None:
    secret = "environ.python.TOKEN"
    good = Views(made("ba", {}, {}, {secret: "sha256:0123456789abcdef"}))
    bad = Views(made("ab", {}, {secret: "sha256:0123456789abcdef"}, {secret: "sha256:0123456789abcdef"}))

    assert course(bad, good, (secret,), absent=True) == ()
    assert course(good, bad, (secret,), absent=True)[0] == Step("before:b", {secret: "absent"}, changes=True)


def test_absent_is_left_out_where_it_cannot_be_set() -> None:
    key = "process.gc.threshold"
    good = Views(made("ba", {}, {}, {key: [700, 10, 10]}))
    bad = Views(made("ab", {}, {key: [50, 10, 10]}, {key: [50, 10, 10]}))

    assert course(good, bad, (key,), absent=False) == (Step(WORKLOAD, {key: [700, 10, 10]}, changes=True),)


def test_environment_actions() -> None:
    both, found = pair(made("ba", {}, {}, {KEY: "1"}), made("ab", {}, {KEY: "1"}, {KEY: "1"}))

    (candidate,) = candidates(found, both)
    trial = candidate.impose(both.trial("bad"), "good")

    assert isinstance(candidate.intervention, Environment)
    assert trial.order == ("a", "b")
    assert [(a["do"], a["at"], a["name"], a["value"], a["where"]) for a in trial.actions] == [
        ("env", "before:b", "OMP_NUM_THREADS", None, "python"),
        ("env", "t2", "OMP_NUM_THREADS", "1", "python"),
    ]
    assert candidate.intervention.says(candidate.values["good"]) == "`OMP_NUM_THREADS` unset when `b` is imported"
    assert candidate.at_workload() == candidate, "its last step changes nothing"


def test_took_effect_reads_the_reports() -> None:
    own = Environment(KEY)
    report = {"id": own.id, "ok": True, "when": "before:b"}

    assert own.took_effect(record("ab")) is None
    assert own.took_effect(record("ab", actions=({"id": "other", "ok": False},))) is None
    assert own.took_effect(record("ab", actions=(report,))) is True
    assert own.took_effect(record("ab", actions=(report, report | {"ok": None}))) is True
    bad = record("ab", actions=(report, report | {"ok": False, "error": "LookupError: no"}))
    assert own.took_effect(bad) is False
    assert own.why_not(bad) == "LookupError: no"


def test_the_register_is_one_candidate() -> None:
    low: dict[str, Any] = {"fp.ftz": False, "fp.daz": False, "fp.rounding": "nearest"}
    high = low | {"fp.ftz": True, "fp.daz": True}
    both, found = pair(made("ba", low, low, high), made("ab", low, high, high))

    (candidate,) = candidates(found, both)

    assert isinstance(candidate.intervention, FloatingPoint)
    assert set(candidate.keys) == {"fp.ftz", "fp.daz"}
    (first, *_) = candidate.impose(both.trial("good"), "bad").actions
    assert (first["do"], first["at"], first["ftz"], first["daz"]) == ("fp", "before:b", True, True)


def test_snapshots_have_to_show_the_change() -> None:
    key = "process.recursion_limit"
    both, found = pair(made("ba", {key: 1}, {key: 1}, {key: 5}), made("ab", {key: 1}, {key: 1}, {key: 7}))
    (candidate,) = candidates(found, both)

    assert candidate.visible(made("ba", {key: 1}, {key: 1}, {key: 7}), "bad") is True
    assert candidate.visible(made("ba", {key: 1}, {key: 1}, {key: 5}), "bad") is False
    assert candidate.visible(record("ba"), "bad") is None


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("environ.python.OMP_NUM_THREADS", Environment),
        ("environ.c.MKL_THREADING_LAYER", Environment),
        ("fp.ftz", FloatingPoint),
        ("libraries.binding.torch/lib/libtorch_cpu.so.blas", LibraryCopy),
        ("patches.torch.save", Patch),
        ("torch.mode.default_dtype", Setting),
        ("torch.fp32.cuda.matmul", Setting),
        ("process.locale.ctype", Setting),
        ("numpy.errstate.divide", Setting),
        ("torch.threads.intra", Threads),
        ("blas.openblas.numpy.libs/libscipy_openblas64_-1a2b3c4d.so.threads", Threads),
    ],
)
def test_every_kind_knows_its_keys(key: str, kind: type) -> None:
    values = (1, 2) if kind is Threads else ("/a/x.so", "/b/x.so")

    assert next(one for one in KINDS if one.applies_to(difference(key, *values))) is kind


@pytest.mark.parametrize(
    "key", ["modules.count", "environ.start.PATH", "patches.digest.torch", "torch.version", "torch.mode.inference"]
)
def test_what_cannot_be_changed_is_no_candidate(key: str) -> None:
    assert not [one for one in KINDS if one.applies_to(difference(key, "1", "2"))]


def test_labels_of_thread_counts() -> None:
    assert library_of("openmp.torch/lib/libgomp.so.1.max_threads") == ("openmp", "torch/lib/libgomp.so.1")
    assert library_of("blas.mkl.libmkl_rt.so.3.threads") == ("mkl", "libmkl_rt.so.3")
    assert library_of("openmp.x.dynamic") is None


def libraries(paths: dict[str, str], bound: dict[str, Any], wide: list[str]) -> dict[str, Any]:
    objects = [{"path": path, "soname": soname} for path, soname in paths.items()]
    return {"objects": objects, "scope.global": wide, **{f"binding.{name}": path for name, path in bound.items()}}


def with_libraries(order: str, found: dict[str, Any]) -> Record:
    return record(order, states={"t0": {"libraries": {}}, "t2": {"libraries": found}})


def test_copies_to_load_come_from_bindings_and_sonames() -> None:
    files = {"/a/libx.so.1": "libx.so.1", "/b/liby.so": "liby.so", "/c/consumer.so": "consumer.so"}
    others = {"/z/libx.so.1": "libx.so.1", "/c/consumer.so": "consumer.so", "/b/liby.so": "liby.so"}
    source = with_libraries("ab", libraries(files, {"consumer.so.blas": "/b/liby.so"}, ["/b/../b/liby.so"]))
    own = with_libraries("ba", libraries(others, {"consumer.so.blas": "/c/consumer.so"}, []))

    assert copies(Views(source), Views(own)) == (Load("/a/libx.so.1"), Load("/b/liby.so", everywhere=True))
    assert copies(Views(own), Views(source)) == (Load("/z/libx.so.1"), Load("/c/consumer.so"))


def test_library_copy_speaks_of_files() -> None:
    text = LibraryCopy("k").says((Load("/b/liby.so", everywhere=True),))
    trial = LibraryCopy("k").apply(Trial(order=("a",), repeat=0), (Load("/b/liby.so", everywhere=True),))

    assert text == "`/b/liby.so` loaded first, into the global scope"
    assert trial.actions == (
        {"do": "load", "at": "t0", "id": "library copy: k", "path": "/b/liby.so", "everywhere": True},
    )

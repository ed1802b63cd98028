from __future__ import annotations

from reprocheck.explain.views import ABSENT, WORKLOAD, Views, differences
from reprocheck.model import Event
from tests.unit.explain.making import failed, record


def env(value: str | None) -> dict[str, dict[str, str]]:
    return {"environ": {"python.OMP_NUM_THREADS": value} if value else {}}


def story(order: str, *values: str | None) -> dict[str, dict[str, dict[str, str]]]:
    phases = ["t0", *(f"t1:{name}" for name in order), "t2"]
    return {phase: env(value) for phase, value in zip(phases, (*values, values[-1]), strict=True)}


KEY = "environ.python.OMP_NUM_THREADS"


def test_what_each_import_saw() -> None:
    views = Views(record("ab", states=story("ab", None, "1", "1")))

    assert views.moments == ("before:a", "before:b", WORKLOAD)
    assert [views.value(moment, KEY) for moment in views.moments] == [ABSENT, "1", "1"]


def test_a_subject_that_is_pulled_in_saw_what_was_written_on_the_way() -> None:
    events = [
        Event(kind="putenv", at=0.1, phase="t1:a", name="OMP_NUM_THREADS", value="1"),
        Event(kind="import", at=0.2, phase="t1:a", name="b"),
        Event(kind="putenv", at=0.3, phase="t1:a", name="OMP_NUM_THREADS", value="9"),
    ]
    views = Views(
        record(
            "ab", states=story("ab", None, "9", "9"), events=events, pulled_in={"b": "a"}, effective_order=("a", "b")
        )
    )

    assert views.value("before:b", KEY) == "1"
    assert views.value(WORKLOAD, KEY) == "9"


def test_a_failing_import_saw_something_too() -> None:
    views = Views(failed("ba", "ImportError", states={"t0": env("3")}, effective_order=()))

    assert views.moments == ("before:b",)
    assert views.value("before:b", KEY) == "3"


def test_differences_at_imports_when_the_ends_are_alike() -> None:
    good = record("ba", states=story("ba", None, None, "1"))
    event = Event(kind="putenv", at=0.1, phase="t1:a", name="OMP_NUM_THREADS", value="1", file="/x/a.py", line=3)
    bad = record("ab", states=story("ab", None, "1", "1"), events=[event])

    (found,) = differences([good], [bad])

    assert (found.key, found.phase) == (KEY, "t1:b")
    values = {change.group: change for change in found.changes}
    assert (values["good"].value, values["bad"].value) == (ABSENT, "1")
    assert values["bad"].phase == "t1:a", "the import that brought it, not the one that saw it"
    assert values["bad"].event == event


def test_what_is_not_loaded_yet_is_no_difference() -> None:
    def states(order: str) -> dict[str, dict[str, dict[str, object]]]:
        loaded: dict[str, dict[str, object]] = {"process": {"gc.enabled": True}, "environ": {}}
        bare: dict[str, dict[str, object]] = {"process": {}, "environ": {}}
        first = loaded if order[0] == "a" else bare
        return {"t0": bare, f"t1:{order[0]}": first, f"t1:{order[1]}": loaded, "t2": loaded}

    assert differences([record("ba", states=states("ba"))], [record("ab", states=states("ab"))]) == ()


def test_keys_that_vary_in_one_order_are_left_out() -> None:
    good = [record("ba", states=story("ba", value, value, value)) for value in ("1", "2")]

    assert differences(good, [record("ab", states=story("ab", "3", "3", "3"))]) == ()


def test_records_without_snapshots_have_no_views() -> None:
    assert Views(record("ab")).moments == ("before:a", "before:b")
    assert differences([record("ab")], [record("ba")]) == ()

"""State differences from records: constant inside groups, different across, with the import that did it."""

from __future__ import annotations

from typing import Any

import pytest

from reprocheck.explain.state import flatten, state_differences
from reprocheck.model import Event, Record, Snapshot, Trial


def record(order: str, values: dict[str, dict[str, Any]], events: tuple[Event, ...] = ()) -> Record:
    """`values`: phase -> kinds."""
    return Record(
        trial=Trial(order=tuple(order), repeat=0),
        effective_order=tuple(order),
        ok=True,
        snapshots=tuple(Snapshot(phase=phase, at=0.0, ms=0.0, kinds=kinds) for phase, kinds in values.items()),
        events=events,
    )


def story(**threads: str | None) -> dict[str, dict[str, Any]]:
    """Phase -> environment with OMP_NUM_THREADS as given; `t1_b` stands for `t1:b`."""
    return {
        phase.replace("_", ":"): {"environ": {"python": {} if value is None else {"OMP_NUM_THREADS": value}}}
        for phase, value in threads.items()
    }


def test_flatten_keeps_lists_and_errors_whole() -> None:
    kinds = {"a": {"x": {"y": 1, "z": {}}, "list": [1, 2], "bad": {"error": "ValueError: no"}}}

    assert flatten(kinds) == {"a.x.y": 1, "a.list": [1, 2], "a.bad": {"error": "ValueError: no"}}


def test_a_difference_names_the_import_and_the_line() -> None:
    putenv = Event(
        kind="putenv",
        at=0.1,
        phase="t1:b",
        name="OMP_NUM_THREADS",
        value="1",
        file="/b/runtime.py",
        line=12,
        module="b",
    )
    groups = {
        "A": [record("ab", story(t0=None, t1_a=None, t1_b=None, t2=None))],
        "B": [record("ba", story(t0=None, t1_b="1", t1_a="1", t2="1"), (putenv,))],
    }

    (difference,) = state_differences(groups)

    assert difference.key == "environ.python.OMP_NUM_THREADS"
    assert (difference.severity, difference.phase) == ("numeric", "t2")
    without, with_it = difference.changes
    assert without.value == "absent"
    assert (with_it.value, with_it.phase, with_it.event) == ("1", "t1:b", putenv)


def test_what_varies_inside_a_group_is_no_difference() -> None:
    groups = {
        "A": [record("ab", story(t2="1")), record("ab", story(t2="2"))],
        "B": [record("ba", story(t2="3"))],
    }

    assert state_differences(groups) == ()


def test_end_states_alike_but_another_value_while_a_subject_was_imported() -> None:
    """The ultralytics case: both orders end with the variable set; only one had it while torch was loading."""
    groups = {
        "A": [record("ab", story(t0=None, t1_a=None, t1_b="1", t2="1"))],
        "B": [record("ba", story(t0=None, t1_b="1", t1_a="1", t2="1"))],
    }

    (difference,) = state_differences(groups)

    assert difference.phase == "t1:a"
    assert [change.value for change in difference.changes] == ["absent", "1"]
    assert difference.changes[1].phase == "t1:b"


def test_what_only_says_who_is_loaded_yet_is_left_out_early() -> None:
    def loaded(**phases: list[str]) -> dict[str, dict[str, Any]]:
        return {phase.replace("_", ":"): {"libraries": {"new": value}} for phase, value in phases.items()}

    groups = {
        "A": [record("ab", loaded(t1_a=["x"], t1_b=["y"], t2=[]))],
        "B": [record("ba", loaded(t1_b=["x"], t1_a=["y"], t2=[]))],
    }

    assert state_differences(groups) == ()


def test_other_threads_come_with_their_library_but_the_main_thread_has_its_affinity_for_all_later_ones() -> None:
    def story(first: str, second: str, **affinity: Any) -> dict[str, dict[str, Any]]:
        kinds = {
            phase: {"process": {"affinity": cpus, "affinity.threads": threads}}
            for phase, (cpus, threads) in affinity.items()
        }
        return {f"t1:{first}": kinds["early"], f"t1:{second}": kinds["late"], "t2": kinds["end"]}

    plain = {"early": ("0-1", {}), "late": ("0-1", {"0-1": 1}), "end": ("0-1", {"0-1": 1})}
    pool_first = plain | {"early": ("0-1", {"0-1": 1})}
    bound = plain | {"early": ("0", {}), "late": ("0-1", {"0-1": 1})}

    assert (
        state_differences(
            {"A": [record("ab", story("a", "b", **plain))], "B": [record("ba", story("b", "a", **pool_first))]}
        )
        == ()
    )
    (found,) = state_differences(
        {"A": [record("ab", story("a", "b", **plain))], "B": [record("ba", story("b", "a", **bound))]}
    )
    assert (found.key, found.phase) == ("process.affinity", "t1:b")


@pytest.mark.parametrize("groups", [{}, {"A": []}, {"A": [], "B": []}])
def test_nothing_to_compare(groups: dict[str, list[Record]]) -> None:
    assert state_differences(groups) == ()


def test_numeric_ones_come_first() -> None:
    def state(value: str) -> dict[str, dict[str, Any]]:
        return {"t2": {"environ": {"python": {"OMP_NUM_THREADS": value, "AAA_LABEL": value}}}}

    found = state_differences({"A": [record("ab", state("1"))], "B": [record("ba", state("2"))]})

    assert found[0].severity == "numeric"
    assert {item.key for item in found} >= {"environ.python.OMP_NUM_THREADS"}

"""Groups of records."""

from __future__ import annotations

from hypothesis import given, strategies as st

from reprocheck.compare.groups import group_id, group_records, left_out
from reprocheck.model import Failure, NotCompared, Output, Record, Trial


def record(order: str, digests: dict[str, str] | None = None, failure: str | None = None) -> Record:
    return Record(
        trial=Trial(order=tuple(order), repeat=0),
        effective_order=tuple(order),
        ok=failure is None,
        failure=None
        if failure is None
        else Failure(kind="exit", phase="p", signature=failure, message=f"it said {failure}"),
        outputs=tuple(
            Output(name=name, dtype="float64", shape=(), nbytes=8, digest=digest)
            for name, digest in (digests or {}).items()
        ),
        not_compared=(NotCompared(name="model", reason="a Model"),),
    )


def test_equal_digests_make_a_group_and_equal_failures_another() -> None:
    grouping = group_records(
        [record("ab", {"x": "1"}), record("ba", {"x": "2"}), record("ab", {"x": "1"}), record("ba", failure="boom")]
    )

    assert grouping.ids == ("A", "B", "A", "C")
    assert [(g.id, g.trials, g.orders, g.outcome) for g in grouping.groups] == [
        ("A", 2, (("a", "b"),), "ok"),
        ("B", 1, (("b", "a"),), "ok"),
        ("C", 1, (("b", "a"),), "it said boom"),
    ]
    assert grouping.failed == frozenset("C")
    assert grouping.reference() == "A"


def test_reference_is_the_first_group_that_finished() -> None:
    assert group_records([record("ab", failure="x"), record("ba", {"y": "1"})]).reference() == "B"
    assert group_records([record("ab", failure="x")]).reference() is None


def test_names_count_and_their_sequence_does_not() -> None:
    grouping = group_records(
        [
            record("a", {"x": "1", "y": "2"}),
            record("a", {"y": "2", "x": "1"}),
            record("a", {"x": "1"}),
            record("a", {"z": "1", "y": "2"}),
        ]
    )

    assert grouping.ids == ("A", "A", "B", "C")


def test_patterns_select_what_counts() -> None:
    records = [record("a", {"x": "1", "t": "1"}), record("a", {"x": "1", "t": "2"})]

    assert group_records(records, ["x"]).ids == ("A", "A")
    assert {item.name: item.reason for item in left_out(records, ["x"])} == {
        "model": "a Model",
        "t": "not selected by --outputs",
    }


@given(st.integers(0, 20_000))
def test_group_ids_are_distinct_and_sorted_by_length(number: int) -> None:
    assert group_id(number) != group_id(number + 1)
    assert (len(group_id(number)), group_id(number)) < (len(group_id(number + 1)), group_id(number + 1))


def test_first_group_ids() -> None:
    assert [group_id(n) for n in (0, 25, 26, 27, 701, 702)] == ["A", "Z", "AA", "AB", "ZZ", "AAA"]

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from reprocheck.explain.labels import Labels, enough_repeats
from reprocheck.model import Record, Tolerance
from tests.unit.explain.making import Engine, failed, record, study

AB, BA = ("a", "b"), ("b", "a")


def labels(records: Sequence[Record], **fields: Any) -> Labels:
    return Labels(
        study(records, **fields),
        records,
        patterns=(),
        tolerance_for=lambda _: Tolerance(),
        objects=Engine(lambda _: records[0]),  # type: ignore[arg-type]
    )


def test_groups_keep_their_letters_whatever_ran_first() -> None:
    records = [record(BA, "2"), record(AB, "1"), record(BA, "2", repeat=1), record(AB, "1", repeat=1)]

    # The study's own order of orders decides, not the journal's.
    named = Labels(
        study([records[1], records[0]]),
        records,
        patterns=(),
        tolerance_for=lambda _: Tolerance(),
        objects=None,  # type: ignore[arg-type]
    )

    assert [named.group(item) for item in records] == ["B", "A", "B", "A"]
    assert named.group(record(AB, "7")) == "C", "a new outcome gets a further letter"
    assert named.group(record(BA, "7")) == "C"
    assert (named.is_known("B"), named.is_known("C")) == (True, False)
    assert named.repeats == 1


def test_the_place_of_a_failing_subject_makes_no_other_failure() -> None:
    named = labels([record(AB), failed(BA, "ImportError: no @ importing a (2 of 2)")])

    assert named.group(failed(("c", "b", "a"), "ImportError: no @ importing a (3 of 3)")) == "B"
    assert named.group(failed(BA, "ImportError: other @ importing a (2 of 2)")) == "C"
    assert named.failure("B") == "ImportError: no @ importing a (2 of 2)"
    assert named.failure("A") is None


def test_groups_that_one_order_shows_side_by_side_are_one_label() -> None:
    records = [record(AB, "1"), record(AB, "2", repeat=1), record(BA, "3"), record(BA, "4", repeat=1)]

    named = labels(records, stable=False)

    assert [named.label([item]) for item in records] == ["A", "A", "C", "C"]
    assert named.name("A") == "groups A, B"
    assert named.repeats == 2


@pytest.mark.parametrize(
    ("outcomes", "repeats"),
    [
        (list("ABCDEFGHIJ"), 3),
        (list("AABB"), 7),
        (list("AAAB"), 12),
    ],
)
def test_repeats_that_luck_does_not_explain(outcomes: list[str], repeats: int) -> None:
    assert enough_repeats(outcomes) == repeats


def test_an_order_whose_few_runs_happened_to_agree_is_run_again() -> None:
    # Both orders give one of two outcomes by chance; `b,a` was seen with one of its two only.
    records = [record(AB, "12"[n % 2], repeat=n) for n in range(4)] + [record(BA, "3", repeat=n) for n in range(4)]
    named = labels(records, stable=False)

    assert named.unsettled() == {BA: 3}, "1/2 ** 7 twice is under 2 %"
    more = [record(BA, "343"[n], repeat=4 + n) for n in range(3)]
    named.learn(more)

    assert named.unsettled() == {}
    assert [named.label([item]) for item in (records[0], records[1], records[4], more[1])] == ["A", "A", "C", "C"]
    again = labels([*records, *more], stable=False)
    assert again.label(more[1:2]) == "C", "what was learnt is there when the run is explained anew"


def test_letters_stay_those_of_the_study_when_more_was_run_later() -> None:
    early = [record(AB, "1"), record(BA, "2")]
    named = Labels(
        study(early),
        [*early, record(AB, "3", repeat=7)],
        patterns=(),
        tolerance_for=lambda _: Tolerance(),
        objects=None,  # type: ignore[arg-type]
    )

    assert [named.group(item) for item in early] == ["A", "B"]


def test_what_identical_runs_show_beside_a_known_outcome_belongs_to_it() -> None:
    records = [record(AB, "12"[n % 2], repeat=n) for n in range(4)] + [record(BA, "3", repeat=n) for n in range(4)]
    named = labels(records, stable=False)

    assert named.label([record(AB, "4")]) == "D"
    assert named.label([record(AB, "3"), record(AB, "4")]) == "C"
    assert named.label([record(AB, "4")]) == "C"
    assert named.label([record(AB, "1"), record(AB, "5")]) == "A"
    assert named.label([record(AB, "1"), record(AB, "3"), record(AB, "9")]) == "A or C or F"


def test_without_noise_an_unknown_outcome_stays_one() -> None:
    named = labels([record(AB, "1"), record(BA, "2")])

    assert named.unsettled() == {}
    assert named.label([record(AB, "1"), record(AB, "7")]) == "A or C"


def test_a_rare_outcome_tells_orders_apart_and_asks_for_repeats() -> None:
    # `b,a` gives what `a,b` gives, and in one run of two something else.
    records = [record(AB, "1", repeat=n) for n in range(4)] + [record(BA, "12"[n % 2], repeat=n) for n in range(4)]

    named = labels(records, stable=False)

    assert named.label(records[:4]) == "A"
    assert named.label(records[4:]) == "B"
    assert named.repeats == 6, "0.5 ** 6 is under 2 %"


def test_presence_arms_are_named_apart() -> None:
    records = [record(AB, "1"), record(BA, "1"), record(("a",), "2", presence=True)]

    assert labels(records).group(records[2]) == "B"


@pytest.mark.parametrize("tolerance", [Tolerance(), Tolerance(rtol=1e-9)])
def test_other_output_names_are_another_outcome(tolerance: Tolerance) -> None:
    records = [record(AB, "1")]
    named = Labels(
        study(records),
        records,
        patterns=(),
        tolerance_for=lambda _: tolerance,
        objects=None,  # type: ignore[arg-type]
    )

    assert named.group(record(AB, outputs=())) == "B"

"""The search on simulated histories: what it claims is always so, and it costs what it should."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import mean

import pytest
from hypothesis import given, strategies as st

from reprocheck.bisect.search import Boundary, History, Label, Step, Unknown, batch, remaining, step

Labels = Sequence[Label]


def search(labels: Labels, *, jobs: int = 1, scouts: int = 0, walk: bool = False) -> tuple[Step, dict[int, Label], int]:
    """(result, labels that were asked for, rounds)."""
    history = History(len(labels), scouts=scouts, walk=walk)
    known: dict[int, Label] = {}
    rounds = 0
    while True:
        now = step(history, known)
        if not now.wanted:
            return now, known, rounds
        chosen = batch(history, known, jobs)
        assert chosen[0] == now.wanted[0]
        assert not set(chosen) & set(known), "nothing is asked twice"
        known.update({index: labels[index] for index in chosen})
        rounds += 1


def single(count: int, first_bad: int) -> list[Label]:
    return [*(["good"] * first_bad), *(["bad"] * (count - first_bad))]


@pytest.mark.parametrize("count", [2, 3, 16, 51, 64])
def test_every_single_change_is_found_with_few_runs(count: int) -> None:
    limit = 2 + (count - 2).bit_length()
    for first_bad in range(1, count):
        found, asked, _ = search(single(count, first_bad))
        assert found.boundaries == (Boundary(first_bad - 1, first_bad),)
        assert len(asked) <= limit
    assert remaining(History(count), {}) == limit


def test_sixty_four_versions_take_eight_runs_with_both_ends() -> None:
    assert max(len(search(single(64, first_bad))[1]) for first_bad in range(1, 64)) == 8


@pytest.mark.parametrize(("jobs", "rounds"), [(1, 7), (3, 4), (7, 3)])
def test_jobs_save_rounds(jobs: int, rounds: int) -> None:
    # Both ends at once, then as many halvings a round as 2**k - 1 jobs allow.
    assert max(search(single(64, first_bad), jobs=jobs)[2] for first_bad in range(1, 64)) <= rounds + (jobs == 1)


label = st.one_of(
    st.sampled_from(["good", "bad", "C"]),
    st.sampled_from([Unknown("import fails"), Unknown("time-out")]),
)
histories = st.lists(label, min_size=2, max_size=24).map(list)


@given(histories, st.integers(0, 5), st.booleans())
def test_never_a_wrong_boundary(labels: Labels, scouts: int, walk: bool) -> None:
    found, asked, _ = search(labels, scouts=scouts, walk=walk)

    for boundary in found.boundaries:
        before, after = labels[boundary.before], labels[boundary.after]
        assert before != after
        assert not isinstance(before, Unknown)
        assert not isinstance(after, Unknown)
        assert all(isinstance(labels[index], Unknown) for index in boundary.between)
        assert set(boundary.between) <= set(asked), "what is called untestable was tried"
    assert found.consulted <= set(asked)


@given(histories, st.integers(0, 5), st.booleans())
def test_it_ends_with_a_result_or_says_why_not(labels: Labels, scouts: int, walk: bool) -> None:
    found, _, _ = search(labels, scouts=scouts, walk=walk)

    broken = isinstance(labels[-1], Unknown) or (not walk and isinstance(labels[0], Unknown))
    assert (found.stuck is not None) == broken
    assert broken or found.same != bool(found.boundaries)
    if not broken and not walk and labels[0] != labels[-1]:
        assert found.boundaries, "ends that differ have a change between them"


@given(histories, st.integers(0, 5), st.booleans(), st.integers(2, 9))
def test_jobs_never_change_the_answer(labels: Labels, scouts: int, walk: bool, jobs: int) -> None:
    one, asked, rounds = search(labels, scouts=scouts, walk=walk)
    many, asked_many, rounds_many = search(labels, scouts=scouts, walk=walk, jobs=jobs)

    assert many == one
    assert rounds_many <= rounds
    assert set(asked) <= set(asked_many)


@given(histories, st.integers(0, 5), st.data())
def test_boundaries_join_up(labels: Labels, scouts: int, data: st.DataObject) -> None:
    found, _, _ = search(labels, scouts=scouts)

    for one, other in pairwise(found.boundaries):
        assert one.after <= other.before
        assert labels[one.after] == labels[other.before], "no change is skipped between two that are named"


@given(st.integers(2, 64), st.data())
def test_a_single_change_among_untestable_versions(count: int, data: st.DataObject) -> None:
    first_bad = data.draw(st.integers(1, count - 1))
    dead = data.draw(st.sets(st.integers(1, count - 2), max_size=count)) if count > 2 else set()
    labels: Labels = [Unknown("broken") if index in dead else tag for index, tag in enumerate(single(count, first_bad))]

    found, _, _ = search(labels)

    alive = [index for index in range(count) if index not in dead]
    before = max(index for index in alive if index < first_bad)
    after = min(index for index in alive if index >= first_bad)
    assert found.boundaries == (Boundary(before, after),)


def test_a_dead_block_is_escaped_by_doubling() -> None:
    costs = []
    for start in range(1, 43, 2):
        for first_bad in range(1, 64, 9):
            labels = single(64, first_bad)
            labels[start : start + 20] = [Unknown("broken")] * 20
            found, asked, _ = search(labels)
            assert len(found.boundaries) == 1
            costs.append(len(asked))
    assert mean(costs) < 18.3, "what a plain doubling escape takes; a linear one takes 28.6"


def test_unknown_between_is_part_of_the_answer() -> None:
    labels: Labels = ["good", "good", Unknown("x"), Unknown("y"), "bad", "bad"]

    found, _, _ = search(labels)

    assert found.boundaries == (Boundary(1, 4),)
    assert list(found.boundaries[0].between) == [2, 3]


def test_all_changes_on_the_way_are_found() -> None:
    labels = ["A"] * 10 + ["B"] * 10 + ["C"] * 12

    found, asked, _ = search(labels)

    assert found.boundaries == (Boundary(9, 10), Boundary(19, 20))
    assert len(asked) <= 12


def test_scouts_see_what_was_undone() -> None:
    labels = ["good"] * 8 + ["bad"] * 8 + ["good"] * 8 + ["bad"] * 8

    blind, _, _ = search(labels)
    seen, _, _ = search(labels, scouts=3)

    assert len(blind.boundaries) == 1
    assert seen.boundaries == (Boundary(7, 8), Boundary(15, 16), Boundary(23, 24))


def test_scouts_see_a_change_between_equal_ends() -> None:
    labels = ["good"] * 5 + ["bad"] * 6 + ["good"] * 5

    blind, asked, _ = search(labels)
    seen, _, _ = search(labels, scouts=3)

    assert blind.same
    assert len(asked) == 2, "equal ends end the search at once"
    assert seen.boundaries == (Boundary(4, 5), Boundary(10, 11))


def test_an_end_that_cannot_be_judged_stops_the_search() -> None:
    assert search([Unknown("x"), "good", "bad"])[0].stuck == 0
    assert search(["good", "bad", Unknown("x")])[0].stuck == 2


def test_going_back_by_growing_steps() -> None:
    found, asked, _ = search(single(64, 40), walk=True)

    assert found.boundaries == (Boundary(39, 40),)
    assert set(asked) >= {63, 62, 60, 56, 48, 32}
    assert 0 not in asked, "no further back than needed"


def test_going_back_finds_no_other_label() -> None:
    assert search(single(9, 0), walk=True)[0].same
    broken: Labels = [Unknown("x")] * 4
    assert search([*broken, *single(5, 0)], walk=True)[0].same


def test_going_back_past_broken_oldest_versions() -> None:
    labels: Labels = [Unknown("x"), Unknown("x"), "good", "good", "bad", "bad"]

    found, _, _ = search(labels, walk=True)

    assert found.boundaries == (Boundary(3, 4),)


@pytest.mark.parametrize(("count", "scouts"), [(1, 0), (0, 0), (5, -1)])
def test_a_history_needs_two_ends(count: int, scouts: int) -> None:
    with pytest.raises(ValueError, match="no change"):
        History(count, scouts=scouts)


def test_prefetching_asks_for_what_comes_next() -> None:
    history = History(64)
    known: dict[int, Label] = {0: "good", 63: "bad"}

    assert batch(history, known, 3) == (31, 47, 15)
    assert batch(history, {}, 3)[:2] == (0, 63)


def test_remaining_counts_down() -> None:
    history = History(64)
    known: dict[int, Label] = {}
    labels = single(64, 22)
    left = []
    while wanted := step(history, known).wanted:
        left.append(remaining(history, known))
        known[wanted[0]] = labels[wanted[0]]
    assert left[0] == 8
    assert left == sorted(left, reverse=True)
    assert remaining(history, known) == 0

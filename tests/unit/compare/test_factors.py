"""What varied settings and the order do together: known answers, and properties of the analysis."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given, settings, strategies as st

from reprocheck.compare.factors import (
    describe,
    effects,
    level_text,
    matters,
    order_p,
    order_sentence,
    repeats_for,
    sentences,
    told_level,
)
from reprocheck.compare.noise import permutation_p, stratified_p
from reprocheck.model import Setting, Varied
from reprocheck.plan.varied import levels_of

AB, BA = ("a", "b"), ("b", "a")
BIND = Varied(name="OMP_PROC_BIND", variable="OMP_PROC_BIND", values=("close", "spread"))
SCALE = Varied(name="SCALE", variable="SCALE", values=(None, "2", "3"))


def outcomes(*levels: Sequence[str], orders: Sequence[tuple[str, ...]] = (AB, BA)) -> list[dict[tuple[str, ...], str]]:
    """One level an argument, with one string of groups an order."""
    return [dict(zip(orders, level, strict=True)) for level in levels]


def test_the_order_matters_only_under_one_value() -> None:
    levels = levels_of([BIND])
    found = outcomes(("AAAAAA", "BBBBBB"), ("AAAAAA", "AAAAAA"))

    (effect,) = effects([BIND], levels, found)

    assert effect.differs
    assert effect.changing == ("spread",)
    assert [cell.order for cell in effect.touched] == [BA]
    assert sentences(effect, outputs=(1, 4)) == "`OMP_PROC_BIND=spread` changes 1 of 4 outputs only in `b,a`"
    assert order_sentence([BIND], levels, [True, False]) == "the order matters only under `OMP_PROC_BIND=close`"


def test_a_setting_moves_bits_in_every_order_and_the_order_does_not() -> None:
    levels = levels_of([SCALE])
    found = outcomes(("AAAA", "AAAA"), ("BBBB", "BBBB"), ("AAAA", "AAAA"))

    (effect,) = effects([SCALE], levels, found)

    assert effect.differs
    assert effect.changing == ("2",)
    assert sentences(effect, outputs=(3, 5)) == "`SCALE=2` changes 3 of 5 outputs in every order"
    assert sentences(effect, outputs=(1, 1)) == "`SCALE=2` changes 1 of 1 output in every order"
    assert order_sentence([SCALE], levels, [False] * 3) == "the order doesn't matter under any level"
    assert order_p(found) is None, "differences between levels are none between orders"


def test_a_setting_that_does_nothing() -> None:
    (effect,) = effects([BIND], levels_of([BIND]), outcomes(("AAA", "BBB"), ("AAA", "BBB")))

    assert effect.differs is False
    assert effect.test is None
    assert sentences(effect, outputs=(0, 2)) == "`OMP_PROC_BIND` doesn't change the outputs"


def test_a_value_under_which_all_fails() -> None:
    (effect,) = effects([BIND], levels_of([BIND]), outcomes(("AAAAA", "AAAAA"), ("FFFFF", "FFFFF")))

    assert sentences(effect, outputs=(0, 2), failing=True) == "`OMP_PROC_BIND=spread` makes it fail in every order"


def test_too_few_runs_are_said_and_how_many_would_do() -> None:
    found = outcomes(("AAA", "AAA"), ("BBB", "BBB"))
    levels = levels_of([BIND])

    (effect,) = effects([BIND], levels, found)

    assert effect.differs is None
    assert effect.test is not None
    assert effect.test.p_value == pytest.approx(0.01), "2/20 within each of two orders"
    assert "so few runs could do so by chance (p = 0.01); raise --repeat" in sentences(effect, outputs=(1, 1))
    assert repeats_for(found, effect, levels, most=10) == 4
    assert repeats_for(found, effect, levels, most=3) == 3


def test_noise_is_not_taken_for_the_setting() -> None:
    noisy = outcomes(("ABAB", "BABA"), ("BAAB", "ABBA"))

    (effect,) = effects([BIND], levels_of([BIND]), noisy)

    assert effect.differs is None
    assert not effect.touched
    assert sentences(effect, outputs=(0, 1)).startswith("what `OMP_PROC_BIND` does can't be told from the noise")
    assert repeats_for(noisy, effect, levels_of([BIND]), most=10) == 10


def test_two_settings_are_told_apart() -> None:
    varied = (BIND, Varied(name="X", variable="X", values=("1", "2")))
    levels = levels_of(varied)
    # The order matters under close; X=2 moves the bits everywhere.
    found = outcomes(("AAAA", "BBBB"), ("CCCC", "DDDD"), ("AAAA", "AAAA"), ("CCCC", "CCCC"))

    bind, other = effects(varied, levels, found)

    assert sentences(bind, outputs=(1, 2)) == "`OMP_PROC_BIND=spread` changes 1 of 2 outputs only in `b,a`"
    assert sentences(other, outputs=(1, 2)) == "`X=2` changes 1 of 2 outputs in every order"
    assert (
        order_sentence(varied, levels, [True, True, False, False])
        == "the order matters only under `OMP_PROC_BIND=close`"
    )


def test_a_setting_that_matters_only_beside_another() -> None:
    varied = (BIND, Varied(name="X", variable="X", values=("1", "2")))
    found = outcomes(("AAAA", "AAAA"), ("AAAA", "AAAA"), ("AAAA", "AAAA"), ("BBBB", "BBBB"))

    _, other = effects(varied, levels_of(varied), found)

    assert (
        sentences(other, outputs=(2, 2)) == "`X=2` changes 2 of 2 outputs in every order, under `OMP_PROC_BIND=spread`"
    )


@pytest.mark.parametrize(
    ("answers", "sentence"),
    [
        ([True, True, True], "the order matters under every level"),
        ([False, False, False], "the order doesn't matter under any level"),
        ([None, None, None], "whether the order matters can't be said under any level"),
        ([False, True, False], "the order matters only under `SCALE=2`"),
        ([False, True, True], "the order matters under every level but `SCALE` unset"),
        ([True, None, False], "the order matters under `SCALE` unset; under `SCALE=2` that can't be said"),
        (
            [False, None, False],
            "the order doesn't matter under `SCALE` unset or `SCALE=3`; under `SCALE=2` that can't be said",
        ),
    ],
)
def test_sentences_about_the_order(answers: list[bool | None], sentence: str) -> None:
    assert order_sentence([SCALE], levels_of([SCALE]), answers) == sentence


def test_a_device_goes_by_its_name() -> None:
    device = Varied(name="device", variable="REPROCHECK_DEVICE", values=("cpu", "cuda"))

    assert level_text([device], {"REPROCHECK_DEVICE": "cuda"}) == "`device=cuda`"


def test_the_level_that_is_told_is_the_first_of_the_worst() -> None:
    assert told_level(["identical", "order-dependent", "order-dependent"], [0, 1, 1]) == 1
    assert told_level(["identical", "noisy", "within-tolerance"], [0, 1, 0]) == 1
    assert told_level(["identical", "inconclusive", "noisy"], [0, 3, 1]) == 1
    assert told_level(["identical", "identical"], [0, 1]) == 1, "a subject whose mere presence matters"
    assert [matters(v) for v in ("order-dependent", "identical", "noisy")] == [True, False, None]


names = st.lists(st.sampled_from("XYZ"), min_size=1, max_size=3, unique=True)


@st.composite
def settings_with_levels(draw: st.DrawFn) -> tuple[list[Varied], tuple[Setting, ...]]:
    varied = [
        Varied(
            name=name, variable=name, values=tuple(draw(st.sampled_from([(None, "1"), ("1", "2"), ("1", "2", "3")])))
        )
        for name in draw(names)
    ]
    return varied, levels_of(varied)


@given(settings_with_levels(), st.data())
def test_a_description_describes_exactly_what_was_chosen(
    drawn: tuple[list[Varied], tuple[Setting, ...]], data: st.DataObject
) -> None:
    varied, levels = drawn
    chosen = [level for level in levels if data.draw(st.booleans())]
    described = describe(chosen, levels, varied)
    if described is None:
        # No product of values is these levels.
        spans = [{level[item.variable] for level in chosen} for item in varied]
        assert len(list(itertools.product(*spans))) != len(chosen)
    else:
        matching = [level for level in levels if all(level[name] in values for name, values in described.items())]
        assert matching == chosen


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.text("AB", min_size=3, max_size=3), st.text("AB", min_size=3, max_size=3)), min_size=2, max_size=2
    )
)
def test_renaming_groups_or_relabelling_a_level_changes_nothing(drawn: list[tuple[str, str]]) -> None:
    levels = levels_of([BIND])
    table = str.maketrans("AB", "QA")
    renamed = [tuple(text.translate(table) for text in level) for level in drawn]

    (one,), (other,) = effects([BIND], levels, outcomes(*drawn)), effects([BIND], levels, outcomes(*renamed))

    assert (one.differs, one.test, one.changing) == (other.differs, other.test, other.changing)
    first, second = order_p(outcomes(*drawn)), order_p(outcomes(*drawn[::-1]))
    assert first == second, "levels are strata: their sequence means nothing"


@settings(max_examples=60)
@given(st.lists(st.lists(st.text("ABC", min_size=1, max_size=3), min_size=1, max_size=3), min_size=1, max_size=2))
def test_strata_of_their_own_letters_give_the_same_p(strata: list[list[str]]) -> None:
    """A level whose outcomes are all others' adds nothing to the test of the order, and takes nothing from it."""
    apart = [
        [text.translate(str.maketrans("ABC", letters)) for text in stratum]
        for stratum, letters in zip(strata, ("ABC", "DEF"), strict=False)
    ]

    assert stratified_p(apart).p_value == pytest.approx(stratified_p(strata).p_value)


@settings(max_examples=60)
@given(st.lists(st.text("ABC", max_size=4), max_size=3))
def test_one_stratum_is_the_plain_test(groups: list[str]) -> None:
    assert stratified_p([groups]).p_value == pytest.approx(permutation_p(groups).p_value, rel=1e-12)


def brute(strata: Sequence[Sequence[str]]) -> float:
    """The stratified p-value by going through every combination of the strata's arrangements."""

    def statistic(trials: Sequence[str], sizes: Sequence[int]) -> int:
        start = pairs = 0
        for size in sizes:
            part = trials[start : start + size]
            pairs += sum(a == b for a, b in itertools.combinations(part, 2))
            start += size
        return pairs

    sizes = [[len(groups) for groups in stratum] for stratum in strata]
    flat = ["".join(stratum) for stratum in strata]
    observed = sum(statistic(trials, own) for trials, own in zip(flat, sizes, strict=True))
    arranged = [set(itertools.permutations(trials)) for trials in flat]
    sums = [
        sum(statistic(trials, own) for trials, own in zip(chosen, sizes, strict=True))
        for chosen in itertools.product(*arranged)
    ]
    return sum(total >= observed for total in sums) / len(sums)


@settings(max_examples=40)
@given(st.lists(st.lists(st.text("AB", min_size=1, max_size=2), min_size=1, max_size=2), min_size=1, max_size=3))
def test_the_stratified_test_agrees_with_full_enumeration(strata: list[list[str]]) -> None:
    assert stratified_p(strata).p_value == pytest.approx(brute(strata), rel=1e-12)


def test_many_strata_beyond_the_steps_are_sampled() -> None:
    strata = [["ABCDEF", "ABCDEF", "ABCDEF"]] * 2

    found = stratified_p(strata, max_steps=50)

    assert found.method == "monte-carlo"
    assert found.p_value > 0.5


def test_no_strata_are_no_evidence() -> None:
    assert stratified_p([]).p_value == 1.0


def test_orders_that_one_level_lacks_are_not_compared() -> None:
    found: list[dict[tuple[str, ...], str]] = [{AB: "AAAA", BA: "BBBB"}, {AB: "AAAA"}]

    (effect,) = effects([BIND], levels_of([BIND]), found)

    assert [cell.order for cell in effect.cells] == [AB]
    assert effect.differs is False

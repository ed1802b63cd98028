from __future__ import annotations

import math

import pytest
from hypothesis import given, strategies as st

from reprocheck.compare.tolerance import matches, parse_rules, round_up, tolerance_for, unmatched
from reprocheck.errors import UsageError
from reprocheck.model import Tolerance


def test_without_rules_everything_is_exact() -> None:
    assert parse_rules() == {}
    assert tolerance_for({})("x").exact


def test_a_bare_number_is_for_every_output() -> None:
    assert parse_rules(rtol=["1e-5"], ulp=["4"]) == {"*": Tolerance(rtol=1e-5, ulp=4)}


def test_patterns_take_the_knobs_they_do_not_set_from_the_bare_numbers() -> None:
    rules = parse_rules(rtol=["loss*:1e-3", "1e-5"], atol=["1e-8", "grad:0"], ulp=["loss*:2"])
    assert list(rules) == ["*", "loss*", "grad"]
    assert rules["*"] == Tolerance(rtol=1e-5, atol=1e-8)
    assert rules["loss*"] == Tolerance(rtol=1e-3, atol=1e-8, ulp=2)
    assert rules["grad"] == Tolerance(rtol=1e-5)


def test_the_last_matching_rule_wins() -> None:
    find = tolerance_for(parse_rules(rtol=["1", "loss*:2", "loss.total:3", "*.grad:4"]))
    assert [find(name).rtol for name in ("x", "loss.a", "loss.total", "loss.grad")] == [1, 2, 3, 4]


def test_the_last_colon_separates() -> None:
    assert parse_rules(atol=["a:b:1"]) == {"a:b": Tolerance(atol=1.0)}


def test_zero_makes_an_output_exact_again() -> None:
    find = tolerance_for(parse_rules(rtol=["1e-5", "ids:0"]))
    assert find("ids").exact
    assert not find("x").exact


def test_names_with_brackets_match_themselves() -> None:
    assert matches("state[0]", "state[0]")
    assert matches("state[0]", "state0")
    assert matches("state*", "state[0].w")
    assert not matches("State*", "state")
    assert not matches("stat", "state")


@pytest.mark.parametrize(
    ("knob", "text"),
    [
        ("rtol", "x"),
        ("rtol", ""),
        ("rtol", "loss:"),
        ("rtol", "-1e-5"),
        ("rtol", "nan"),
        ("atol", "inf"),
        ("atol", "a:1e999"),
        ("ulp", "1.5"),
        ("ulp", "-1"),
        ("ulp", "1" * 30),
        ("ulp", "9" * 400),
        ("ulp", "9" * 5000),
        ("atol", ":1"),
    ],
)
def test_bad_numbers_are_named(knob: str, text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_rules(**{knob: [text]})
    assert f"--{knob} `{text}`" in str(caught.value)


@given(value=st.floats(0, allow_infinity=False), digits=st.integers(1, 6))
def test_rounded_tolerances_are_never_too_small(value: float, digits: int) -> None:
    text = round_up(value, digits)
    assert float(text) >= value
    if 1e-300 < value < 1e300:
        assert float(text) <= value * (1 + 1.001 * 10.0 ** (1 - digits))
        assert len(text) <= digits + 6


def test_rounded_tolerances_read_well() -> None:
    assert [round_up(value) for value in (1.192e-7, 0.01, 1.0, 0.0, 123456.0)] == [
        "1.2e-07",
        "1e-02",
        "1e+00",
        "0",
        "1.3e+05",
    ]
    assert round_up(math.inf) == "inf"
    assert float(round_up(1.7976931348623157e308)) == 1.7976931348623157e308


def test_a_pattern_that_matches_nothing_is_told_with_what_there_is() -> None:
    assert unmatched(["*", "a"], ["a"]) == ()
    assert unmatched(["b"], ["a"]) == ("the tolerance for `b` matches no output; the only output: `a`",)
    assert unmatched(["b"], "acdef") == (
        "the tolerance for `b` matches no output; the 5 outputs: `a`, `c`, `d`, `e`, …",
    )
    assert unmatched(["b"], []) == (), "where nothing was recorded, there is another sentence"

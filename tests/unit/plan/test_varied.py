"""From `--vary` texts to levels, and one sentence for what can't be varied."""

from __future__ import annotations

from math import prod

import pytest
from hypothesis import given, strategies as st

from reprocheck.errors import UsageError
from reprocheck.model import Varied
from reprocheck.plan.varied import MOST_LEVELS, levels_of, read_vary, varied_settings


def test_values_are_split_at_commas() -> None:
    assert read_vary(["A=1,2", "device=cpu,cuda"]) == {"A": ["1", "2"], "device": ["cpu", "cuda"]}


def test_a_quoted_value_keeps_its_commas() -> None:
    assert read_vary(['KMP_AFFINITY="granularity=fine,compact",disabled']) == {
        "KMP_AFFINITY": ["granularity=fine,compact", "disabled"]
    }


@pytest.mark.parametrize("text", ["A=,1", "A=1,"])
def test_an_empty_value_means_unset(text: str) -> None:
    (varied,) = varied_settings(read_vary([text]), {}, ())

    assert None in varied.values
    assert {level["A"] for level in levels_of([varied])} == {None, "1"}


@pytest.mark.parametrize(
    ("texts", "sentence"),
    [
        (["A"], "--vary `A` is not NAME=V1,V2"),
        (["=1,2"], "--vary `=1,2` is not NAME=V1,V2"),
        (["A=1,2", "A=3,4"], "--vary names `A` twice"),
        (["A=1"], "`A` is varied over one value only; give two or more, as --vary A=V1,V2, or fix it with --env A=1"),
        (["A=1,1"], "`A` is varied over `1` twice"),
        (["FIXED=1,2"], "`FIXED` is both varied and set by env for every trial; leave one of them out"),
        (["device=cpu,tpu"], "`tpu` is no device; the devices are cpu, cuda and cuda:N"),
        (["device=cpu,cuda:1"], "device `cuda:1` needs a GPU of its number, and this machine shows only 1 of them"),
        (["device=cpu,cuda", "REPROCHECK_DEVICE=cpu,cuda"], "are one setting"),
        (['A="1,2'], "has a quote that does not end"),
        (
            [f"{name}=1,2,3" for name in "ABCD"],
            f"81 levels (every combination of what is varied) are too many; vary at most {MOST_LEVELS}",
        ),
    ],
)
def test_one_sentence(texts: list[str], sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        varied_settings(read_vary(texts), {"FIXED": "7"}, ("0",))

    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_gpu_that_is_not_there() -> None:
    with pytest.raises(UsageError, match="this machine shows none"):
        varied_settings({"device": ["cpu", "cuda"]}, {}, ())


def test_a_device_is_carried_by_its_variable() -> None:
    (varied,) = varied_settings({"device": ["cpu", "cuda"]}, {}, ("GPU-1",))

    assert (varied.name, varied.variable, varied.text("cuda")) == ("device", "REPROCHECK_DEVICE", "`device=cuda`")


@given(st.dictionaries(st.sampled_from("ABC"), st.lists(st.sampled_from("1234"), min_size=2, max_size=3, unique=True)))
def test_levels_are_every_combination_once(vary: dict[str, list[str]]) -> None:
    varied = varied_settings(vary, {}, ())
    levels = levels_of(varied)

    assert len(levels) == (prod(map(len, vary.values())) if vary else 0)
    assert len({tuple(sorted(level.items())) for level in levels}) == len(levels)
    assert all(level.keys() == vary.keys() for level in levels)
    if levels:
        assert levels[0] == {item.variable: item.values[0] for item in varied}


def test_unset_is_said_in_words() -> None:
    assert Varied(name="A", variable="A", values=(None, "1")).text(None) == "`A` unset"

from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from reprocheck.config import Options
from reprocheck.config.options import KEYS, TABLES, checked, read
from reprocheck.errors import UsageError
from reprocheck.model import Tolerance, Verdict


def test_every_field_has_a_key_and_every_default_is_valid() -> None:
    assert set(KEYS) == set(Options.__struct_fields__)
    assert set(TABLES) <= set(KEYS)
    for name, value in msgspec.structs.asdict(Options()).items():
        if value not in (None, ()):
            assert checked(name, value, "here") == value


@pytest.mark.parametrize(
    ("name", "value", "result"),
    [
        ("imports", ["cupy", "torch.nn"], ("cupy", "torch.nn")),
        ("imports", ("cupy",), ("cupy",)),
        ("workload", "step", "step"),
        ("orders", "sample:3", "sample:3"),
        ("repeat", 1, 1),
        ("timeout", 1, 1.0),
        ("timeout", 0.5, 0.5),
        ("seed", 0, 0),
        ("env", {"A": "1", "B": ""}, {"A": "1", "B": ""}),
        ("env", {}, {}),
        ("env", {"PYTHONHASHSEED": "random"}, {"PYTHONHASHSEED": "random"}),
        ("env", {"PYTHONHASHSEED": "4294967295"}, {"PYTHONHASHSEED": "4294967295"}),
        ("vary", {"A": ["1", ""], "device": ("cpu", "cuda")}, {"A": ("1", ""), "device": ("cpu", "cuda")}),
        ("outputs", ["loss*"], ("loss*",)),
        ("tolerance", {"loss*": {"rtol": 1e-5, "ulp": 2}}, {"loss*": Tolerance(rtol=1e-5, ulp=2)}),
        ("tolerance", {"a": 1e-5, "b": 0}, {"a": Tolerance(rtol=1e-5), "b": Tolerance()}),
        ("tolerance", {"a": Tolerance(atol=1)}, {"a": Tolerance(atol=1)}),
        ("tolerance", 1e-5, {"*": Tolerance(rtol=1e-5)}),
        ("presence", True, True),
        ("observer", False, False),
        *(("expect", verdict, verdict) for verdict in get_args(Verdict)),
        ("story", "What it shows.", "What it shows."),
    ],
)
def test_good_values(name: str, value: Any, result: Any) -> None:
    found = checked(name, value, "here")
    assert found == result
    assert type(found) is type(result)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("imports", "torch", "must be a list of different module names, not 'torch'."),
        ("imports", [], "not []."),
        ("imports", ["torch", 1], "not ['torch', 1]."),
        ("imports", ["torch", "to rch"], "(`to rch` is no module name)."),
        ("imports", ["torch", "mkl", "torch"], "(`torch` is there twice)."),
        ("workload", "", "must be the name of a function, not ''."),
        ("orders", ["a,b"], "must be a design (`all`, `triples`, `sample:20`, …) or the path of a file, not ['a,b']."),
        ("orders", "a\0b", "must be a design"),
        ("repeat", 0, "must be a whole number of at least 1, not 0."),
        ("repeat", "3", "not '3'."),
        ("repeat", 3.0, "not 3.0."),
        ("repeat", True, "not True."),
        ("max_repeat", -1, "not -1."),
        ("jobs", 0, "not 0."),
        ("timeout", 0, "must be a number of seconds above 0, not 0."),
        ("timeout", -1.5, "not -1.5."),
        ("timeout", float("inf"), "not inf."),
        ("timeout", float("nan"), "not nan."),
        ("timeout", False, "not False."),
        ("seed", -1, "must be a whole number of at least 0, not -1."),
        ("env", ["A=1"], "must be a table from variable to string, not ['A=1']."),
        ("env", {"A": 1}, "(`A` is 1)."),
        ("env", {"A=B": "1"}, "(`A=B` can't name a variable)."),
        ("env", {"": "1"}, "(`` can't name a variable)."),
        ("env", {"A B": "1"}, "(`A B` can't name a variable)."),
        ("env", {"PYTHONHASHSEED": "abc"}, "a whole number from 0 to 4294967295, not `abc`)."),
        ("env", {"PYTHONHASHSEED": "4294967296"}, "not `4294967296`)."),
        ("vary", {"A B": ["1", "2"]}, "(`A B` can't name a variable)."),
        ("vary", {"PYTHONHASHSEED": ["0", "-1"]}, "not `-1`)."),
        ("env", {"A": "x\0"}, "(`A` is 'x\\x00')."),
        ("outputs", "loss", "must be a list of patterns, not 'loss'."),
        ("outputs", [""], "not ['']."),
        ("tolerance", "1e-5", "to a number meaning rtol, not '1e-5'."),
        ("tolerance", -1, "not -1."),
        ("tolerance", {"loss": -1.0}, "(`loss` is -1.0)."),
        ("tolerance", {"loss": "x"}, "(`loss` is 'x')."),
        ("tolerance", {"": 1}, "(`` is 1)."),
        (
            "tolerance",
            {"loss": {"rtool": 1}},
            "(`loss` is {'rtool': 1}, where `rtool` is unknown, did you mean `rtol`?).",
        ),
        ("tolerance", {"loss": {"zzz": 1}}, "where `zzz` is unknown)."),
        ("tolerance", {"loss": {"ulp": 1.5}}, "(`loss` is {'ulp': 1.5})."),
        ("tolerance", {"loss": {"rtol": True}}, "(`loss` is {'rtol': True})."),
        ("tolerance", {"rtol": 1e-5}, "(`rtol` stands where an output pattern belongs; `*` means every output)."),
        ("presence", 1, "must be true or false, not 1."),
        ("vary", {"A": "1,2"}, "(`A` is '1,2')."),
        ("vary", {"A=B": ["1"]}, "(`A=B` can't name a variable)."),
        ("observer", "yes", "not 'yes'."),
        ("expect", "identicla", "not 'identicla' (did you mean `identical`?)."),
        ("expect", "zzz", "inconclusive, not 'zzz'."),
        ("expect", ["identical"], "not ['identical']"),
        ("story", 1, "must be a sentence, not 1."),
        ("python", "", "must be the path of an interpreter, not ''."),
        ("story", "x" * 99 + "\0", f"not '{'x' * 56}…."),
    ],
)
def test_wrong_values_are_told_with_place_and_expectation(name: str, value: Any, said: str) -> None:
    with pytest.raises(UsageError) as error:
        checked(name, value, "`key` in file")
    text = str(error.value)
    assert text.startswith("`key` in file must be ")
    assert said in text
    assert "\n" not in text


@pytest.mark.parametrize(
    ("name", "text", "result"),
    [
        ("imports", "cupy, torch", ("cupy", "torch")),
        ("orders", "all", "all"),
        ("repeat", "5", 5),
        ("timeout", "1e2", 100.0),
        ("seed", "0", 0),
        ("env", "A=1 B='x y' C= D=a=b", {"A": "1", "B": "x y", "C": "", "D": "a=b"}),
        ("outputs", "loss*,grad[0]", ("loss*", "grad[0]")),
        ("tolerance", "1e-6", {"*": Tolerance(rtol=1e-6)}),
        ("tolerance", '{"a*" = {ulp = 1}, b = 0.5}', {"a*": Tolerance(ulp=1), "b": Tolerance(rtol=0.5)}),
        ("presence", "On", True),
        ("vary", "A=1,2 'B=x,'", {"A": ("1", "2"), "B": ("x", "")}),
        ("observer", "0", False),
        ("expect", "noisy", "noisy"),
    ],
)
def test_values_from_the_environment(name: str, text: str, result: Any) -> None:
    assert read(name, text, "`X`") == result


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("repeat", "three", "`X` must be a whole number of at least 1, not 'three'."),
        ("repeat", "0", "`X` must be a whole number of at least 1, not 0."),
        ("timeout", "soon", "`X` must be a number of seconds above 0, not 'soon'."),
        ("timeout", "nan", "`X` must be a number of seconds above 0, not nan."),
        ("env", "A", "`X` must be a table from variable to string, not 'A'."),
        ("env", "A='", '`X` must be a table from variable to string, not "A=\'".'),
        ("imports", "a,,b", "`X` must be a list of different module names"),
        ("tolerance", "{", "`X` must be a table from output pattern"),
        ("presence", "maybe", "`X` must be true or false, not 'maybe'."),
    ],
)
def test_wrong_values_from_the_environment(name: str, text: str, said: str) -> None:
    with pytest.raises(UsageError) as error:
        read(name, text, "`X`")
    assert str(error.value).startswith(said)


toml_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=400, deadline=None)
@given(name=st.sampled_from(sorted(KEYS)), value=toml_values)
def test_any_value_is_taken_or_told(name: str, value: Any) -> None:
    try:
        found = checked(name, value, "here")
    except UsageError as error:
        assert str(error).startswith("here must be ")  # noqa: PT017  # taken is fine as well
    else:
        options = msgspec.structs.replace(Options(), **{name: found})
        assert msgspec.json.decode(msgspec.json.encode(options), type=Options) == options


@settings(max_examples=300, deadline=None)
@given(name=st.sampled_from(sorted(KEYS)), text=st.text(max_size=20))
def test_any_text_is_taken_or_told(name: str, text: str) -> None:
    try:
        read(name, text, "here")
    except UsageError as error:
        assert str(error).startswith("here must be ")  # noqa: PT017  # taken is fine as well

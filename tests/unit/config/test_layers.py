from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from reprocheck.config import (
    Layer,
    Options,
    environment_layer,
    layers_for,
    merge,
    pyproject_layer,
    script_layer,
    table_layer,
)
from reprocheck.config.options import KEYS, TABLES
from reprocheck.errors import UsageError
from reprocheck.model import Tolerance

# --- tables -----------------------------------------------------------------------------------------------------


def test_a_table_becomes_typed_values() -> None:
    layer = table_layer({"imports": ["a", "b"], "max-repeat": 5, "timeout": 3, "seed": None}, "x")
    assert layer == Layer(source="x", values={"imports": ("a", "b"), "max_repeat": 5, "timeout": 3.0})


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("repeats", "unknown key `repeats` in [tool.reprocheck] of p.toml: did you mean `repeat`?"),
        ("max-repeats", "unknown key `max-repeats` in [tool.reprocheck] of p.toml: did you mean `max_repeat`?"),
        ("zzz", "unknown key `zzz` in [tool.reprocheck] of p.toml; the keys are imports, workload, "),
    ],
)
def test_unknown_keys_are_told_with_a_suggestion(key: str, said: str) -> None:
    with pytest.raises(UsageError) as error:
        table_layer({key: 1}, "[tool.reprocheck] of p.toml")
    assert str(error.value).startswith(said)


def test_wrong_types_are_told_with_key_and_place() -> None:
    with pytest.raises(UsageError) as error:
        table_layer({"repeat": "3"}, "[tool.reprocheck] of p.toml")
    expected = "`repeat` in [tool.reprocheck] of p.toml must be a whole number of at least 1, not '3'."
    assert str(error.value) == expected


@pytest.mark.parametrize(
    ("key", "value", "result"),
    [
        ("python", ".venv/bin/python", "/project/sub/.venv/bin/python"),
        ("python", "../bin/python", "/project/bin/python"),
        ("python", "/usr/bin/python3", "/usr/bin/python3"),
        ("python", "python3.12", "python3.12"),
        ("python", "~/bin/python", "/home/me/bin/python"),
        ("orders", "orders.txt", "/project/sub/orders.txt"),
        ("orders", "./orders", "/project/sub/orders"),
        ("orders", "triples", "triples"),
        ("orders", "sample:5", "sample:5"),
    ],
)
def test_paths_are_meant_from_the_file_that_names_them(
    monkeypatch: pytest.MonkeyPatch, key: str, value: str, result: str
) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert table_layer({key: value}, "x", folder=Path("/project/sub")).values == {key: result}
    assert table_layer({key: value}, "x").values == {key: value}


# --- environment ------------------------------------------------------------------------------------------------


def test_the_environment_gives_options() -> None:
    layer = environment_layer(
        {"REPROCHECK_REPEAT": "5", "REPROCHECK_IMPORTS": "a, b", "REPROCHECK_SEED": "", "PATH": "/bin", "repeat": "9"}
    )
    assert layer == Layer(source="the environment", values={"repeat": 5, "imports": ("a", "b")})


def test_near_misses_in_the_environment_are_told_and_strangers_are_not() -> None:
    with pytest.raises(UsageError) as error:
        environment_layer({"REPROCHECK_REPEATS": "5"})
    assert str(error.value) == (
        "unknown variable `REPROCHECK_REPEATS` in the environment: did you mean `REPROCHECK_REPEAT`?"
    )
    assert environment_layer({"REPROCHECK_SOMETHING_ELSE": "1"}).values == {}


def test_wrong_values_in_the_environment_name_the_variable() -> None:
    with pytest.raises(UsageError, match=r"^`REPROCHECK_JOBS` must be a whole number of at least 1, not 'many'"):
        environment_layer({"REPROCHECK_JOBS": "many"})


# --- files ------------------------------------------------------------------------------------------------------


def test_a_script_gives_its_block(tmp_path: Path) -> None:
    path = tmp_path / "work.py"
    path.write_text(
        '# /// script\n# [tool.reprocheck]\n# seed = 7\n# python = "./py"\n# tolerance."l*" = 1e-3\n# ///\n'
    )
    layer = script_layer(path)
    assert layer is not None
    assert layer.source == f"[tool.reprocheck] of `{path}`"
    assert layer.values == {"seed": 7, "python": str(tmp_path / "py"), "tolerance": {"l*": Tolerance(rtol=1e-3)}}
    path.write_text("# /// script\n# dependencies = []\n# ///\n")
    assert script_layer(path) is None
    path.write_text("x = 1\n")
    assert script_layer(path) is None


def test_unknown_keys_of_a_script_are_told_with_its_name(tmp_path: Path) -> None:
    path = tmp_path / "work.py"
    path.write_text("# /// script\n# [tool.reprocheck]\n# repeats = 7\n# ///\n")
    with pytest.raises(UsageError) as error:
        script_layer(path)
    assert str(error.value) == f"unknown key `repeats` in [tool.reprocheck] of `{path}`: did you mean `repeat`?"


def test_the_nearest_pyproject_counts_even_without_our_table(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.reprocheck]\nrepeat = 4\n")
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    found = pyproject_layer(inner)
    assert found == Layer(source=f"[tool.reprocheck] of `{tmp_path / 'pyproject.toml'}`", values={"repeat": 4})
    (tmp_path / "a" / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert pyproject_layer(inner) is None
    assert pyproject_layer(tmp_path) == found


def test_a_pyproject_is_found_from_a_relative_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.reprocheck]\nrepeat = 4\n")
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    found = pyproject_layer(Path())
    assert found is not None
    assert found.values == {"repeat": 4}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"[tool.reprocheck\n", "is not valid TOML ("),
        (b"x = '\xff'\n", "is not valid TOML ("),
        (b"tool = 1\n", "must be a table"),
        (b"[tool]\nreprocheck = 1\n", "must be a table"),
        (b"[tool.reprocheck]\nrepeats = 1\n", "did you mean `repeat`?"),
        (b"[tool.reprocheck]\nrepeat = 'x'\n", "must be a whole number of at least 1, not 'x'."),
    ],
)
def test_wrong_pyprojects_are_told_with_their_path(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "pyproject.toml").write_bytes(content)
    with pytest.raises(UsageError) as error:
        pyproject_layer(tmp_path)
    assert said in str(error.value)
    assert str(tmp_path / "pyproject.toml") in str(error.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_pyproject_nobody_may_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch(mode=0)
    with pytest.raises(UsageError, match="Permission denied"):
        pyproject_layer(tmp_path)


# --- on top of each other ---------------------------------------------------------------------------------------


def test_command_line_over_environment_over_block_over_pyproject_over_default(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.reprocheck]\nrepeat = 1\nseed = 1\njobs = 1\ntimeout = 1\n")
    path = tmp_path / "work.py"
    path.write_text("# /// script\n# [tool.reprocheck]\n# repeat = 2\n# seed = 2\n# jobs = 2\n# ///\n")
    environ = {"REPROCHECK_REPEAT": "3", "REPROCHECK_SEED": "3"}
    found = merge(layers_for(path, cwd=Path("/"), environ=environ, command={"repeat": 4, "seed": None}))
    options = found.options
    assert (options.repeat, options.seed, options.jobs, options.timeout, options.orders) == (4, 3, 2, 1.0, "default")
    assert {name: found.origins[name] for name in ("repeat", "seed", "jobs", "timeout", "orders")} == {
        "repeat": "the command line",
        "seed": "the environment",
        "jobs": f"[tool.reprocheck] of `{path}`",
        "timeout": f"[tool.reprocheck] of `{tmp_path / 'pyproject.toml'}`",
        "orders": "default",
    }


def test_a_modules_pyproject_is_searched_from_where_the_user_is(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.reprocheck]\nrepeat = 4\n")
    assert merge(layers_for(None, cwd=tmp_path, environ={}, command={})).options.repeat == 4


def layer(source: str, **values: Any) -> Layer:
    return table_layer(values, source)


def test_nothing_given_is_the_defaults() -> None:
    found = merge([])
    assert found.options == Options()
    assert (found.options.repeat, found.options.max_repeat, found.options.timeout) == (3, 10, 600.0)
    assert found.options.observer
    assert not found.options.presence
    assert set(found.origins) == set(KEYS) - set(TABLES)
    assert set(found.origins.values()) == {"default"}


def test_tables_are_filled_entry_by_entry_the_stronger_patterns_last() -> None:
    found = merge(
        [
            layer("top", env={"A": "1"}, tolerance={"*": 1e-3}),
            layer("bottom", env={"A": "2", "B": "2"}, tolerance={"loss": 1e-6, "*": 1.0}),
        ]
    )
    assert found.options.env == {"A": "1", "B": "2"}
    assert list(found.options.tolerance.items()) == [("loss", Tolerance(rtol=1e-6)), ("*", Tolerance(rtol=1e-3))]
    assert {key: found.origins[key] for key in ("env.A", "env.B", "tolerance.*", "tolerance.loss")} == {
        "env.A": "top",
        "env.B": "bottom",
        "tolerance.*": "top",
        "tolerance.loss": "bottom",
    }


def test_merging_leaves_the_layers_as_they_are() -> None:
    layers = [layer("top", env={"A": "1"}), layer("bottom", env={"B": "2"})]
    before = msgspec.json.encode(layers)
    merge(layers)
    assert msgspec.json.encode(layers) == before


@pytest.mark.parametrize(
    ("layers", "repeat", "max_repeat", "origins"),
    [
        ([layer("cli", repeat=20)], 20, 20, ("cli", "cli")),
        ([layer("cli", max_repeat=2)], 2, 2, ("cli", "cli")),
        ([layer("cli", repeat=20), layer("file", max_repeat=10)], 20, 20, ("cli", "cli")),
        ([layer("cli", max_repeat=2), layer("file", repeat=5)], 2, 2, ("cli", "cli")),
        ([layer("cli", repeat=5, max_repeat=5)], 5, 5, ("cli", "cli")),
        ([layer("cli", repeat=5)], 5, 10, ("cli", "default")),
    ],
)
def test_of_repeat_and_its_limit_the_weaker_yields(
    layers: list[Layer], repeat: int, max_repeat: int, origins: tuple[str, str]
) -> None:
    found = merge(layers)
    assert (found.options.repeat, found.options.max_repeat) == (repeat, max_repeat)
    assert (found.origins["repeat"], found.origins["max_repeat"]) == origins


def test_a_layer_that_contradicts_itself_is_told() -> None:
    with pytest.raises(UsageError) as error:
        merge([layer("pyproject.toml", repeat=5, max_repeat=2)])
    assert str(error.value) == (
        "`repeat` (5) is above `max_repeat` (2) in pyproject.toml: set `max_repeat` to at least 5."
    )


tables = st.fixed_dictionaries(
    {},
    optional={
        "repeat": st.integers(1, 10),
        "jobs": st.integers(1, 9),
        "orders": st.sampled_from(["all", "pairs"]),
        "seed": st.integers(0, 9),
        "presence": st.booleans(),
        "env": st.dictionaries(st.sampled_from("ABC"), st.text("xyz")),
        "tolerance": st.dictionaries(st.sampled_from("abc"), st.integers(0, 3)),
        "vary": st.dictionaries(st.sampled_from("ABC"), st.lists(st.text("xyz"), max_size=2)),
    },
)


@settings(max_examples=100, deadline=None)
@given(st.lists(tables, max_size=4))
def test_the_strongest_layer_that_has_a_key_decides_it(drawn: list[Mapping[str, Any]]) -> None:
    layers = [table_layer(table, str(i)) for i, table in enumerate(drawn)]
    found = merge(layers)
    for name in KEYS:
        value = getattr(found.options, name)
        if name in TABLES:
            assert set(value) == {entry for one in layers for entry in one.values.get(name, {})}
            for entry, item in value.items():
                first = next(one for one in layers if entry in one.values.get(name, {}))
                assert (item, found.origins[f"{name}.{entry}"]) == (first.values[name][entry], first.source)
        else:
            holder = next((one for one in layers if name in one.values), None)
            assert found.origins[name] == (holder.source if holder else "default")
            assert value == (holder.values[name] if holder else getattr(Options(), name))

"""The environment of a trial."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, strategies as st

from reprocheck.engine.environment import from_block, to_block, trial_environment, user_environment

names = st.text(st.characters(codec="ascii", categories=["Lu", "Nd"]), min_size=1, max_size=8)


def test_what_never_belongs_into_a_trial_is_dropped_and_said() -> None:
    shaped = trial_environment(
        {"PATH": "/bin", "PYTEST_CURRENT_TEST": "x", "COVERAGE_PROCESS_START": "y", "PYTHON_LAZY_IMPORTS": "all"}, {}
    )

    assert shaped.variables == {"PATH": "/bin", "PYTHONHASHSEED": "0"}
    assert shaped.dropped == ("COVERAGE_PROCESS_START", "PYTEST_CURRENT_TEST", "PYTHON_LAZY_IMPORTS")
    assert shaped.pinned == {"PYTHONHASHSEED": "0"}


def test_a_hash_seed_of_the_users_own_stays() -> None:
    assert trial_environment({"PYTHONHASHSEED": "7"}, {}).pinned == {}
    assert trial_environment({}, {"PYTHONHASHSEED": "random"}).variables == {"PYTHONHASHSEED": "random"}


@given(st.dictionaries(names, names), st.dictionaries(names, st.none() | names))
def test_changes_win_and_none_removes(base: dict[str, str], changes: dict[str, str | None]) -> None:
    variables = trial_environment(base, changes).variables

    for name, value in changes.items():
        assert variables.get(name) == value
    for name, value in base.items():
        if name not in changes:
            assert variables[name] == value


def test_later_changes_of_os_environ_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SET_BY_A_PLUGIN", "1")

    assert "SET_BY_A_PLUGIN" not in user_environment()
    assert "SET_BY_A_PLUGIN" in os.environ


@given(st.dictionaries(names, st.binary(max_size=20).filter(lambda value: b"\0" not in value)))
def test_a_block_of_variables_keeps_bytes_that_are_no_text(values: dict[str, bytes]) -> None:
    variables = {name: os.fsdecode(value) for name, value in values.items()}
    assert from_block(to_block(variables)) == variables
    assert to_block(variables) == b"".join(name.encode() + b"=" + value + b"\0" for name, value in values.items())

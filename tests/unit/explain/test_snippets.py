from __future__ import annotations

import ast
import os
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reprocheck.explain import snippets


@pytest.fixture
def as_before() -> Iterator[None]:
    """The interpreter's settings, put back."""
    interval, limit, cwd = sys.getswitchinterval(), sys.getrecursionlimit(), Path.cwd()
    yield
    sys.setswitchinterval(interval)
    sys.setrecursionlimit(limit)
    os.chdir(cwd)


@pytest.mark.parametrize("value", ["1", "a b", "$HOME", "it's", ""])
def test_a_variable_arrives_as_it_is(value: str) -> None:
    lines = snippets.environment("NAME", value)

    (_, assignment) = shlex.split(lines["shell"])
    assert assignment == f"NAME={value}"
    assert shlex.split(lines["Dockerfile"]) == ["ENV", f"NAME={value}"]


@pytest.mark.parametrize(
    ("key", "value", "read"),
    [
        ("process.switch_interval", 0.25, sys.getswitchinterval),
        ("process.recursion_limit", 1234, sys.getrecursionlimit),
        ("process.cwd", "/", os.getcwd),
    ],
)
def test_setters_do_what_they_say(key: str, value: Any, read: Any, as_before: None) -> None:
    for text in snippets.after_imports(snippets.setter_call(key, value)).values():
        exec(text, {})
        assert read() == value


def test_numpys_error_state() -> None:
    numpy = pytest.importorskip("numpy")
    with numpy.errstate():
        exec(snippets.after_imports(snippets.setter_call("numpy.errstate.over", "raise"))["conftest.py"], {})

        assert numpy.geterr()["over"] == "raise"


@pytest.mark.parametrize(
    "key",
    [
        *snippets._CALLS,
        "torch.fp32.cuda.matmul",
        "numpy.errstate.over",
        "process.locale.numeric",
        "process.affinity",
        "process.umask",
    ],
)
def test_all_are_one_statement_with_its_import(key: str) -> None:
    value = "0-1,4" if key == "process.affinity" else "value"
    lines = snippets.after_imports(snippets.setter_call(key, value))

    for line in lines.values():
        assert "\n" not in line
        statements = ast.parse(line).body
        if line.startswith("#"):
            assert (key, statements) == ("process.umask", [])
        else:
            imported, statement = statements
            assert isinstance(imported, ast.Import)
            assert ast.unparse(statement).startswith(imported.names[0].name + ".")


def test_processors_are_counted_out() -> None:
    assert snippets.setter_call("process.affinity", "0-2,5") == "os.sched_setaffinity(0, {0, 1, 2, 5})"


def test_an_original_is_kept_and_comes_back() -> None:
    import json

    lines, names = snippets.original("json.decoder", "scanstring"), dict[str, Any]()
    kept = json.decoder.scanstring  # type: ignore[attr-defined]
    exec(lines["before other imports"], names)
    json.decoder.scanstring = None  # type: ignore[attr-defined]
    exec(lines["after the imports"], names)

    assert json.decoder.scanstring is kept  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        ({"ftz": False, "daz": False, "rounding": "nearest"}, "torch.set_flush_denormal(False)"),
        ({"ftz": True, "daz": True, "rounding": "nearest"}, "torch.set_flush_denormal(True)"),
        ({"ftz": False, "rounding": "up"}, "# set the rounding mode to up, flush-to-zero to False"),
    ],
)
def test_floating_point_control(wanted: dict[str, Any], code: str) -> None:
    assert snippets.control_call(wanted) == code

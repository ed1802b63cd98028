"""The report for a terminal: nothing in it steers the terminal, nothing is cut without a word."""

from __future__ import annotations

import io
from typing import Any, Literal

import pytest

from reprocheck.model import Arm, Change, Difference, Failure, Group, StateDifference
from reprocheck.report.failure import failure_text
from reprocheck.report.text import console_for, print_differences, print_study
from tests.samples import tiny_study


def one(kind: Literal["equal", "missing"], dtype: str, other: str) -> Difference:
    return Difference(kind=kind, dtype=dtype, shape=(), other_dtype=other, other_shape=())


def printed(**fields: Any) -> str:
    stream = io.StringIO()
    print_study(tiny_study(**fields), console_for(stream))
    return stream.getvalue()


def diff(differences: dict[str, Difference]) -> str:
    stream = io.StringIO()
    print_differences(differences, ("one", "two"), console_for(stream))
    return stream.getvalue()


def test_what_a_workload_says_does_not_steer_the_terminal() -> None:
    failure = Failure(
        kind="exception",
        phase="x",
        signature="x",
        message="E: \x1b[31mred",
        traceback="\x1b]0;title\x07\nE: \x1b[31mred",
    )
    group = Group(id="A", orders=(("a", "b"),), trials=1, outcome=failure.message, failure=failure)

    text = printed(headline="fails-everywhere: E: \x1b[31mred", verdict="fails-everywhere", groups=(group,))

    assert "\x1b" not in text
    assert "\x07" not in text
    assert "fails-everywhere: E: \\x1b[31mred" in text
    assert "\\x1b]0;title" in text


def test_an_arm_with_many_outcomes_says_how_many_are_left_out() -> None:
    letters = "ABCDEFGHIJ"
    groups = tuple(Group(id=name, orders=(("a", "b"),), trials=1, outcome="ok") for name in letters)
    arm = Arm(order=("a", "b"), effective_order=("a", "b"), trials=10, failures=0, group=None, groups=tuple(letters))

    text = printed(verdict="noisy", groups=groups, orders=(arm,))

    assert "1 x E, 1 x F and 4 more" in " ".join(text.split())


def test_groups_with_one_state_are_told_together() -> None:
    """Where identical runs differ, each is a group of its own."""
    changes = tuple(
        Change(group=name, order=("a", "b"), value="1" if name in "AB" else "2", phase="t0") for name in "ABCD"
    )
    state = StateDifference(key="environ.python.X", phase="t2", severity="latent", why="Because.", changes=changes)

    text = printed(verdict="noisy", state_differences=(state,))

    assert "    A, B: 1, from the start\n    C, D: 2, from the start\n" in text
    told = failure_text(tiny_study(verdict="noisy", state_differences=(state,)))
    assert "environ.python.X  A, B: 1, from the start; C, D: 2, from the start" in told


def test_diff_speaks_of_the_two_things_it_was_given() -> None:
    missing = one("missing", "float64", "")
    added = one("missing", "", "float64")

    text = diff({"x": missing, "y": added, "same": one("equal", "float64", "float64")})

    assert "only in `one`" in text
    assert "only in `two`" in text
    assert "reference" not in text
    assert not [line for line in text.splitlines() if line != line.rstrip()]
    assert diff({"x": one("equal", "float64", "float64")}) == "identical: 1 output equal bit for bit\n"


LARGE = Difference(
    kind="values",
    dtype="float32",
    shape=(132355,),
    other_dtype="float32",
    other_shape=(132355,),
    size=132355,
    differing=132073,
    max_ulp=2089880122,
    max_abs=0.39,
    max_rel=3.6,
    first_index=(0,),
    first_values=("0.030436829", "0.030436419"),
)


@pytest.mark.parametrize("width", [60, 80])
def test_a_narrow_terminal_folds_no_name_and_no_number(width: int) -> None:
    stream = io.StringIO()
    console = console_for(stream)
    console.width = width
    print_differences({"torch.svd.float32_257": LARGE, "y": one("missing", "", "float64")}, ("one", "two"), console)

    text = stream.getvalue()
    lines = text.split("\n")
    assert "  torch.svd.float32_257" in lines
    assert "max ulp 2,089,880,122" in text
    assert "differing 132,073 of 132,355" in text
    assert "A | B there 0.030436829 | 0.030436419" in text
    assert "    only in `two`" in lines
    assert all(len(line) <= width for line in lines[2:8])


def test_a_wide_terminal_has_a_table() -> None:
    row = [line for line in diff({"torch.svd.float32_257": LARGE}).split("\n") if "torch.svd" in line]

    assert row[0].split()[:2] == ["torch.svd.float32_257", "float32[132355]"]


def test_diff_of_one_output_is_of_one_output() -> None:
    assert diff({"y": LARGE}).startswith("differ: 1 of 1 output differs between")


def test_diff_says_what_it_leaves_out() -> None:
    missing = one("missing", "float64", "")

    text = diff({f"x{number}": missing for number in range(100)})

    shown = sum("only in `one`" in line for line in text.splitlines())
    assert f"and {100 - shown} more" in text

"""A test suite's study, told test by test."""

from __future__ import annotations

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from reprocheck.compare.suite import FAILURE, OUTCOME, REASON, split_name
from reprocheck.headline import outcomes_text
from reprocheck.model import OutputDifference, Suite

__all__ = ["print_suite", "recorded"]

MAX_TESTS = 20
MAX_FAILING = 10
MAX_LINES = 8


def print_suite(suite: Suite, console: Console) -> None:
    """The tests that differ, each with what it did in which order, and those that fail alike everywhere."""
    if suite.differing:
        _title(f"tests that differ ({len(suite.differing)} of {suite.tests})", console)
    for test in suite.differing[:MAX_TESTS]:
        console.print(Text.assemble("  ", (test.test, "bold"), f"  {test.verdict}"), soft_wrap=True)
        p = f"  (p = {test.p_value:.2g})" if test.p_value is not None else ""
        console.print(Text(f"    {outcomes_text(test)}{p}"), soft_wrap=True)
        if test.failure:
            lines = _telling(test.failure)
            console.print(Padding(Text("\n".join(lines), style="dim"), (0, 0, 0, 4)))
    if len(suite.differing) > MAX_TESTS:
        console.print(f"  and {len(suite.differing) - MAX_TESTS} more (see --format json)")
    if suite.failing:
        _title(f"tests that fail alike in every order ({len(suite.failing)} of {suite.tests})", console)
        for name in suite.failing[:MAX_FAILING]:
            console.print(Text(f"  {name}"), soft_wrap=True)
        if len(suite.failing) > MAX_FAILING:
            console.print(f"  and {len(suite.failing) - MAX_FAILING} more (see --format json)")


def recorded(outputs: tuple[OutputDifference, ...]) -> tuple[OutputDifference, ...]:
    """The values that tests recorded, without the outcomes and texts that pytest gives."""
    return tuple(output for output in outputs if split_name(output.name)[1] not in (OUTCOME, FAILURE, REASON))


def _telling(failure: str) -> list[str]:
    """The lines of a failure that say what went wrong: pytest marks them with an E."""
    lines = failure.rstrip().splitlines()
    marked = [line for line in lines if line.startswith("E  ")]
    chosen = marked or lines
    return chosen if len(chosen) <= MAX_LINES else [*chosen[: MAX_LINES - 1], "…"]


def _title(text: str, console: Console) -> None:
    console.print()
    console.print(Text(text, style="bold"))

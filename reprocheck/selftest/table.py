"""The self-test's result as a table."""

from __future__ import annotations

from collections.abc import Iterator

from reprocheck.selftest.score import Case, SelfTest

__all__ = ["lines", "row"]

WIDTH = 46
_MARKS = {True: "✓", False: "✗", None: "·"}


def row(case: Case) -> str:
    """One case: five marks (verdict, rule, place, cause, remedy), its name, and what was wrong."""
    marks = " ".join(_MARKS[mark] for mark in (case.verdict, case.rule, case.place, case.cause, case.remedy))
    text = f"{marks}  {case.name[:WIDTH]:{WIDTH}} {case.trials:4d} trials {case.seconds:6.1f} s"
    wrong = []
    if not case.verdict:
        wrong.append(f"planted {case.planted_verdict}, found {case.found_verdict}")
    if not case.cause:
        wrong.append(f"planted {_keys(case.planted_causes)}, found {_keys(case.found_causes)}")
    return f"{text}  {'; '.join(wrong)}".rstrip()


def _keys(keys: tuple[str, ...]) -> str:
    return ", ".join(keys) or "no cause"


def lines(result: SelfTest) -> Iterator[str]:
    """The whole table with its totals."""
    yield "verdict, rule, place, cause, remedy: ✓ found, ✗ missed, · nothing to find"
    kinds = list(dict.fromkeys(case.kind for case in result.cases))
    for kind in kinds:
        yield ""
        yield kind
        for case in result.cases:
            if case.kind == kind:
                yield f"  {row(case)}"
    yield ""
    faults = sum(case.count != "none" for case in result.cases)
    yield (
        f"{faults} faults and {len(result.cases) - faults} innocent cases: {result.found} of {result.planted} verdicts "
        f"and causes found (recall {result.recall:.1%}, precision {result.precision:.1%}), {result.trials} trials, "
        f"{result.seconds:.0f} s"
    )
    for item in result.not_checked:
        yield f"not checked: {item.what} ({item.why})"

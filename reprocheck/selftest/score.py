"""Planted against found: what each case shows, and recall and precision over all of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from reprocheck.engine.abilities import NotChecked
from reprocheck.model import Struct, Study
from reprocheck.selftest.planted import Fault

__all__ = ["Case", "NotChecked", "SelfTest", "judge_case", "summary"]


class Case(Struct, frozen=True, kw_only=True):
    """One planted fault, and what was found of it. None where there is nothing to find."""

    name: str
    kind: str
    count: str
    planted_verdict: str
    found_verdict: str
    planted_causes: tuple[str, ...]
    found_causes: tuple[str, ...]
    """Keys of causes, `… (correlated)` for those shown in one direction only, `unknown`."""
    verdict: bool
    cause: bool
    rule: bool | None = None
    """Whether the pair of subjects that was found is the planted one."""
    place: bool | None = None
    """Whether the lines that were found are planted ones."""
    remedy: bool | None = None
    """Whether a remedy was found under which all orders agree."""
    trials: int
    seconds: float


class SelfTest(Struct, frozen=True, kw_only=True):
    """The result of the self-test. Its JSON is what `--format json` prints."""

    schema: str = "reprocheck/selftest"
    schema_version: int = 1
    reprocheck_version: str
    quick: bool
    isolation: str = "fresh"
    planted: int
    """Verdicts and causes that were planted."""
    found: int
    """Those of them that were found."""
    recall: float
    """Share of the planted ones that were found."""
    precision: float
    """Share of what was named that had been planted."""
    trials: int
    seconds: float
    not_checked: tuple[NotChecked, ...]
    cases: tuple[Case, ...]

    @property
    def passed(self) -> bool:
        """True when everything planted was found, and nothing else was named."""
        return self.recall == 1.0 and self.precision == 1.0


def judge_case(fault: Fault, study: Study, folder: Path, trials: int, seconds: float) -> Case:
    """What `study` found of `fault`, which was planted in `folder`."""
    found = sorted({_named(cause.key, cause.status) for cause in study.causes})
    places = [
        (str(Path(cause.event.file).relative_to(folder)), cause.event.line)
        for cause in study.causes
        if cause.event is not None
        and cause.event.file
        and cause.event.line
        and Path(cause.event.file).is_relative_to(folder)
    ]
    pair = study.rule.pair if study.rule is not None else None
    return Case(
        name=fault.name,
        kind=fault.kind,
        count=fault.count,
        planted_verdict=fault.verdict,
        found_verdict=study.verdict,
        planted_causes=tuple(sorted(fault.causes)),
        found_causes=tuple(found),
        verdict=study.verdict == fault.verdict,
        cause=set(found) == fault.causes,
        rule=None if fault.pair is None else pair is not None and set(pair) == set(fault.pair),
        place=all(place in fault.places() for place in places) if places and fault.places() else None,
        remedy=None if not fault.causes or not fault.remedy else study.remedy is not None and study.remedy.agrees,
        trials=trials,
        seconds=round(seconds, 2),
    )


def _named(key: str, status: str) -> str:
    if status == "unknown":
        return "unknown"
    return key if status == "confirmed" else f"{key} (correlated)"


def summary(cases: Sequence[Case]) -> tuple[int, int, float, float]:
    """(planted, found, recall, precision) of verdicts and causes together."""
    planted = sum(1 + len(case.planted_causes) for case in cases)
    named = sum(1 + len(case.found_causes) for case in cases)
    found = sum(case.verdict + len({*case.planted_causes} & {*case.found_causes}) for case in cases)
    return planted, found, found / planted if planted else 1.0, found / named if named else 1.0

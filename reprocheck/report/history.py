"""Many runs at once: run folders below a folder, worst first, and what became of each workload over time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

from reprocheck.errors import StoreError, UsageError
from reprocheck.model import Struct, Study, Verdict
from reprocheck.report.json import read_studies
from reprocheck.store.run import PARTIAL, Run

__all__ = ["Point", "Series", "collect", "run_folders", "series_of", "worst_first"]

DEEPEST = 4
"""Levels below a folder at which run folders are looked for: a bisection keeps its studies two levels down."""

_RANK = {verdict: number for number, verdict in enumerate(get_args(Verdict))}
_BAD_LAST = {"inconclusive": _RANK["noisy"] + 0.5}


class Point(Struct, frozen=True, kw_only=True):
    """One past run of a workload."""

    when: float
    """Seconds since the epoch."""
    verdict: Verdict
    agreed: bool
    differing: int
    outputs: int
    headline: str


class Series(Struct, frozen=True, kw_only=True):
    """The runs of one workload, oldest first."""

    workload: str
    subjects: tuple[str, ...]
    points: tuple[Point, ...]


def run_folders(folder: Path) -> Iterator[Path]:
    """Finished run folders in or below `folder`, by name."""
    level = [folder]
    for _ in range(DEEPEST):
        below = []
        for place in level:
            if (place / "spec.json").is_file():
                if (place / "study.json").is_file() and not place.name.endswith(PARTIAL):
                    yield place
                continue
            try:
                below += sorted(item for item in place.iterdir() if item.is_dir() and not item.is_symlink())
            except OSError:
                continue
        level = below


def collect(path: Path) -> list[tuple[Study, Path | None]]:
    """The studies of a run folder, of all run folders below a folder, or of a JSON report, each with its run folder.

    Raises `UsageError` when there is none, and `StoreError` for a run folder that can't be read.
    """
    if path.is_file():
        return [(study, None) for study in read_studies(path.read_bytes())]
    if not path.exists():
        raise UsageError(f"there is no `{path}`; give a run folder, a folder of them, or a JSON report")
    if (path / "spec.json").is_file():
        return [(Run(path).study(), path)]
    found: list[tuple[Study, Path | None]] = [(Run(folder).study(), folder) for folder in run_folders(path)]
    if not found:
        raise StoreError(f"`{path}` is not a run folder, and there is none in it; list runs with `reprocheck list`")
    return found


def worst_first(study: Study) -> tuple[float, str, str]:
    """Sort key: verdicts from worst to best, then by name and time."""
    return (_BAD_LAST.get(study.verdict, _RANK[study.verdict]), study.workload, study.started)


def series_of(studies: Iterable[Study], wanted: Sequence[Study]) -> list[Series]:
    """The history of each workload among `wanted`, they themselves included; only those with at least two runs."""
    by_name: dict[tuple[str, tuple[str, ...]], dict[str, Study]] = {}
    names = {(study.workload, tuple(sorted(study.subjects))) for study in wanted}
    for study in [*studies, *wanted]:
        key = (study.workload, tuple(sorted(study.subjects)))
        if key in names:
            by_name.setdefault(key, {})[study.run_dir or f"{study.started} {id(study)}"] = study
    found = []
    for (workload, subjects), runs in sorted(by_name.items()):
        points = sorted(
            (_point(study) for study in runs.values() if _when(study) is not None), key=lambda one: one.when
        )
        if len(points) > 1:
            found.append(Series(workload=workload, subjects=subjects, points=tuple(points)))
    return found


def _when(study: Study) -> float | None:
    try:
        when = datetime.fromisoformat(study.started)
    except ValueError:
        return None
    return (when if when.tzinfo is not None else when.replace(tzinfo=UTC)).timestamp()


def _point(study: Study) -> Point:
    return Point(
        when=_when(study) or 0.0,
        verdict=study.verdict,
        agreed=study.exit_code == 0,
        differing=sum(1 for output in study.outputs if output.differs),
        outputs=len(study.outputs),
        headline=study.headline,
    )

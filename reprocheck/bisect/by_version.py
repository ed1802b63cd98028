"""Since which version of a package: the versions there are, as a line to search."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from reprocheck.bisect.answer import Line, answer
from reprocheck.bisect.environments import PackageEnvironments, parse_requirement
from reprocheck.bisect.locks import read_lock
from reprocheck.bisect.question import Session
from reprocheck.bisect.records import Candidate, Report, Unavailable
from reprocheck.bisect.versions import list_versions, select
from reprocheck.errors import UsageError

__all__ = ["bisect_versions", "skipped"]


def bisect_versions(session: Session) -> Report:
    """The report on the versions of the question's package. Raises `UsageError` and `HarnessError`."""
    question = session.question
    interpreter = session.interpreter()
    installer, pip = session.installer(interpreter)
    versions = list_versions(question.package, question.sources, pip, yanked=question.yanked)
    ends = select(versions, question.good, question.bad, pre=question.sources.pre, find_fix=question.find_fix)
    extra: list[str] = list(question.requirements)
    if question.lock:
        extra += [pin.requirement for pin in read_lock(Path(question.lock), interpreter.markers).values()]
    elif question.base == "clean" and not extra and session.workload:
        extra += session.workload.dependencies
    environments = PackageEnvironments(
        versions.package,
        interpreter,
        installer,
        session.store,
        inherit=question.base == "inherit",
        extra=[text for text in extra if not _is(text, versions.package)],
        sources=msgspec.to_builtins(question.sources),
        yanked=question.yanked,
    )
    blocked = {name: one for name, one in versions.unavailable.items() if name in {c.name for c in ends.candidates}}
    blocked |= skipped(ends.candidates, question.skip)
    rest = [candidate for candidate in ends.candidates if candidate.name not in blocked]
    if question.preflight:
        session.note(f"looking which of {len(rest)} versions can be installed")
        blocked |= environments.preflight(rest)
    line = Line(
        candidates=ends.candidates,
        prepare=environments.prepare,
        walk=ends.walk,
        blocked=blocked,
        package=versions.package,
        sure=question.preflight and installer.previews,
        notes=versions.notes,
    )
    return answer(session, line)


def skipped(candidates: Sequence[Candidate], texts: Sequence[str]) -> dict[str, Unavailable]:
    """Those that `--skip` takes out: single ones by name, or `A..B` for all from A to B. Raises `UsageError`."""
    names = [candidate.name for candidate in candidates]
    found: dict[str, Unavailable] = {}
    for text in texts:
        first, dots, last = text.partition("..")
        ends = [_index(names, end, text) for end in ((first, last) if dots else (first,))]
        for name in names[ends[0] : ends[-1] + 1]:
            found[name] = Unavailable(kind="skipped", reason=f"--skip {text}")
    return found


def _index(names: Sequence[str], end: str, text: str) -> int:
    for index, name in enumerate(names):
        if name == end or _same_version(name, end):
            return index
    raise UsageError(f"--skip `{text}` names `{end}`, which is not among what is searched; give names, or A..B")


def _same_version(one: str, other: str) -> bool:
    try:
        return Version(one) == Version(other)
    except InvalidVersion:
        return False


def _is(text: str, package: str) -> bool:
    return str(canonicalize_name(parse_requirement(text).name)) == package

"""Since which commit: the main line of a git history first, then into the merge that brought it in.

Following first parents keeps the history a line, as `git bisect --first-parent` does: each commit on it is what people
had at the time. If the first bad one is a merge, the commits it merged are a line of their own, searched next.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from reprocheck.bisect.answer import Line, answer
from reprocheck.bisect.by_version import skipped
from reprocheck.bisect.environments import PackageEnvironments
from reprocheck.bisect.git import Commit, Repository
from reprocheck.bisect.question import Session
from reprocheck.bisect.records import Candidate, Place, Report, Unavailable
from reprocheck.errors import NothingSelectedError, UsageError

__all__ = ["bisect_commits"]

_DEPTH = 5  # merges within merges
_NO_PACKAGES = {"test", "tests", "testing", "doc", "docs", "example", "examples", "benchmark", "benchmarks", "scripts"}


def bisect_commits(session: Session) -> Report:
    """The report on the history of the question's repository. Raises `UsageError` and `HarnessError`."""
    question = session.question
    if question.build and not question.package:
        raise UsageError("--build installs a package, so its name is needed: add --package NAME")
    repository = Repository(Path(question.repo), session.environment)
    old, new = (question.bad, question.good) if question.find_fix else (question.good, question.bad)
    last = repository.commit(new or "HEAD")
    first = repository.commit(old) if old else None
    if first is not None:
        _refuse_no_line(repository, first, last, question.find_fix)
    checkouts = _checkouts(session, repository, last)
    try:
        commits = repository.line(first.sha if first else None, last.sha)
        report = answer(session, _line(session, checkouts, commits, walk=first is None))
        return _into_merges(session, checkouts, report)
    finally:
        checkouts.remove()


def _refuse_no_line(repository: Repository, first: Commit, last: Commit, find_fix: bool) -> None:
    if repository.is_ancestor(first.sha, last.sha):
        return
    if repository.is_ancestor(last.sha, first.sha):
        advice = "swap them" if find_fix else "swap them, or add --find-fix to find where it was fixed"
        raise UsageError(f"{first.short} comes after {last.short}; {advice}")
    base = repository.merge_base(first.sha, last.sha)
    raise UsageError(
        f"{first.short} is no ancestor of {last.short}, so no line leads from one to the other"
        + (f"; try where their histories parted, {base[:12]}" if base else "; they share no history")
    )


@dataclass(slots=True)
class _Checkouts:
    """Commits as places where the package can be imported from."""

    session: Session
    repository: Repository
    folder: Path
    subdir: str
    environments: PackageEnvironments | None
    trees: dict[str, str] = field(default_factory=dict)
    made: list[Path] = field(default_factory=list)
    lacking: dict[str, str] = field(default_factory=dict)
    """Commit -> why it can't be checked out as a whole."""

    def candidates(self, commits: Sequence[Commit]) -> tuple[Candidate, ...]:
        self.trees.update(self.repository.trees(commits, "." if self.environments else self.subdir))
        return tuple(
            Candidate(
                name=one.short,
                commit=one.sha,
                title=one.title[:80] + (" (merge)" if len(one.parents) > 1 else ""),
                content=self.trees.get(one.sha, ""),
                requirement=f"{self.session.question.package} @ {self._tree(one.sha).as_uri()}"
                if self.environments
                else "",
            )
            for one in commits
        )

    def prepare(self, candidate: Candidate) -> Place | Unavailable:
        """Check the commit out; then build and install it, or put it on the module search path."""
        if candidate.commit not in self.trees:
            return Unavailable(kind="other", reason=f"has no folder `{self.subdir}`")
        tree = self._tree(candidate.commit)
        if not tree.exists():
            self.made.append(tree)
            lacking = self.repository.check_out(candidate.commit, tree)
            if lacking is not None:
                self.lacking[candidate.commit] = lacking
        if candidate.commit in self.lacking:
            return Unavailable(kind="other", reason=self.lacking[candidate.commit])
        if self.environments is not None:
            return self.environments.prepare(candidate)
        root = tree / self.subdir if self.subdir not in ("", ".") else tree
        before = self.session.environment.get("PYTHONPATH", "")
        return Place(
            python=self.session.python,
            folder=str(tree),
            content=candidate.content,
            installed={},
            files=self.repository.files(candidate.commit, self.subdir),
            root=str(root),
            modules=self._modules(root),
            env={"PYTHONPATH": os.pathsep.join(filter(None, (str(root), before)))},
        )

    def remove(self) -> None:
        """Take all checkouts away."""
        for tree in self.made:
            self.repository.remove(tree)
        if self.folder.is_dir() and not any(self.folder.iterdir()):
            self.folder.rmdir()

    def _tree(self, sha: str) -> Path:
        return self.folder / sha[:16]

    def _modules(self, root: Path) -> tuple[str, ...]:
        """Packages that trials must find here, and not somewhere before it on the search path."""
        named = self.session.question.package.replace("-", "_")
        if named and ((root / named).is_dir() or (root / f"{named}.py").exists()):
            return (named,)
        packages = (path.parent.name for path in root.glob("*/__init__.py"))
        return tuple(sorted(name for name in packages if name not in _NO_PACKAGES and name.isidentifier()))


def _checkouts(session: Session, repository: Repository, last: Commit) -> _Checkouts:
    question = session.question
    environments = None
    if question.build:
        interpreter = session.interpreter()
        installer, _ = session.installer(interpreter)
        environments = PackageEnvironments(
            question.package,
            interpreter,
            installer,
            session.store,
            inherit=question.base == "inherit",
            extra=question.requirements,
            sources=msgspec.to_builtins(question.sources),
        )
    subdir = question.subdir
    if subdir is None:
        inside = repository.files(last.sha, ".")
        subdir = "src" if any(path.startswith("src/") and path.endswith("/__init__.py") for path in inside) else "."
    folder = session.journal.folder / "worktrees"
    return _Checkouts(session, repository, folder, subdir.strip("/") or ".", environments)


def _line(session: Session, checkouts: _Checkouts, commits: Sequence[Commit], *, walk: bool = False) -> Line:
    candidates = checkouts.candidates(commits)
    if len(candidates) < 2:
        raise NothingSelectedError("there is nothing to search: the ends are the same commit; name others")
    return Line(
        candidates=candidates,
        prepare=checkouts.prepare,
        walk=walk,
        blocked=skipped(candidates, session.question.skip),
        package=session.question.package,
        noun="commit",
    )


def _into_merges(session: Session, checkouts: _Checkouts, report: Report) -> Report:
    """Follow a boundary that is a merge into the commits it merged, as far as they are to blame."""
    repository = checkouts.repository
    trail: list[str] = []
    for _ in range(_DEPTH):
        name = report.last_good if session.question.find_fix else report.first_bad
        if report.outcome != "found" or name is None or session.question.first_parent:
            break
        merge = repository.commit(name)
        if len(merge.parents) < 2:
            break
        found = None
        for parent in merge.parents[1:]:
            base = repository.merge_base(merge.parents[0], parent)
            if base is None:
                continue
            session.note(f"{name} is a merge ({merge.title}): looking into what it merged")
            inner = answer(session, _line(session, checkouts, repository.line(base, parent)))
            if inner.outcome == "found":
                found = inner
                break
        if found is None:
            note = f"{name} is a merge, and nothing it merged shows it alone: the merge itself brought it in"
            report = msgspec.structs.replace(report, notes=(*report.notes, note))
            break
        trail.append(f"on the main line it came with the merge {name} ({merge.title})")
        total = report.versions_total + found.versions_total
        report = msgspec.structs.replace(
            found,
            versions_total=total,
            versions_run=report.versions_run + found.versions_run,
            runs=report.runs + found.runs,
            seconds=round(report.seconds + found.seconds, 3),
            started=report.started,
        )
    report = msgspec.structs.replace(report, notes=(*trail, *report.notes))
    session.journal.finish(report)
    return report

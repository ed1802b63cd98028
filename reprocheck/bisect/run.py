"""One call for every kind of bisection."""

from __future__ import annotations

from pathlib import Path

from reprocheck.bisect.question import Note, Question, Session
from reprocheck.bisect.records import Report

__all__ = ["bisect"]


def bisect(question: Question, note: Note = lambda _: None, *, cwd: Path | None = None) -> Report:
    """Answer `question`; `note` is told in lines how it goes.

    Raises:
        UsageError: The question can't be asked; what was run is kept.
        NothingSelectedError: There is nothing to search.
        HarnessError: The instrument failed (network, disk, a broken check); nothing is concluded from that.
    """
    with Session(question, note, cwd=cwd) as session:
        if question.kind == "versions":
            from reprocheck.bisect.by_version import bisect_versions

            return bisect_versions(session)
        if question.kind == "git":
            from reprocheck.bisect.by_commit import bisect_commits

            return bisect_commits(session)
        from reprocheck.bisect.by_lock import bisect_locks

        return bisect_locks(session)

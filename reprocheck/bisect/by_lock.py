"""Which of the changed packages: the smallest sets, in the difference of two lock files, that flip the outcome.

A mixture of two locks is something no resolver made, so many can't be installed. Those say nothing: they are taken as
not flipping it, which can make a set found larger than need be, but never wrong, since it was run itself.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from reprocheck.bisect import noise
from reprocheck.bisect.answer import EXIT_CODES
from reprocheck.bisect.environments import parse_requirement
from reprocheck.bisect.hunt import kind_text, told
from reprocheck.bisect.installers import Installer, Requirements
from reprocheck.bisect.interpreter import Interpreter
from reprocheck.bisect.journal import Entry
from reprocheck.bisect.locks import Change, Pin, changes, mixture, read_lock
from reprocheck.bisect.question import Session
from reprocheck.bisect.records import (
    AlsoChanged,
    Candidate,
    Culprits,
    Outcome,
    Place,
    Report,
    Seen,
    Unavailable,
    Untestable,
    VersionRow,
)
from reprocheck.bisect.store import environment_key
from reprocheck.bisect.wheels import content_digest, installed_in
from reprocheck.errors import NothingSelectedError, StoreError, UsageError
from reprocheck.explain.minimal import smallest
from reprocheck.explain.search import find_culprits

__all__ = ["bisect_locks"]

_GOOD, _BAD = "good", "bad"
_ODDS = noise.ENOUGH
_MOST = 20
"""Runs of one mixture, when outcomes flake."""


def bisect_locks(session: Session) -> Report:
    """The report on the difference of the question's lock files. Raises `UsageError` and `HarnessError`."""
    begin, started = time.monotonic(), time.strftime("%Y-%m-%dT%H:%M:%S%z")
    question = session.question
    interpreter = session.interpreter()
    good, bad = (read_lock(Path(path or ""), interpreter.markers) for path in (question.good, question.bad))
    differing = changes(good, bad)
    if not differing:
        raise NothingSelectedError("the two lock files pin the same; there is no difference to search")
    installer, _ = session.installer(interpreter)
    session.note(f"{len(differing)} of {len({*good, *bad})} packages differ: {_names(differing)}")
    bench = _Bench(session, interpreter, installer, good, bad, [change.name for change in differing])
    outcome, reason, culprits = _search(bench, differing)
    report = _report(session, bench, differing, outcome, reason, culprits)
    report = _timed(report, begin, started)
    session.journal.finish(report)
    return report


@dataclass(slots=True)
class _Bench:
    """Mixtures of the two locks, installed and run; what is known is in the journal."""

    session: Session
    interpreter: Interpreter
    installer: Installer
    good: dict[str, Pin]
    bad: dict[str, Pin]
    names: list[str]
    unresolved: dict[str, str] = field(default_factory=dict)
    _runs: dict[str, int] = field(default_factory=dict)

    def candidate(self, names: frozenset[str]) -> Candidate:
        """The mixture with these packages as in the bad lock."""
        if not names:
            return Candidate(name="good lock")
        if len(names) == len(self.names):
            return Candidate(name="bad lock")
        # Named by what it holds, so that it is known again when the bisection goes on.
        digest = hashlib.sha256(",".join(sorted(names)).encode()).hexdigest()[:8]
        listed = ",".join(sorted(names))
        return Candidate(name=listed if len(listed) <= 40 else f"{len(names)} packages {digest}", title=listed)

    def seen(self, candidate: Candidate) -> list[Seen]:
        """The runs of a mixture so far."""
        return [entry.seen for entry in self.session.journal.standing() if entry.name == candidate.name and entry.seen]

    def run(self, names: frozenset[str], runs: int) -> list[Seen]:
        """The runs of a mixture, at least so many; fewer when it can't be installed."""
        candidate = self.candidate(names)
        have = self.seen(candidate)
        if len(have) >= runs or (have and have[0].bad is None):
            return have
        place = self.prepare(names)
        if isinstance(place, Unavailable):
            self._keep(candidate, 0, [Seen(bad=None, reason=f"{kind_text(place.kind)}: {place.reason}")])
            return self.seen(candidate)
        if not names and self.session.evaluator.compares:
            self.session.evaluator.refer_to(candidate, place)
        try:
            found = self.session.evaluator.observe(candidate, place, range(len(have), runs))
        except StoreError:
            raise
        except UsageError as error:
            if len(names) in (0, len(self.names)):
                raise UsageError(f"{candidate.name}: {error}") from error
            found = [Seen(bad=None, reason=str(error))]
        self._keep(candidate, len(have), found)
        return self.seen(candidate)

    def refer(self) -> None:
        """Have the good lock's first run at hand, when versions are compared with it and it was run before."""
        candidate = self.candidate(frozenset())
        if self.session.evaluator.compares and self.seen(candidate):
            place = self.prepare(frozenset())
            if isinstance(place, Place):
                self.session.evaluator.refer_to(candidate, place)

    def prepare(self, names: frozenset[str]) -> Place | Unavailable:
        """The environment of a mixture."""
        pins, constraints = mixture(self.good, self.bad, names)
        key = environment_key(
            {
                "lock": pins,
                "constraints": constraints,
                "installer": self.installer.name,
                "python": [self.interpreter.real, self.interpreter.version],
                "sources": self.session.question.asks["sources"],
            }
        )
        return self.session.store.get(key, lambda folder: self._build(pins, constraints, folder))

    def _build(self, pins: Sequence[str], constraints: Sequence[str], folder: Path) -> Place | Unavailable:
        self.installer.create(folder, self.interpreter.executable)
        wanted = Requirements(package="the mixture", wanted=tuple(pins), constraints=tuple(constraints))
        failed = self.installer.install(wanted, folder)
        if failed is not None:
            return failed
        packages = next(folder.glob("lib/python*/site-packages"))
        found = installed_in([packages])
        for text in pins:
            pin = parse_requirement(text)
            got = found.get(pin.name)
            if got is None or not pin.specifier.contains(got.version, prereleases=True):
                version = got.version if got else "nothing"
                return Unavailable(kind="other-version", reason=f"{text} was asked for, {version} was installed")
        files = {f"{name}/{path}": value for name, one in found.items() for path, value in one.files.items()}
        return Place(
            python=str(folder / "bin" / "python"),
            folder=str(folder),
            content=content_digest(files),
            installed={name: one.version for name, one in found.items()},
            root=str(packages),
        )

    def _keep(self, candidate: Candidate, first: int, runs: Sequence[Seen]) -> None:
        for number, one in enumerate(runs, first):
            self.session.journal.add(Entry(name=candidate.name, run=number, seen=one))
            if one.bad is None:
                self.unresolved[candidate.name] = one.reason
        self.session.note(told(candidate.name, runs))


def _search(bench: _Bench, differing: Sequence[Change]) -> tuple[Outcome, str, Culprits | None]:
    """(outcome, reason, the sets found)."""
    session = bench.session
    runs = session.question.runs or session.evaluator.runs
    nothing, everything = frozenset[str](), frozenset(bench.names)
    bench.refer()
    ends = [_count(bench.run(names, runs)) for names in (nothing, everything)]
    for count, name in zip(ends, ("good lock", "bad lock"), strict=True):
        if not count.runs:
            return "end-untestable", f"the {name} can't be judged ({bench.unresolved.get(name, '')})", None
    flaky = any(0 < count.bad < count.runs for count in ends)
    while flaky and noise.ends_differ(*ends) > 0.01 and ends[0].runs < noise.MOST_END_RUNS:
        ends = [_count(bench.run(names, ends[0].runs + 1)) for names in (nothing, everything)]
    if ends[0].bad * ends[1].runs >= ends[1].bad * ends[0].runs:
        both = "in either lock" if ends[0].bad else "in neither lock"
        return "same-ends", f"the condition holds {both}: no package among the changed ones can flip it", None
    if flaky and noise.ends_differ(*ends) > 0.01:
        return (
            "ends-too-noisy",
            "the condition shows in runs of both locks, and not more often in one beyond chance",
            None,
        )

    def label(names: frozenset[str]) -> str:
        return _BAD if _judge(bench, names, ends, flaky=flaky) else _GOOD

    found = find_culprits(bench.names, label, good=_GOOD, bad=_BAD)
    sets, minimal = [], True
    for one in found.found:
        before = len(bench.unresolved)
        small = (
            smallest(one.members, lambda part: label(frozenset(part)) == _BAD) if len(one.members) > 1 else one.members
        )
        minimal = minimal and len(bench.unresolved) == before
        sets.append(small)
        if not flaky:
            bench.run(frozenset(small), runs)
    by_name = {change.name: change for change in differing}
    culprits = Culprits(
        sets=tuple(
            tuple(AlsoChanged(name=name, before=by_name[name].before, after=by_name[name].after) for name in small)
            for small in sets
        ),
        minimal=minimal and found.rest_is_good,
        changed=len(differing),
        unresolved=len(bench.unresolved),
    )
    return "found", "each set was run by itself, everything else as in the good lock", culprits


def _judge(bench: _Bench, names: frozenset[str], ends: Sequence[noise.Count], *, flaky: bool) -> bool:
    """Whether a mixture shows what the bad lock shows; one that can't be judged does not."""
    if not flaky:
        said = [one.bad for one in bench.run(names, 1) if one.bad is not None]
        return bool(said and said[0])
    runs = 1
    while True:
        count = _count(bench.run(names, runs))
        if not count.runs:
            return False
        odds = noise.odds(count, *ends)
        if odds >= _ODDS or odds <= 1 - _ODDS or runs >= _MOST:
            return odds > 0.5
        runs += 1


def _count(seen: Sequence[Seen]) -> noise.Count:
    said = [one.bad for one in seen if one.bad is not None]
    return noise.Count(sum(said), len(said))


def _report(
    session: Session,
    bench: _Bench,
    differing: Sequence[Change],
    outcome: Outcome,
    reason: str,
    culprits: Culprits | None,
) -> Report:
    from reprocheck import __version__

    question = session.question
    sets = culprits.sets if culprits else ()
    words = session.condition.words
    if sets:
        texts = [" and ".join(f"{one.name} {one.before} → {one.after}" for one in each) for each in sets]
        which = texts[0] if len(texts) == 1 else " (each by itself) or ".join(texts)
        together = "together make" if len(sets[0]) > 1 and len(sets) == 1 else "makes"
        headline = f"{which} {together} the difference: with it, {words}"
    else:
        headline = f"no answer: {reason}"
    rows = _rows(session)
    return Report(
        reprocheck_version=__version__,
        outcome=outcome,
        exit_code=EXIT_CODES[outcome],
        headline=headline,
        reason=reason,
        kind="locks",
        workload=question.workload or question.check,
        condition=session.condition.text,
        versions=rows,
        versions_total=len(rows),
        versions_run=sum(1 for row in rows if row.bad is not None or row.bad_runs),
        runs=sum(row.runs for row in rows),
        untestable=tuple(
            Untestable(reason=text, versions=(name,)) for name, text in bench.unresolved.items()
        ),
        culprits=culprits,
        plan=f"{len(differing)} changed packages",
        environment=session.facts,
        command=question.command,
        next_command=_next(question.command, question.workload, question.good or "", sets),
        folder=str(session.journal.folder),
    )  # fmt: skip


def _rows(session: Session) -> tuple[VersionRow, ...]:
    by_name: dict[str, list[Seen]] = {}
    for entry in session.journal.standing():
        if entry.seen is not None:
            by_name.setdefault(entry.name, []).append(entry.seen)
    rows = []
    for name, seen in by_name.items():
        count = _count(seen)
        rows.append(
            VersionRow(
                name=name,
                bad=bool(count.bad) if count.runs and count.bad in (0, count.runs) else None,
                runs=len(seen),
                bad_runs=count.bad,
                seen=seen[0].reason,
                seconds=round(sum(one.seconds for one in seen), 3),
                run_dir=seen[0].run_dir,
            )
        )
    return tuple(rows)


def _next(command: Sequence[str], workload: str, lock: str, sets: Sequence[Sequence[AlsoChanged]]) -> tuple[str, ...]:
    """The command that searches the one package's versions, if it is one and has versions."""
    if len(sets) != 1 or len(sets[0]) != 1 or not workload or not command:
        return ()
    one = sets[0][0]
    if "none" in (one.before, one.after) or "/" in one.before + one.after:
        return ()
    words = ["reprocheck", "bisect", workload, "--package", one.name]
    words += ["--good", one.before, "--bad", one.after, "--with-lock", lock]
    return tuple(words)


def _names(differing: Sequence[Change]) -> str:
    names = [change.name for change in differing]
    return ", ".join(names if len(names) <= 8 else [*names[:7], "…"])


def _timed(report: Report, begin: float, started: str) -> Report:
    import msgspec

    return msgspec.structs.replace(report, seconds=round(time.monotonic() - begin, 3), started=started)

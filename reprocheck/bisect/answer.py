"""From a history to its report: the plan, the search, and what there is to say about the boundary it found."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import msgspec

from reprocheck.api import explain_run
from reprocheck.bisect.arms import Arm
from reprocheck.bisect.changes import blame
from reprocheck.bisect.evaluate import folder_name, study_folder
from reprocheck.bisect.factorial import Side, factorial
from reprocheck.bisect.hunt import Found, Hunt, Settings, Slot, kind_text
from reprocheck.bisect.question import Session
from reprocheck.bisect.records import (
    Blame,
    Candidate,
    Factorial,
    Place,
    Report,
    Transition,
    Unavailable,
    Untestable,
    VersionRow,
)
from reprocheck.bisect.search import History, remaining
from reprocheck.compare.groups import group_id
from reprocheck.errors import (
    EXIT_AGREE,
    EXIT_DIVERGENCE,
    EXIT_HARNESS,
    HarnessError,
    NothingSelectedError,
    UsageError,
)
from reprocheck.explain.worth import EXPLAINED
from reprocheck.report.explanation import explanation
from reprocheck.store.run import Run

__all__ = ["EXIT_CODES", "Line", "answer", "plan_text", "slots_of"]

EXIT_CODES = {
    "found": EXIT_AGREE,
    "same-ends": EXIT_DIVERGENCE,
    "end-untestable": EXIT_HARNESS,
    "ends-too-noisy": EXIT_HARNESS,
    "not-settled": EXIT_HARNESS,
}


@dataclass(frozen=True, slots=True)
class Line:
    """A history that can be searched: candidates from old to new, and how to get at them."""

    candidates: tuple[Candidate, ...]
    prepare: Callable[[Candidate], Place | Unavailable]
    walk: bool = False
    """True when no old end was given."""
    blocked: dict[str, Unavailable] = field(default_factory=dict)
    """Candidates that are known not to be available."""
    package: str = ""
    noun: str = "version"
    sure: bool = True
    """Whether those not in `blocked` were found to be available."""
    notes: tuple[str, ...] = ()


def answer(session: Session, line: Line) -> Report:
    """Search `line` and tell what was found. Raises `UsageError` and `HarnessError`; the journal keeps what was run."""
    begin, started = time.monotonic(), time.strftime("%Y-%m-%dT%H:%M:%S%z")
    question = session.question
    slots = slots_of(line)
    _refuse_bad_ends(line, slots)
    settings = Settings(
        scouts=question.scouts,
        walk=line.walk,
        find_fix=question.find_fix,
        every_change=question.every_change,
        jobs=question.jobs,
        runs=question.runs,
        most_runs=question.most_runs,
    )
    plan = plan_text(line, slots, settings)
    session.note(plan)
    workload = session.workload

    def guard(place: Place) -> None:
        if workload is not None:
            workload.refuse_shadowing(place)

    with Hunt(
        slots=slots,
        prepare=line.prepare,
        evaluator=session.evaluator,
        journal=session.journal,
        settings=settings,
        guard=guard,
        note=session.note,
        stop=session.stop,
    ) as hunt:
        found = hunt.run()
        boundary = _boundary(session, line, hunt, found) if found.main else _Boundary()
        report = _report(session, line, hunt, found, boundary)
    report = msgspec.structs.replace(
        report,
        plan=plan,
        notes=(*line.notes, *report.notes, *boundary.notes),
        seconds=round(max(time.monotonic() - begin, sum(row.seconds for row in report.versions)), 3),
        started=started,
    )
    session.journal.finish(report)
    return report


def slots_of(line: Line) -> list[Slot]:
    """The candidates that can be had, neighbours with equal contents together."""
    slots: list[Slot] = []
    for candidate in line.candidates:
        if candidate.name in line.blocked:
            continue
        if slots and candidate.content and slots[-1].first.content == candidate.content:
            slots[-1] = Slot((*slots[-1].members, candidate))
        else:
            slots.append(Slot((candidate,)))
    return slots


def plan_text(line: Line, slots: Sequence[Slot], settings: Settings) -> str:
    """What will be run, in a line."""
    total, alive = len(line.candidates), sum(len(slot.members) for slot in slots)
    parts = [f"{total} {line.noun}s: {'' if line.sure else 'at most '}{alive} available, {len(slots)} distinct"]
    runs = remaining(History(len(slots), scouts=settings.scouts, walk=settings.walk), {})
    return f"{', '.join(parts)}, about {runs} to run"


def _refuse_bad_ends(line: Line, slots: Sequence[Slot]) -> None:
    ends = (line.candidates[-1],) if line.walk else (line.candidates[0], line.candidates[-1])
    for end in ends:
        if end.name in line.blocked:
            reason = line.blocked[end.name]
            raise UsageError(
                f"{line.package or 'commit'} {end.name} is an end of the search, but {kind_text(reason.kind)}: "
                f"{reason.reason}; name another one"
            )
    if len(slots) < 2:
        same = " with different contents" if len(line.candidates) > len(line.blocked) + 1 else ""
        raise NothingSelectedError(
            f"there is nothing to search: of {len(line.candidates)} {line.noun}s, {len(slots)} can be had{same}"
        )


@dataclass(frozen=True, slots=True)
class _Boundary:
    """What was found out about the two versions at a boundary."""

    table: Factorial | None = None
    blame: Blame | None = None
    explanation: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()


def _boundary(session: Session, line: Line, hunt: Hunt, found: Found) -> _Boundary:
    assert found.main is not None  # noqa: S101 - asked for only then
    pair = (found.main.before, found.main.after)
    places = [place for place in (hunt.place(index) for index in pair) if isinstance(place, Place)]
    if len(places) < 2:
        return _Boundary()
    old_place, new_place = places
    find_fix = session.question.find_fix
    changed = partial(blame, line.package, old_place, new_place, find_fix=find_fix)
    if session.workload is None:
        return _Boundary(blame=changed((), ()))
    root = session.journal.folder
    old, new = (
        Side(candidate, place, root / "versions" / folder_name(candidate))
        for candidate, place in zip((hunt.slots[index].first for index in pair), places, strict=True)
    )
    subjects: tuple[str, ...] = session.workload.subjects()
    studied: list[tuple[str, tuple[str, ...], Arm]] = []
    for side in (old, new) if session.condition.by_study else ():
        folder = study_folder(root, side.candidate, 0)
        if (folder / "study.json").exists():
            subjects = Run(folder).study().subjects
            studied += _studied(side.candidate.name, Run(folder))
    try:
        table, old_arm, new_arm = factorial(old, new, session.workload, subjects, studied=studied, note=session.note)
    except (UsageError, HarnessError) as error:
        note = f"order against version could not be run: {error}"
        return _Boundary(blame=changed((), ()), notes=(note,))
    text, notes = _explained(session, old if find_fix else new, table, subjects)
    return _Boundary(
        table=table,
        blame=changed(old_arm.records, new_arm.records),
        explanation=text,
        notes=notes,
    )


def _explained(
    session: Session, bad: Side, table: Factorial | None, subjects: Sequence[str]
) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
    """(why the bad version's results depend on the order, notes); nothing where they don't, or nobody asked."""
    workload = session.workload
    folder = study_folder(session.journal.folder, bad.candidate, 0)
    by_order = table is not None and table.verdict in ("order", "order-sensitive", "imports", "interaction")
    if workload is None or not session.question.explain or len(subjects) < 2:
        return (), ()
    if not (by_order or (folder / "study.json").exists()):
        return (), ()
    session.note(f"why {bad.candidate.name} does it")
    try:
        study = workload.study(bad.place, folder)
        if study.verdict in EXPLAINED:
            study = explain_run(folder, environment=session.environment)
    except (UsageError, HarnessError) as error:
        return (), (f"explaining {bad.candidate.name} ended early: {error}",)
    return tuple(explanation(study)), ()


def _studied(version: str, run: Run) -> list[tuple[str, tuple[str, ...], Arm]]:
    by_order: dict[tuple[str, ...], list[int]] = {}
    records = [record for record in run.records(run.study().level) if record.trial.judged]
    for index, record in enumerate(records):
        by_order.setdefault(record.trial.order, []).append(index)
    return [
        (version, order, Arm(records=tuple(records[index] for index in places[:2]), folder=str(run.folder)))
        for order, places in sorted(by_order.items())
    ][:6]


def _report(session: Session, line: Line, hunt: Hunt, found: Found, boundary: _Boundary) -> Report:
    question = session.question
    rows = _rows(line, hunt)
    run = [row for row in rows if row.runs and row.same_as is None]
    transitions = tuple(_transition(line, hunt, one.before, one.after) for one in found.boundaries)
    last_good = first_bad = None
    if found.main is not None:
        before, after = hunt.slots[found.main.before].members[-1].name, hunt.slots[found.main.after].first.name
        last_good, first_bad = (after, before) if question.find_fix else (before, after)
    headline, reason = _sentence(session, line, found, transitions, hunt)
    from reprocheck import __version__

    return Report(
        reprocheck_version=__version__,
        outcome=found.outcome,
        exit_code=EXIT_CODES[found.outcome],
        headline=headline,
        reason=reason,
        kind=question.kind,
        workload=question.workload or question.check,
        package=line.package,
        condition=session.condition.text,
        find_fix=question.find_fix,
        first_bad=first_bad,
        last_good=last_good,
        transitions=transitions,
        versions=tuple(rows),
        versions_total=len(line.candidates),
        versions_run=len(run),
        runs=sum(row.runs for row in run),
        untestable=_untestable(line, rows),
        factorial=boundary.table,
        posterior=found.posterior,
        blame=boundary.blame,
        explanation=boundary.explanation,
        notes=(*found.notes, *_misfits(hunt, found), *_place_notes(hunt, found)),
        environment=session.facts,
        command=question.command,
        folder=str(session.journal.folder),
    )


def _rows(line: Line, hunt: Hunt) -> list[VersionRow]:
    """One row for every candidate that was run, shares a result, or can't be had."""
    letters: dict[str, str] = {}
    rows = []
    by_name = {member.name: (index, slot) for index, slot in enumerate(hunt.slots) for member in slot.members}
    for candidate in line.candidates:
        if candidate.name in line.blocked:
            reason = line.blocked[candidate.name]
            text = f"{kind_text(reason.kind)}: {reason.reason}"
            rows.append(VersionRow(name=candidate.name, title=candidate.title, bad=None, runs=0, bad_runs=0, seen=text))
            continue
        index, slot = by_name[candidate.name]
        runs = hunt.seen(index)
        if not runs:
            continue
        same_as = slot.first.name if candidate != slot.first else hunt.twin(index)
        said = [one for one in runs if one.bad is not None]
        group = runs[0].group
        if group and said:
            letters.setdefault(group, group_id(len(letters)))
        rows.append(
            VersionRow(
                name=candidate.name,
                title=candidate.title,
                bad=hunt.bad(index),
                runs=len(runs),
                bad_runs=sum(1 for one in said if one.bad),
                seen=(said or runs)[0].reason,
                group=letters.get(group, "") if said else "",
                same_as=same_as,
                seconds=round(sum(one.seconds for one in runs), 3),
                run_dir=runs[0].run_dir,
            )
        )
    return rows


def _transition(line: Line, hunt: Hunt, before: int, after: int) -> Transition:
    names = [candidate.name for candidate in line.candidates]
    old, new = hunt.slots[before].members[-1].name, hunt.slots[after].first.name
    return Transition(
        before=old,
        after=new,
        before_bad=bool(hunt.bad(before)),
        after_bad=bool(hunt.bad(after)),
        between=tuple(names[names.index(old) + 1 : names.index(new)]),
    )


def _untestable(line: Line, rows: Sequence[VersionRow]) -> tuple[Untestable, ...]:
    """Versions that can't be judged, by reason, the most frequent reason first."""
    found: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for row in rows:
        if row.bad is not None or (row.runs and row.bad_runs):
            continue
        blocked = line.blocked.get(row.name)
        key = (blocked.kind, kind_text(blocked.kind)) if blocked else ("run", row.seen)
        found.setdefault(key, []).append((row.name, blocked.reason if blocked else ""))
    result = []
    for (kind, text), items in sorted(found.items(), key=lambda item: -len(item[1])):
        example = items[0][1]
        reason = f"{text}: {example}" if len(items) == 1 and example else text
        result.append(Untestable(reason=reason, versions=tuple(name for name, _ in items), kind=kind))
    return tuple(result)


def _sentence(
    session: Session, line: Line, found: Found, transitions: Sequence[Transition], hunt: Hunt
) -> tuple[str, str]:
    """(headline, reason)."""
    words = session.condition.words
    if found.main is None:
        return f"no answer: {found.reason}", found.reason
    one = _transition(line, hunt, found.main.before, found.main.after)
    title = next((candidate.title for candidate in line.candidates if candidate.name == one.after), "")
    name = f"{line.package} {one.after}".strip() + (f" ({title})" if title else "")
    if session.question.find_fix:
        text = f"{name} is the first {line.noun} in which it is fixed; in {one.before}, {words}"
    else:
        text = f"{name} is the first {line.noun} in which {words}; {one.before} is the last without"
    if one.between:
        which = one.between[0] if len(one.between) == 1 else f"one of {', '.join(one.between)}"
        text += f" (or {which} between them, which can't be judged)"
    if found.outcome == "not-settled":
        text = f"not settled: most likely {text}"
    others = [other for other in transitions if other.after != one.after]
    if others:
        text += f"; it also changed in {', '.join(other.after for other in others)}"
    return text, found.reason


def _misfits(hunt: Hunt, found: Found) -> tuple[str, ...]:
    if not found.misfits:
        return ()
    names = ", ".join(hunt.slots[index].first.name for index in found.misfits)
    hint = f", look with --scout {hunt.scouts_worth}" if hunt.scouts_worth else ""
    return (f"{names} hardly fit a single change (p < 0.001): there may be more than one{hint}",)


def _place_notes(hunt: Hunt, found: Found) -> tuple[str, ...]:
    notes: dict[str, None] = {}
    for index in (found.main.before, found.main.after) if found.main else ():
        place = hunt.place(index)
        notes.update(dict.fromkeys(place.notes if isinstance(place, Place) else ()))
    return tuple(notes)

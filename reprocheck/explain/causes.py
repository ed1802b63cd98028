"""From two orders with different outcomes to the setting that makes the difference: search, both ways, consequences."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from reprocheck.explain.asking import Asker
from reprocheck.explain.attribute import attribute
from reprocheck.explain.interventions import Candidate, Pair, candidates
from reprocheck.explain.interventions.base import SIDES, Side
from reprocheck.explain.interventions.generators import Generator
from reprocheck.explain.search import BudgetSpentError, Culprits, find_culprits
from reprocheck.explain.views import ABSENT, WORKLOAD, Views
from reprocheck.model import Cause, Consequence, Origin, Record, StateDifference, Trial
from reprocheck.words import counted

__all__ = ["Findings", "Question", "find_causes"]

MOST_CANDIDATES = 64
CONFIRMING_RUNS = 2
"""Runs of each direction before the word `confirmed`; more where identical runs differ."""


@dataclass(frozen=True)
class Question:
    """Why do these two orders differ?"""

    pair: Pair
    good: str
    """The label of the good order's outcome."""
    bad: str
    differences: tuple[StateDifference, ...]

    def label(self, side: Side) -> str:
        """The label of one side."""
        return self.good if side == "good" else self.bad


@dataclass
class Findings:
    """What was found out, as far as the budget went."""

    causes: list[Cause] = field(default_factory=list)
    consequences: list[Consequence] = field(default_factory=list)
    culprits: list[Candidate] = field(default_factory=list)
    """The candidates behind the causes, for the remedy."""
    tried: list[str] = field(default_factory=list)
    complete: bool = True

    @property
    def confirmed(self) -> bool:
        """Whether anything is proved both ways."""
        return any(cause.status == "confirmed" for cause in self.causes)


class _UnfitError(Exception):
    """Interventions that could not be made, with the reasons."""

    def __init__(self, reasons: Mapping[Candidate, str]) -> None:
        super().__init__("; ".join(reasons.values()))
        self.reasons = reasons


def find_causes(question: Question, asker: Asker) -> Findings:
    """Search the differences for what flips the outcome, and confirm it both ways.

    First the bad values are given to the good order; where that leads nowhere, the good values to the bad order. What
    works in one direction only is `correlated`. Ends early, with what is known, when the budget is spent.
    """
    return _Search(question, asker).run()


class _Search:
    def __init__(self, question: Question, asker: Asker) -> None:
        self.question = question
        self.asker = asker
        self.findings = Findings()
        self.evidence: dict[tuple[Side, frozenset[Candidate]], list[Record]] = {}

    def run(self) -> Findings:
        ranked = candidates(self.question.differences, self.question.pair)[:MOST_CANDIDATES]
        forward, _ = self._search([item for item in ranked if item.values["bad"] is not None], "good")
        sets = forward.reproducing(self.question.bad)
        if sets:
            self._both_ways([item.members for item in sets], ranked)
            if self.findings.confirmed:
                return self.findings
        proved = {member for item in sets for member in item.members}
        others = [item for item in ranked if item not in proved and item.values["good"] is not None]
        if forward.complete and others:
            backward, _ = self._search(others, "bad")
            for item in backward.reproducing(self.question.good):
                self._one_way(item.members, "bad")
        return self.findings

    def _search(self, pool: Sequence[Candidate], base: Side) -> tuple[Culprits[Candidate], set[Candidate]]:
        """Culprits among `pool`, given the other side's values on `base`'s order; and what could not be given."""
        pool, unfit = list(pool), set[Candidate]()
        good, bad = (
            (self.question.good, self.question.bad) if base == "good" else (self.question.bad, self.question.good)
        )
        while True:
            try:
                found = find_culprits(
                    pool,
                    lambda chosen: self._outcome(base, chosen, pool),
                    good=good,
                    bad=bad,
                    follows=lambda members: self._follows(base, members, pool),
                )
            except _UnfitError as error:
                for candidate, reason in error.reasons.items():
                    unfit.add(candidate)
                    pool.remove(candidate)
                    self.findings.tried.append(f"{candidate.id}: could not be changed ({reason})")
                continue
            self.findings.complete = self.findings.complete and found.complete
            for item in found.found:
                self.findings.tried.append(f"{self._says(item.members, base)}: {self.asker.labels.name(item.label)}")
            if not found.found and found.complete and pool:
                count = len(pool)
                self.findings.tried.append(
                    f"{'all ' if count > 1 else ''}{count} state difference{'s' if count > 1 else ''} that can be "
                    f"changed, given to `{','.join(self.question.pair.trial(base).order)}`: the outcome stays"
                )
            return found, unfit

    def _trial(self, base: Side, chosen: Sequence[Candidate]) -> Trial:
        """`base`'s trial with the other side's values of the chosen candidates."""
        other: Side = "bad" if base == "good" else "good"
        trial = self.question.pair.trial(base)
        for candidate in chosen:
            trial = self._scouted(candidate, other).impose(trial, other)
        return trial

    def _scouted(self, candidate: Candidate, side: Side) -> Candidate:
        """The candidate with its real value, which one side's own trial tells where a snapshot has a digest only."""
        if candidate.scout is None or not isinstance(candidate.intervention, Generator):
            return candidate
        trial = self.question.pair.trial(side)
        trial = Trial(
            order=trial.order, repeat=0, presence=trial.presence, actions=tuple(map(dict, candidate.scout(side)))
        )
        record = self.asker.records([trial])[0]
        told = candidate.intervention.learned(candidate.values[side], record)
        if not told:
            raise _UnfitError({candidate: "its state could not be told"})
        return replace(candidate, values={**candidate.values, side: told})

    def _run(self, base: Side, chosen: Sequence[Candidate], repeats: int | None = None) -> list[Record]:
        records = self.asker.again(self._trial(base, chosen), repeats)
        other: Side = "bad" if base == "good" else "good"
        unfit: dict[Candidate, str] = {}
        for candidate, record in itertools.product(chosen, records):
            if candidate.intervention.took_effect(record) is False:
                unfit.setdefault(candidate, candidate.intervention.why_not(record))
            elif candidate.visible(record, other) is False:
                unfit.setdefault(candidate, "the snapshot before the workload shows another value")
        if unfit:
            raise _UnfitError(unfit)
        self.evidence[base, frozenset(chosen)] = records
        return records

    def _outcome(self, base: Side, chosen: frozenset[Candidate], pool: Sequence[Candidate]) -> str:
        ranked = [candidate for candidate in pool if candidate in chosen]
        return self.asker.labels.label(self._run(base, ranked))

    def _follows(self, base: Side, members: tuple[Candidate, ...], pool: Sequence[Candidate]) -> frozenset[Candidate]:
        """Candidates all of whose keys took the other side's values, too, when only `members` were changed."""
        records = self.evidence.get((base, frozenset(members)), [])
        changed = {key for member in members for key in member.keys}
        followed = changed | {item.key for item in self._followed(base, records)}
        own = {member.id for member in members}
        return frozenset(item for item in pool if item.id not in own and set(item.keys) <= followed)

    def _followed(self, base: Side, records: Sequence[Record]) -> list[StateDifference]:
        other: Side = "bad" if base == "good" else "good"
        found = []
        for difference in self.question.differences:
            moment = WORKLOAD if difference.phase == "t2" else f"before:{difference.phase.removeprefix('t1:')}"
            wanted = next(change.value for change in difference.changes if change.group == other)
            seen = [Views(record).value(moment, difference.key) for record in records]
            if seen and wanted != ABSENT and all(value == wanted for value in seen):
                found.append(difference)
        return found

    def _both_ways(self, sets: Sequence[tuple[Candidate, ...]], pool: Sequence[Candidate]) -> None:
        """Confirm the sets: each, undone in the bad order, gives the good outcome, maybe with what followed from it.

        Sets of which one is as good as another have to be undone together.
        """
        repeats = max(CONFIRMING_RUNS, self.asker.labels.repeats)
        sets = [self._simpler(members) for members in sets]
        everything = tuple(member for members in sets for member in members)
        self._ahead(sets, repeats)
        for members in sets:
            made = members if self._gives("good", members, repeats) == self.question.bad else None
            if made is None and self._gives("good", everything, repeats) == self.question.bad:
                made = everything
            undone = None
            followers = tuple(item for item in pool if item in self._follows("good", members, pool))
            for chosen in dict.fromkeys((members, (*members, *followers), everything)):
                undone = self._undone(chosen, members, repeats)
                if undone is not None:
                    break
            self._cause(members, "confirmed" if made and undone else "correlated", undone=undone, made=made)

    def _undone(
        self, chosen: tuple[Candidate, ...], members: tuple[Candidate, ...], repeats: int
    ) -> tuple[Candidate, ...] | None:
        """What of `chosen` gave the bad order the good outcome; what only followed and can't be undone is left out."""
        unfit: set[Candidate] = set()
        label = self._gives("bad", chosen, repeats, unfit)
        fit = tuple(item for item in chosen if item not in unfit)
        if unfit and len(fit) > len(members) and not unfit & set(members):
            chosen, label = fit, self._gives("bad", fit, repeats)
        return chosen if label == self.question.good else None

    def _simpler(self, members: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
        """The set with each course cut to its last step, the workload's, where that alone does it."""
        cut = tuple(member.at_workload() for member in members)
        if cut == members:
            return members
        try:
            label = self.asker.labels.label(self._run("good", cut))
        except (_UnfitError, BudgetSpentError):
            return members
        return cut if label == self.question.bad else members

    def _ahead(self, sets: Sequence[tuple[Candidate, ...]], repeats: int) -> None:
        """Run both directions of all sets side by side; they are asked for one by one afterwards."""
        trials = []
        for members in sets:
            for base, other in (("good", "bad"), ("bad", "good")):
                if all(member.values[other] is not None for member in members):  # type: ignore[index]
                    try:
                        trial = self._trial(base, members)  # type: ignore[arg-type]
                    except (_UnfitError, BudgetSpentError):
                        continue
                    trials += [msgspec.structs.replace(trial, repeat=number) for number in range(repeats)]
        with contextlib.suppress(BudgetSpentError):
            self.asker.records(trials)

    def _gives(
        self, base: Side, members: Sequence[Candidate], repeats: int, unfit: set[Candidate] | None = None
    ) -> str | None:
        """The label, None where it could not be asked; what could not be made is put into `unfit`."""
        other: Side = "bad" if base == "good" else "good"
        if any(member.values[other] is None for member in members):
            return None
        try:
            return self.asker.labels.label(self._run(base, members, repeats))
        except _UnfitError as error:
            self.findings.tried += [f"{item.id}: could not be undone ({why})" for item, why in error.reasons.items()]
            if unfit is not None:
                unfit.update(error.reasons)
        except BudgetSpentError:
            self.findings.complete = False
        return None

    def _one_way(self, members: tuple[Candidate, ...], base: Side) -> None:
        made, undone = (members, None) if base == "good" else (None, members)
        self._cause(members, "correlated", undone=undone, made=made)

    def _cause(
        self,
        members: tuple[Candidate, ...],
        status: str,
        *,
        undone: Sequence[Candidate] | None,
        made: Sequence[Candidate] | None,
    ) -> None:
        question, labels = self.question, self.asker.labels
        shown = []
        trials = 0
        for base, chosen in (("good", made), ("bad", undone)):
            if chosen is not None:
                records = self.evidence.get((base, frozenset(chosen)), [])  # type: ignore[arg-type]
                trials += len(records)
                order = ",".join(question.pair.trial(base).order)  # type: ignore[arg-type]
                runs = counted(len(records), "run")
                label = labels.name(labels.label(records)) if records else "nothing"
                shown.append(f"with {self._says(chosen, base)}, `{order}` gives {label} ({runs})")  # type: ignore[arg-type]
        self.findings.culprits += members
        for member in members:
            origin = member.origin or _origin(member.differences[0])
            if status == "confirmed" and (origin is None or origin.file is None):
                origin = self._line(member, origin)
            self.findings.causes.append(
                Cause(
                    key=member.keys[0],
                    kind=member.intervention.kind,
                    status=status,  # type: ignore[arg-type]
                    text="; ".join(shown),
                    good=member.shown("good"),
                    bad=member.shown("bad"),
                    groups=(question.good, question.bad),
                    orders=(question.pair.trial("good").order, question.pair.trial("bad").order),
                    event=origin,
                    needs=tuple(other.keys[0] for other in members if other is not member),
                    tried=tuple(self.findings.tried),
                    trials=trials,
                )
            )
        self._consequences(members, "good" if made is not None else "bad")

    def _line(self, member: Candidate, origin: Origin | None) -> Origin | None:
        """Who did it, with the line, from trials that watch the key during the imports."""
        pair = self.question.pair
        records: dict[str, list[Record]] = {side: [pair.side(side).record] for side in SIDES}
        try:
            (told,) = attribute(member.differences[:1], records, self.asker.runner)
        except BudgetSpentError:
            return origin
        return _origin(told) or origin

    def _consequences(self, members: tuple[Candidate, ...], base: Side) -> None:
        own = {key for member in members for key in member.keys}
        known = {item.key for item in self.findings.consequences}
        for item in self._followed(base, self.evidence.get((base, frozenset(members)), [])):
            if item.key not in own and item.key not in known:
                values = {change.group: change.value for change in item.changes}
                self.findings.consequences.append(
                    Consequence(key=item.key, cause=members[0].keys[0], good=values["good"], bad=values["bad"])
                )

    def _says(self, members: Sequence[Candidate], base: Side) -> str:
        other: Side = "bad" if base == "good" else "good"
        return " and ".join(member.intervention.says(member.values[other]) for member in members)


def _origin(difference: StateDifference) -> Origin | None:
    """Who brought the bad value about; where it is the good one that was set, who set that."""
    changes = {change.group: change for change in difference.changes}
    ranked = sorted((changes["bad"], changes["good"]), key=lambda change: change.value == ABSENT)
    for change in ranked:
        by = change.phase.removeprefix("t1:") if change.phase.startswith("t1:") else None
        event = change.event
        if event is not None and event.file:
            return Origin(by=by, file=event.file, line=event.line)
        if by is not None:
            return Origin(by=by)
    return None

"""The search carried out: environments made, versions run, results kept, until the pure core says that it is over.

What is known lives in the journal alone; every decision is taken anew from it. So a killed bisection goes on where it
was, an undone run is simply asked for again, and versions with equal contents answer for each other.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Self

from reprocheck.bisect import noise, search
from reprocheck.bisect.evaluate import Evaluator
from reprocheck.bisect.journal import Entry, Journal
from reprocheck.bisect.records import Candidate, Outcome, Place, Posterior, Seen, Unavailable
from reprocheck.bisect.search import Boundary, History, Label, Unknown
from reprocheck.errors import StoreError, UsageError

__all__ = ["Found", "Hunt", "Settings", "Slot", "duration", "kind_text", "told"]

_SCOUTS = 8
Prepare = Callable[[Candidate], Place | Unavailable]


@dataclass(frozen=True, slots=True)
class Slot:
    """Neighbouring versions with equal contents: one run answers for all of them."""

    members: tuple[Candidate, ...]

    @property
    def first(self) -> Candidate:
        """The oldest of them, which is the one that is run."""
        return self.members[0]


@dataclass(frozen=True, slots=True)
class Settings:
    """How to search."""

    scouts: int = 0
    walk: bool = False
    find_fix: bool = False
    """True when the old end is the bad one."""
    every_change: bool = False
    """Look for every change of the outcome, not only for where the condition begins or ends to hold."""
    jobs: int = 1
    """Versions at a time."""
    runs: int | None = None
    """Runs of the ends and of the boundary; None: as the evaluator has it."""
    most_runs: int = 300
    """Where a noisy search gives up."""


@dataclass(frozen=True, slots=True)
class Found:
    """What came of it. Indices are those of slots."""

    outcome: Outcome
    reason: str
    boundaries: tuple[Boundary, ...] = ()
    main: Boundary | None = None
    """The change asked for: the last one at which the condition begins (or, looking for a fix, ends) to hold."""
    posterior: Posterior | None = None
    misfits: tuple[int, ...] = ()
    """Versions whose runs don't fit a single change."""
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class Hunt:
    """One search. Use as a context manager: on the way out, what is being prepared is waited for."""

    slots: Sequence[Slot]
    prepare: Prepare
    evaluator: Evaluator
    journal: Journal
    settings: Settings
    guard: Callable[[Place], None]
    """Raises `UsageError` if trials would not use what a place holds."""
    note: Callable[[str], None]
    stop: threading.Event = field(default_factory=threading.Event)
    """Ends installations under way."""
    _pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(2, thread_name_prefix="prepare"))
    _places: dict[str, Future[Place | Unavailable]] = field(default_factory=dict)
    _guarded: set[str] = field(default_factory=set)
    _told: bool = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.stop.set()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def place(self, index: int) -> Place | Unavailable:
        """The environment of a slot."""
        return self._future(self.slots[index].first).result()

    def seen(self, index: int) -> list[Seen]:
        """The runs that tell about a slot: its own, and those of versions with equal contents."""
        return self._all_seen().get(self._content(index), [])

    def _content(self, index: int) -> str:
        name = self.slots[index].first.name
        return self.journal.contents().get(name, name)

    def _all_seen(self) -> dict[str, list[Seen]]:
        """Runs by what was installed (by name, where nothing could be)."""
        contents = self.journal.contents()
        found: dict[str, list[Seen]] = {}
        for entry in self.journal.standing():
            if entry.seen is not None:
                found.setdefault(contents.get(entry.name, entry.name), []).append(entry.seen)
        return found

    def twin(self, index: int) -> str | None:
        """The version with equal contents whose runs answer for this slot; None if it was run itself."""
        names = {entry.name for entry in self.journal.standing()}
        name, contents = self.slots[index].first.name, self.journal.contents()
        if name in names or name not in contents:
            return None
        return next((other for other in sorted(names) if contents.get(other) == contents[name]), None)

    def bad(self, index: int) -> bool | None:
        """Whether the condition holds; None when nothing, or no one thing, can be said."""
        said = {one.bad for one in self.seen(index) if one.bad is not None}
        return said.pop() if len(said) == 1 else None

    def run(self) -> Found:
        """Search to the end. Raises `UsageError`, `HarnessError`; what was run until then is in the journal."""
        if self.evaluator.compares:
            self._refer()
        history = self._history()
        while True:
            known, flaky = self._known()
            if flaky:
                return self._noisy(known)
            now = search.step(history, known)
            if not now.wanted:
                break
            self._refuse_turned(now)
            self._tell(history, known, now)
            chosen = search.batch(history, known, self.settings.jobs)
            self._prefetch(search.batch(history, known, self.settings.jobs + 2))
            self._run_all(chosen)
        if now.stuck is not None:
            return self._stuck(now.stuck, known)
        self.evaluator.check_ends(self.slots[0].first, self.slots[-1].first)
        if now.same:
            return self._same(known)
        self._refuse_turned(now)
        main = self._main(now.boundaries)
        if not self._confirm(main):
            return self._noisy(self._known()[0])
        return Found(
            outcome="found",
            reason=self._proof(main, now.boundaries),
            boundaries=now.boundaries,
            main=main,
            posterior=self._posterior(main, now.boundaries),
        )

    def _history(self) -> History:
        return History(len(self.slots), scouts=self.settings.scouts, walk=self.settings.walk)

    def _runs(self) -> int:
        return self.settings.runs or self.evaluator.runs

    def _known(self) -> tuple[dict[int, Label], bool]:
        """(labels by slot, whether runs of one version disagree)."""
        known: dict[int, Label] = {}
        flaky = False
        everything, contents = self._all_seen(), self.journal.contents()
        for index, slot in enumerate(self.slots):
            name = slot.first.name
            runs = everything.get(contents.get(name, name))
            if not runs:
                continue
            said = [one for one in runs if one.bad is not None]
            flaky = flaky or len({one.bad for one in said}) > 1
            if not said:
                known[index] = Unknown(runs[0].reason)
            elif self.settings.every_change:
                known[index] = (said[0].bad, said[0].group)
            else:
                known[index] = said[0].bad
        return known, flaky

    def _refer(self) -> None:
        """Run the good end first: the others are compared with it."""
        candidate = self.slots[-1 if self.settings.find_fix else 0].first
        place = self._future(candidate).result()
        if isinstance(place, Place):
            self._check(place)
            self.evaluator.refer_to(candidate, place)

    def _run_all(self, indices: Sequence[int]) -> None:
        """Run some versions as often as they need it now, several at a time."""
        ends = {0, len(self.slots) - 1}
        wanted = [(index, self._runs() if index in ends else 1) for index in indices]
        if self.settings.jobs == 1 or len(wanted) == 1:
            for index, runs in wanted:
                self._run_one(index, runs)
            return
        with ThreadPoolExecutor(self.settings.jobs, thread_name_prefix="version") as pool:
            futures = [pool.submit(self._run_one, index, runs) for index, runs in wanted]
            try:
                for future in futures:
                    future.result()
            except BaseException:
                self.stop.set()
                for future in futures:
                    future.cancel()
                raise

    def _run_one(self, index: int, runs: int) -> None:
        """Run a version until it has so many runs, unless it can't be had or equals one that was run."""
        candidate = self.slots[index].first
        place = self._future(candidate).result()
        if isinstance(place, Unavailable):
            missing = Seen(bad=None, reason=f"{kind_text(place.kind)}: {place.reason}")
            self.journal.add(Entry(name=candidate.name, seen=missing))
            self.note(told(candidate.name, [missing]))
            return
        if twin := self._twin(candidate, place):
            # Its runs count for this one from now on.
            self.note(f"{candidate.name}: installs the same files as {twin}")
            self.journal.add(Entry(name=candidate.name, content=place.content))
            if len(self.seen(index)) >= runs:
                return
        self._check(place)
        have = len(self.seen(index))
        try:
            found = self.evaluator.observe(candidate, place, range(have, max(have + 1, runs)))
        except StoreError:
            raise
        except UsageError as error:
            if index in (0, len(self.slots) - 1):
                raise UsageError(f"{candidate.name}: {error}") from error
            found = [Seen(bad=None, reason=str(error))]
        for number, one in enumerate(found, have):
            self.journal.add(Entry(name=candidate.name, run=number, content=place.content, seen=one))
        self.note(told(candidate.name, found))

    def _twin(self, candidate: Candidate, place: Place) -> str | None:
        """Another version with equal contents that was run."""
        if candidate.name in self.journal.contents():
            return None
        run = (entry for entry in self.journal.standing() if entry.content)
        return next((entry.name for entry in run if entry.content == place.content), None)

    def _future(self, candidate: Candidate) -> Future[Place | Unavailable]:
        if candidate.name not in self._places:
            self._places[candidate.name] = self._pool.submit(self.prepare, candidate)
        return self._places[candidate.name]

    def _prefetch(self, indices: Iterable[int]) -> None:
        """Have the environments of what may come next made while versions run."""
        for index in indices:
            self._future(self.slots[index].first)

    def _check(self, place: Place) -> None:
        if place.folder not in self._guarded:
            self.guard(place)
            self._guarded.add(place.folder)

    def _tell(self, history: History, known: dict[int, Label], now: search.Step) -> None:
        """Once the ends are run, say how long the rest will take."""
        if self._told or not now.open:
            return
        self._told = True
        self.evaluator.check_ends(self.slots[0].first, self.slots[-1].first)
        left = search.remaining(history, known)
        times = [one.seconds for index in known for one in self.seen(index)]
        rounds = max(1, left // max(1, self.settings.jobs.bit_length()))
        self.note(f"the ends differ; about {left} more to run, {duration(rounds * sum(times) / max(1, len(times)))}")

    def _stuck(self, index: int, known: dict[int, Label]) -> Found:
        label = known[index]
        reason = label.reason if isinstance(label, Unknown) else ""
        name = self.slots[index].first.name
        return Found(
            outcome="end-untestable",
            reason=f"the end {name} can't be judged ({reason}); name another version for it",
        )

    @property
    def scouts_worth(self) -> int:
        """How many versions between the ends to advise to look at: 0 where some were, or where there are none."""
        return 0 if self.settings.scouts or self.settings.walk else min(_SCOUTS, len(self.slots) - 2)

    def _same(self, known: dict[int, Label]) -> Found:
        bad = self.bad(len(self.slots) - 1)
        first, last = self.slots[0].first.name, self.slots[-1].first.name
        holds = "holds" if bad else "does not hold"
        if self.settings.walk:
            tried = sum(1 for label in known.values() if not isinstance(label, Unknown))
            text = f"the condition {holds} in {last} and in all {tried} versions tried, back to the oldest"
        else:
            text = f"the condition {holds} in either end, {first} and {last}"
        if self.settings.find_fix:
            advice = "it was not fixed so far, name a newer --good" if bad else "check --until, or name an older --bad"
        elif bad:
            advice = "look further back with an older --good" if not self.settings.walk else "there is no older version"
        else:
            advice = "check --until, or name another --bad"
        scouts = self.scouts_worth
        hint = f"; a change that came and went shows with --scout {scouts}" if scouts else ""
        return Found(outcome="same-ends", reason=f"{text}: {advice}{hint}")

    def _refuse_turned(self, now: search.Step) -> None:
        """Raise `UsageError` when all changes go the other way: a change that was not asked for is no answer."""
        found = [(one.before, one.after) for one in now.boundaries] + list(now.open)
        old, new = (True, False) if self.settings.find_fix else (False, True)
        turned = [pair for pair in found if (self.bad(pair[0]), self.bad(pair[1])) == (new, old)]
        if self.settings.every_change or not turned or len(turned) < len(found):
            return
        before, after = (self.slots[index].first.name for index in turned[-1])
        if self.settings.find_fix:
            text = f"the condition begins to hold between {before}, where it does not, and {after}: nothing was fixed"
            raise UsageError(f"{text}; to find where it begins, leave out --find-fix and give --good {before}")
        text = f"the condition holds in {before} and not in the newer {after}, so it ends there instead of beginning"
        raise UsageError(f"{text}; to find where, add --find-fix with --bad {before} --good {after}")

    def _main(self, boundaries: Sequence[Boundary]) -> Boundary:
        """The last change at which the condition begins to hold (or ends to, when a fix is looked for)."""
        wanted = (True, False) if self.settings.find_fix else (False, True)
        turning = [one for one in boundaries if (self.bad(one.before), self.bad(one.after)) == wanted]
        return (turning or list(boundaries))[-1]

    def _proof(self, main: Boundary, boundaries: Sequence[Boundary]) -> str:
        before, after = self.slots[main.before], self.slots[main.after]
        runs = len(self.seen(main.before)), len(self.seen(main.after))
        text = f"{before.members[-1].name} ({runs[0]} runs) and {after.first.name} ({runs[1]} runs) were both run"
        if len(main.between):
            text += f"; {len(main.between)} between them can't be judged"
        if len(boundaries) > 1:
            text += f"; {len(boundaries) - 1} more change{'s' if len(boundaries) > 2 else ''} on the way"
        return text.replace("(1 runs)", "(1 run)")

    def _confirm(self, main: Boundary) -> bool:
        """Run the two versions at the boundary until they have enough runs; False if runs of one disagree."""
        for index in (main.before, main.after):
            if len(self.seen(index)) < self._runs():
                self._run_one(index, self._runs())
        return not self._known()[1]

    def _counts(self, indices: Iterable[int]) -> list[noise.Count]:
        counts = []
        for index in indices:
            said = [one.bad for one in self.seen(index) if one.bad is not None]
            shows = sum(said) if not self.settings.find_fix else len(said) - sum(said)
            counts.append(noise.Count(shows, len(said)))
        return counts

    def _posterior(self, main: Boundary, boundaries: Sequence[Boundary]) -> Posterior | None:
        """How sure the boundary is, by the runs of the stretch in which it is the only change."""
        if self._runs() < 2:
            return None
        low = max((one.after for one in boundaries if one.after <= main.before), default=0)
        high = min((one.before for one in boundaries if one.before >= main.after), default=len(self.slots) - 1)
        known, _ = self._known()
        stretch = [index for index in range(low, high + 1) if not isinstance(known.get(index), Unknown)]
        stretch = [index for index in stretch if index in known or low < index < high]
        if len(stretch) < 2:
            return None
        belief = noise.believe(self._counts(stretch))
        return self._told_posterior(belief, stretch, stretch.index(main.after), flaky=False)

    def _told_posterior(
        self, belief: noise.Belief, stretch: Sequence[int], first_new: int, *, flaky: bool
    ) -> Posterior:
        first, last = noise.likely_range(belief)
        old, new = belief.old_rates[first_new - 1], belief.new_rates[first_new - 1]
        good, bad = (1 - new, 1 - old) if self.settings.find_fix else (old, new)
        return Posterior(
            probability=round(belief.boundary[first_new - 1], 4),
            first=self.slots[stretch[first]].first.name,
            last=self.slots[stretch[last]].first.name,
            good_rate=round(good, 4),
            bad_rate=round(bad, 4),
            runs=sum(len(self.seen(index)) for index in stretch),
            flaky=flaky,
        )

    def _noisy(self, known: dict[int, Label]) -> Found:
        """Search by probabilities: runs of one version disagree."""
        self.note("identical runs disagree: going on by probabilities, with repeated runs")
        low = 0
        if self.settings.walk:
            last = self.bad(len(self.slots) - 1)
            low = max((index for index in known if self.bad(index) == (not last)), default=0)
        while True:
            known, _ = self._known()
            testable = [i for i in range(low, len(self.slots)) if not isinstance(known.get(i), Unknown)]
            for end in (low, len(self.slots) - 1):
                if end not in testable:
                    return self._stuck(end, known)
            counts = self._counts(testable)
            trend = noise.look(counts)
            if not trend.wanted:
                break
            if sum(count.runs for count in counts) >= self.settings.most_runs:
                break
            self._prefetch(testable[place] for place in trend.wanted[:2])
            index = testable[trend.wanted[0]]
            self._run_one(index, len(self.seen(index)) + 1)
        if trend.belief is None:
            old, new = counts[0], counts[-1]
            return Found(
                outcome="ends-too-noisy",
                reason=(
                    f"the ends don't differ beyond chance: the condition shows in {old.bad} of {old.runs} runs of "
                    f"{self.slots[low].first.name} and in {new.bad} of {new.runs} of {self.slots[-1].first.name} "
                    f"(p = {trend.p_value:.2g}); allow a tolerance, or look for another condition with --until"
                ),
            )
        best = trend.belief.best
        main = Boundary(testable[best - 1], testable[best])
        settled = trend.belief.confidence >= noise.ENOUGH
        odd = noise.misfits(counts, best)
        posterior = self._told_posterior(trend.belief, testable, best, flaky=True)
        share = f"{posterior.probability:.0%}"
        before, after = posterior.good_rate, posterior.bad_rate
        if self.settings.find_fix:
            before, after = after, before
        return Found(
            outcome="found" if settled else "not-settled",
            reason=(
                f"with a probability of {share} after {posterior.runs} runs: the condition shows in "
                f"{before:.0%} of the runs before and in {after:.0%} after"
                + ("" if settled else f"; {self.settings.most_runs} runs were not enough, raise --max-runs")
            ),
            boundaries=(main,),
            main=main,
            posterior=posterior,
            misfits=tuple(testable[place] for place in odd),
        )


_KINDS = {
    "no-such-version": "not there",
    "python": "needs another Python",
    "platform": "not for this platform",
    "dependency": "can't be installed with the rest",
    "yanked": "withdrawn",
    "build": "can't be built",
    "other-version": "another version gets installed",
    "skipped": "skipped",
    "other": "can't be installed",
}


def told(name: str, runs: Sequence[Seen]) -> str:
    """What runs of a version showed, in a line."""
    bad = sum(1 for one in runs if one.bad)
    said = sum(1 for one in runs if one.bad is not None)
    word = (
        "can't be judged"
        if not said
        else "bad"
        if bad == said
        else "good"
        if not bad
        else f"bad in {bad} of {said} runs"
    )
    count = f", {len(runs)} runs" if len(runs) > 1 else ""
    return f"{name}: {word}: {runs[0].reason}  [{sum(one.seconds for one in runs):.1f} s{count}]"


def kind_text(kind: str) -> str:
    """Why a version can't be had, in words that follow its name."""
    return _KINDS[kind]


def duration(seconds: float) -> str:
    """Seconds in words: `40 s`, `3 min`, `2.5 h`."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 5400:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:.1f} h"

"""Trials forked from processes that imported what several orders begin with; all others in fresh interpreters.

A process of the tree imports, says that it is ready, waits, and is told to fork. Everything else is as for a fresh
trial: own session, own folder, own streams, one deadline over all that its path took. A process that must not be forked
says why, and the trials below it are run fresh.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from reprocheck.engine.forked import LostError, Process
from reprocheck.engine.local import LocalEngine
from reprocheck.engine.phases import RawRecord
from reprocheck.engine.process import Exit
from reprocheck.engine.tree import Prefix, grow, may_start
from reprocheck.engine.trial import Job, environment_of, record_of
from reprocheck.model import Trial

__all__ = ["ForkEngine"]

Keep = Callable[[RawRecord, Path], Any]
LOST = "the process they were to be forked from ended"


class ForkEngine:
    """Runs trials that may be forked from fork trees, at most `jobs` at a time, and all others as `local` does."""

    def __init__(self, local: LocalEngine) -> None:
        """`local` has the job, the scratch folder, the number of jobs and the gate."""
        self._local = local

    @property
    def job(self) -> Job:
        """What all trials have in common."""
        return self._local.job

    def run(self, trials: Iterable[Trial], keep: Keep) -> Iterator[Any]:
        """As `LocalEngine.run`. The record of a trial that had to be run fresh is that of the fresh trial."""
        wanted = list(trials)
        alike: dict[bytes, list[Trial]] = {}
        for trial in wanted:
            if trial.forked:
                # One process can only begin what has the same environment, capture and subjects.
                kind = msgspec.structs.replace(trial, order=tuple(sorted(trial.order)), repeat=0)
                alike.setdefault(msgspec.json.encode(kind, order="sorted"), []).append(trial)
        for group in alike.values():
            yield from _Growing(self._local, group, keep).run()
        fresh = [trial for trial in wanted if not trial.forked]
        if fresh:
            yield from self._local.run(fresh, keep)


class _Growing:
    """One tree under way."""

    def __init__(self, local: LocalEngine, trials: Sequence[Trial], keep: Keep) -> None:
        self._local = local
        self._keep = keep
        self._tree = grow(trials)
        self._count = len(trials)
        self._results: queue.SimpleQueue[tuple[BaseException | None, Any]] = queue.SimpleQueue()
        self._changed = threading.Condition()
        self._rooted = False
        self._open: list[Process] = []
        """Processes that wait, in the order in which they got ready."""
        self._fresh: deque[tuple[Trial, str]] = deque()
        """Trials that can't be forked, and why."""
        self._live = 0
        self._active = 0

    def run(self) -> Iterator[Any]:
        """What `keep` gives of each trial, as it ends; on any exception, all processes are ended before it goes on."""
        self._local.stop.clear()
        threads = [threading.Thread(target=self._work, name=f"fork-{n}") for n in range(self._local.jobs)]
        try:
            for thread in threads:
                thread.start()
            for _ in range(self._count):
                error, result = self._results.get()
                if error is not None:
                    raise error  # noqa: TRY301 - what happened in another thread
                yield result
        except BaseException:
            self._local.stop.set()
            raise
        finally:
            with self._changed:
                self._changed.notify_all()
            for thread in threads:
                thread.join()
            for process in reversed(self._open):
                with contextlib.suppress(LostError):
                    process.end()
                process.close()

    def _work(self) -> None:
        try:
            while (task := self._next()) is not None:
                try:
                    task()
                finally:
                    with self._changed:
                        self._active -= 1
                        self._changed.notify_all()
        except BaseException as error:
            self._results.put((error, None))

    def _next(self) -> Callable[[], None] | None:
        """What to do next; None when all is done or to be stopped."""
        with self._changed:
            while not self._local.stop.is_set():
                task = self._choice()
                if task is not None:
                    self._active += 1
                    return task
                if self._active == 0:
                    return None
                self._changed.wait()
        return None

    def _choice(self) -> Callable[[], None] | None:
        """From the process that got ready last first, so that few are alive."""
        if not self._rooted:
            self._rooted = True
            self._live += 1
            return partial(self._grow, None, self._tree)
        if self._fresh:
            return partial(self._run_fresh, *self._fresh.popleft())
        for parent in reversed(self._open):
            for child in parent.pending:
                if may_start(child, live=self._live, root=self._tree, jobs=self._local.jobs):
                    parent.pending.remove(child)
                    parent.children += 1
                    self._live += 1
                    return partial(self._grow, parent, child)
        return None

    def _grow(self, parent: Process | None, plan: Prefix) -> None:
        """Run one process: a trial to its end, or a beginning of several until it can be forked."""
        process = Process(plan, self._local.new_folder(), parent)
        opened = False
        try:
            gate = self._local.gate
            with gate.passing(self._local.stop) if gate else contextlib.nullcontext():
                process.start(self._local.job)
                ending = process.follow(self._local.job.timeout, self._local.stop)
            reason = self._refusal(process) if ending == "ready" else None
            opened = ending == "ready" and reason is None
            if opened:
                process.streams.drain()
                with self._changed:
                    self._open.append(process)
                return
            end = process.end(ending)
            if reason is not None:
                self._run_later(plan.trials, reason)
            elif ending != "interrupted":
                self._told(process, end)
        except LostError:
            process.kill()
            self._lost(process)
        finally:
            if not opened:
                process.close()
                self._settle(parent)

    def _refusal(self, process: Process) -> str | None:
        """Why a process that imported what it was to import must not be forked."""
        message = process.told()
        if message[0] == "ready":
            return None
        order = process.plan.order
        return f"after {'`import ' + ', '.join(order) + '`' if order else 'the start'}, {message[1]}"

    def _told(self, process: Process, end: Exit) -> None:
        """Keep the record of the trial. A beginning that ended on its way is how all trials below it ended."""
        for trial in process.plan.trials:
            raw = record_of(trial, process.folder, end, environment_of(self._local.job, trial))
            record = msgspec.structs.replace(raw.record, isolation="forked")
            self._results.put((None, self._keep(msgspec.structs.replace(raw, record=record), process.folder)))

    def _run_later(self, trials: Sequence[Trial], reason: str) -> None:
        with self._changed:
            self._fresh += [(trial, reason) for trial in trials]

    def _run_fresh(self, trial: Trial, reason: str) -> None:
        def told(raw: RawRecord, folder: Path) -> Any:
            record = msgspec.structs.replace(raw.record, not_forked=reason)
            return self._keep(msgspec.structs.replace(raw, record=record), folder)

        self._results.put((None, self._local.one(msgspec.structs.replace(trial, forked=False), told)))

    def _lost(self, process: Process) -> None:
        """What was to come of a process, or of its parent, is run fresh: one of them is gone."""
        lost = list(process.plan.trials)
        with self._changed:
            for item in filter(None, (process, process.parent)):
                lost += [trial for child in item.pending for trial in child.trials if item is not process]
                item.pending.clear()
            self._fresh += [(trial, LOST) for trial in lost]

    def _settle(self, parent: Process | None) -> None:
        """A process ended; end those above it that have nothing left to fork, too."""
        while True:
            with self._changed:
                self._live -= 1
                if parent is None:
                    return
                parent.children -= 1
                if parent.pending or parent.children or parent not in self._open:
                    return
                self._open.remove(parent)
            with contextlib.suppress(LostError):
                parent.end()
            parent.close()
            parent = parent.parent

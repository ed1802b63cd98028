"""What one run of a version shows: by a study of all orders, by a single trial, or by a command of the user's."""

from __future__ import annotations

import hashlib
import os
import re
import threading
import time
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Protocol

import msgspec

from reprocheck.bisect.arms import Arm, Workload, neutral
from reprocheck.bisect.conditions import Condition, judge_exit, judge_record, judge_study
from reprocheck.bisect.records import Candidate, Place, Seen
from reprocheck.compare.groups import outcome_key, refuse_empty_selection
from reprocheck.config import closest
from reprocheck.engine.environment import trial_environment
from reprocheck.engine.process import run_process
from reprocheck.engine.runner import Progress
from reprocheck.errors import HarnessError, UsageError
from reprocheck.explain import keys
from reprocheck.explain.state import flatten
from reprocheck.model import Record

__all__ = ["ByCommand", "ByStudy", "ByTrial", "Evaluator", "folder_name", "group_key", "state_values"]


class Evaluator(Protocol):
    """Runs one version and says what each run showed."""

    runs: int
    """How often the ends, and the versions at the boundary, are run when all goes well."""
    compares: bool
    """Whether versions are compared with the good end, which must then be run first."""

    def refer_to(self, candidate: Candidate, place: Place) -> None:
        """Take this version as what others are compared with."""

    def observe(self, candidate: Candidate, place: Place, runs: range) -> list[Seen]:
        """These runs, by number.

        Raises `UsageError` for a question that can't be asked and `HarnessError` for a broken instrument.
        """

    def check_ends(self, old: Candidate, new: Candidate) -> None:
        """Raise `UsageError` if the ends, both run, show that the question is misspelt."""


def folder_name(candidate: Candidate) -> str:
    """A name for the version's folder that is safe in a path."""
    return re.sub(r"[^A-Za-z0-9.+_-]+", "-", candidate.name) or "version"


def group_key(outcome: object) -> str:
    """A short digest of an outcome key, equal for equal ones."""
    items = sorted(outcome) if isinstance(outcome, frozenset) else [outcome]
    return hashlib.sha256(repr(items).encode()).hexdigest()[:16]


class ByStudy:
    """The verdict of a study decides. A study repeats its trials until it is sure, so one is enough."""

    runs = 1
    compares = False

    def __init__(
        self,
        condition: Condition,
        workload: Workload,
        folder: Path,
        *,
        jobs: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Studies are kept below `folder`; `jobs` trials run at a time, and `progress` is told of them."""
        self._condition, self._workload, self._folder, self._jobs = condition, workload, folder, jobs
        self._progress = progress

    def refer_to(self, candidate: Candidate, place: Place) -> None:
        """Nothing is compared."""

    def observe(self, candidate: Candidate, place: Place, runs: range) -> list[Seen]:
        """So many studies of all orders."""
        return [self._study(candidate, place, run) for run in runs]

    def _study(self, candidate: Candidate, place: Place, run: int) -> Seen:
        begin = time.monotonic()
        study = self._workload.study(
            place, study_folder(self._folder, candidate, run), jobs=self._jobs, progress=self._progress
        )
        bad, reason = judge_study(self._condition, study)
        group = "verdict " + study.verdict
        return Seen(
            bad=bad, reason=reason, group=group, seconds=round(time.monotonic() - begin, 3), run_dir=study.run_dir
        )

    def check_ends(self, old: Candidate, new: Candidate) -> None:
        """Nothing to check."""


class ByTrial:
    """A single trial decides: its outputs, a key of its state, how it ended, or what it printed."""

    runs = 3

    def __init__(
        self, condition: Condition, workload: Workload, folder: Path, *, progress: Progress | None = None
    ) -> None:
        """Records are kept below `folder`; `progress` is told of trials."""
        self._condition, self._workload, self._folder = condition, workload, folder
        self._progress = progress
        self.compares = condition.compares
        # State is looked at after the last subject's import; the rest is the workload as it always runs.
        self._order = workload.subjects() if condition.kind == "state" else ()
        self._reference: tuple[Arm, Record] | None = None
        self._values: dict[str, Any] = {}
        self._keys: set[str] = set()
        self._shown = False

    def refer_to(self, candidate: Candidate, place: Place) -> None:
        """Run (or read) the first trial of the good end. The first one named stays."""
        if self._reference is not None:
            return
        arm = self._arm(candidate, place, range(1))
        record = arm.records[0]
        if record.failure is not None:
            if record.failure.kind in ("target", "unsupported"):
                raise UsageError(record.failure.message)
            return  # its own observation will say so
        self._reference = (arm, record)
        self._values = self._state(record, place)

    def observe(self, candidate: Candidate, place: Place, runs: range) -> list[Seen]:
        """So many trials."""
        arm = self._arm(candidate, place, runs)
        seen = []
        for record in arm.records:
            bad, reason = self._judge(arm, record, place)
            if self._condition.kind == "state":
                group = group_key(msgspec.json.encode(self._state(record, place), order="sorted").decode())
            else:
                group = group_key(outcome_key(record, self._workload.options.outputs))
            seen.append(Seen(bad=bad, reason=reason, group=group, seconds=record.seconds, run_dir=arm.folder))
        return seen

    def check_ends(self, old: Candidate, new: Candidate) -> None:
        """A key that neither end captured is misspelt; with outputs to compare there must be outputs."""
        if self._condition.kind == "state" and not self._shown:
            near = closest(self._condition.value, self._keys)
            hint = f"did you mean `{near}`?" if near else "see them with `reprocheck state`"
            raise UsageError(f"no key `{self._condition.value}` is captured in {old.name} or {new.name}: {hint}")

    def _arm(self, candidate: Candidate, place: Place, runs: range) -> Arm:
        name = "trials" if self._order else "own"
        folder = arm_folder(self._folder, candidate, name)
        return self._workload.arm(place, self._order, runs, folder, progress=self._progress)

    def _judge(self, arm: Arm, record: Record, place: Place) -> tuple[bool | None, str]:
        if not self.compares:
            return judge_record(self._condition, record)
        if record.failure is not None:
            if record.failure.kind in ("target", "unsupported"):
                raise UsageError(record.failure.message)
            return None, record.failure.message
        if self._reference is None:
            return None, "the good end failed, so there is nothing to compare with"
        if self._condition.kind == "state":
            return self._judge_state(self._state(record, place))
        if not record.outputs:
            raise UsageError(
                f"`{self._workload.target.text}` recorded nothing to compare; return a value, or call "
                "`reprocheck.record(name, value)`"
            )
        base_arm, base = self._reference
        refuse_empty_selection([base], self._workload.options.outputs, self._workload.target.text)
        if self._workload.agree(arm, record, base_arm, base):
            return False, "the outputs agree with the good end's"
        ours = {output.name: output.digest for output in record.outputs}
        theirs = {output.name: output.digest for output in base.outputs}
        differing = [name for name in {**theirs, **ours} if ours.get(name) != theirs.get(name)]
        named = ", ".join(differing[:3]) + (", …" if len(differing) > 3 else "")
        total = len({**theirs, **ours})
        words = "output differs" if total == 1 else "outputs differ"
        return True, f"{len(differing)} of {total} {words} from the good end's ({named})"

    def _judge_state(self, values: Mapping[str, Any]) -> tuple[bool, str]:
        names = sorted({*values, *self._values})
        changed = [key for key in names if values.get(key, "absent") != self._values.get(key, "absent")]
        texts = [
            _told(key, self._values.get(key, "absent"), values.get(key, "absent")) for key in (changed or names)[:2]
        ]
        return bool(changed), ", ".join(texts) or f"{self._condition.value} is absent"

    def _state(self, record: Record, place: Place) -> dict[str, Any]:
        if self._condition.kind != "state":
            return {}
        everything = state_values(neutral(record, place))
        self._keys.update(everything)
        wanted = self._condition.value
        found = {key: value for key, value in everything.items() if key == wanted or fnmatchcase(key, wanted)}
        self._shown = self._shown or bool(found)
        return found


class ByCommand:
    """A command of the user's decides, by its exit status or what it prints."""

    runs = 3
    compares = False

    def __init__(
        self,
        condition: Condition,
        command: str,
        folder: Path,
        *,
        environment: Mapping[str, str],
        cwd: str,
        timeout: float,
        stop: threading.Event,
    ) -> None:
        """The command runs in a shell in `cwd`, with the version's interpreter first on PATH."""
        self._condition, self._command, self._folder = condition, command, folder
        self._environment, self._cwd, self._timeout = dict(environment), cwd, timeout
        self._stop = stop

    def refer_to(self, candidate: Candidate, place: Place) -> None:
        """Nothing is compared."""

    def observe(self, candidate: Candidate, place: Place, runs: range) -> list[Seen]:
        """So many runs of the command, one after the other; what it printed is kept."""
        return [self._once(candidate, place, run) for run in runs]

    def _once(self, candidate: Candidate, place: Place, run: int) -> Seen:
        begin = time.monotonic()
        bin_folder = str(Path(place.python).parent)
        changes: dict[str, str | None] = {
            **place.env,
            "PATH": os.pathsep.join(filter(None, (bin_folder, self._environment.get("PATH", "")))),
            "VIRTUAL_ENV": place.folder,
            "REPROCHECK_VERSION": candidate.name,
            "PYTHONHOME": None,
        }
        end = run_process(
            ["/bin/sh", "-c", self._command.replace("{python}", place.python)],
            env=trial_environment(self._environment, changes).variables,
            cwd=Path(self._cwd),
            timeout=self._timeout,
            stop=self._stop,
        )
        if end.interrupted:
            raise HarnessError("interrupted")
        folder = self._folder / "versions" / folder_name(candidate)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"check-{run}.out").write_text(end.stdout.text, "utf-8")
        (folder / f"check-{run}.err").write_text(end.stderr.text, "utf-8")
        bad, reason = judge_exit(self._condition, end.status, end.stdout, end.stderr, timed_out=end.timed_out)
        return Seen(
            bad=bad,
            reason=reason,
            group=f"status {end.status}",
            seconds=round(time.monotonic() - begin, 3),
            run_dir=str(folder),
        )

    def check_ends(self, old: Candidate, new: Candidate) -> None:
        """Nothing to check."""


def study_folder(root: Path, candidate: Candidate, run: int) -> Path:
    """Where a version's study lies."""
    return root / "versions" / folder_name(candidate) / f"study-{run}"


def arm_folder(root: Path, candidate: Candidate, name: str) -> Path:
    """Where a version's trials under one order lie."""
    return root / "versions" / folder_name(candidate) / name


def state_values(record: Record) -> dict[str, Any]:
    """Captured keys with their values: as they are before the workload, else as they are after it.

    A trial without subjects imports everything inside the workload: there only what is seen afterwards counts.
    """
    found: dict[str, Any] = {}
    for phase in ("t3", "t2") if record.trial.order else ("t3",):
        for snapshot in record.snapshots:
            if snapshot.phase == phase:
                flat = flatten(snapshot.kinds)
                found.update({key: keys.comparable(key, value) for key, value in flat.items()})
    return found


def _told(key: str, before: Any, now: Any) -> str:
    """A value in words; of a list that changed, what came and what went."""
    if isinstance(before, list) and isinstance(now, list) and before != now:
        came, went = ([one for one in side if one not in other] for side, other in ((now, before), (before, now)))
        parts = [
            f"{word} {', '.join(map(_short, items))}" for word, items in (("gains", came), ("loses", went)) if items
        ]
        return f"{key} {' and '.join(parts) or 'is in another order'}"
    return f"{key} = {_short(now)}"


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= 80 else text[:79] + "…"

"""The examination: identical trials through the engine, one interpreter started plainly, and the machine.

The engine is anything with `run(trials, keep)`; what it runs must be the job that is given along with it.
"""

from __future__ import annotations

import re
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from reprocheck.compare.groups import outcome_key
from reprocheck.doctor.result import Changed, Examination, Split, Varying
from reprocheck.engine.abilities import abilities
from reprocheck.engine.base import Engine
from reprocheck.engine.environment import trial_environment
from reprocheck.engine.phases import RawRecord, finish
from reprocheck.engine.process import Exit
from reprocheck.engine.trial import Job, trial_spec, worker_command
from reprocheck.errors import HarnessError, UsageError
from reprocheck.explain.keys import comparable, lookup
from reprocheck.explain.state import flatten
from reprocheck.model import Record, Stream, Target, Trial
from reprocheck.store.objects import digest_file

__all__ = ["WORKLOAD", "examine"]

WORKLOAD = Target(text="(doctor)", kind="function", path=str(Path(__file__).with_name("workload.py")), name="run")

_SHOWN = 60
_GENERATOR = re.compile(r"\brng\b|random_state")
_HASHING = ("process.hash_probe", "process.flags.hash_randomization")


def examine(engine: Engine, job: Job, *, name: str, subjects: Sequence[str], trials: int = 4) -> Examination:
    """Run `trials` identical trials of `job` through the engine called `name`, and compare everything.

    Raises `HarnessError` when the engine cannot run them, or when all of them fail: then there is nothing to compare.
    """
    from reprocheck import __version__

    order = tuple(subjects)
    asked = [Trial(order=order, repeat=repeat) for repeat in range(trials)]
    records = sorted(engine.run(asked, _kept), key=lambda record: record.trial.repeat)
    if len(records) < trials:
        raise HarnessError(f"the engine `{name}` gave back {len(records)} of {trials} trials; see what it says itself")
    if all(record.failure is not None for record in records):
        failure = records[0].failure
        assert failure is not None  # noqa: S101 - by the line above
        if failure.missing_module and failure.subject:
            raise UsageError(f"{failure.message}; correct the name, or install it for the trials' interpreter")
        raise HarnessError(f"every trial through the engine `{name}` fails: {failure.message}")
    plain = _plain(job, Trial(order=order, repeat=0))
    states = [_state(record) for record in records]
    return Examination(
        reprocheck_version=__version__,
        engine=name,
        python=job.python,
        python_version=records[0].python.get("version", ""),
        subjects=order,
        trials=trials,
        outputs=len(records[0].outputs),
        state_keys=len(states[0]),
        varying=(*_varying_outputs(records), *_varying_state(states)),
        changed=tuple(_changed(job, plain, records[0])),
        abilities=abilities(),
        time=_split(records),
        notes=("variables without a numerical meaning are compared by digests of their values, which are not shown",),
    )


def _kept(raw: RawRecord, folder: Path) -> Record:
    """The record with its outputs' digests; nothing is stored."""
    return raw.with_outputs(lambda file: digest_file(folder / "arrays" / file))


def _plain(job: Job, trial: Trial) -> Record:
    """The same trial in an interpreter started as a shell would start it: the user's environment, nothing done to it.

    Raises `HarnessError` when it does not run.
    """
    with tempfile.TemporaryDirectory(prefix="reprocheck-doctor-") as name:
        folder = Path(name)
        argv = worker_command(job, folder, trial_spec(job, trial, folder))
        begin = time.monotonic()
        try:
            done = subprocess.run(
                argv,
                env=job.environment,
                cwd=job.cwd,
                capture_output=True,
                timeout=job.timeout,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise HarnessError(f"`{job.python}` can't be started plainly: {error}; check --python") from error
        stderr = Stream(text=done.stderr.decode("utf-8", "replace")[-2000:], nbytes=len(done.stderr))
        end = Exit(
            status=done.returncode,
            seconds=time.monotonic() - begin,
            timed_out=False,
            interrupted=False,
            stdout=Stream(text="", nbytes=len(done.stdout)),
            stderr=stderr,
        )
        return _kept(finish(trial, folder, end), folder)


def _state(record: Record) -> dict[str, Any]:
    """Phase and key -> comparable value, over all snapshots of a trial."""
    found = {}
    for snapshot in record.snapshots:
        for key, value in flatten(snapshot.kinds).items():
            compared = comparable(key, value)
            if compared is not None:
                found[f"{snapshot.phase} {key}"] = compared
    return found


def _varying_outputs(records: Sequence[Record]) -> Iterator[Varying]:
    outcomes = [outcome_key(record) for record in records]
    failed = [record.failure.message for record in records if record.failure is not None]
    if failed:
        told = tuple(dict.fromkeys(_short(message) for message in failed))
        yield Varying(what="output", name=f"{len(failed)} of {len(records)} trials fail", values=told)
        return
    if len(set(outcomes)) == 1:
        return
    digests: dict[str, dict[str, int]] = {}
    for record in records:
        for output in record.outputs:
            seen = digests.setdefault(output.name, {})
            seen[output.digest] = seen.get(output.digest, 0) + 1
    for name, seen in digests.items():
        if len(seen) > 1 or sum(seen.values()) < len(records):
            told = tuple(f"{count} x {digest[7:19]}" for digest, count in seen.items())
            yield Varying(what="output", name=name, values=told)


def _varying_state(states: Sequence[dict[str, Any]]) -> Iterator[Varying]:
    told: set[str] = set()
    for place in dict.fromkeys(place for state in states for place in state):
        phase, _, key = place.partition(" ")
        values = dict.fromkeys(_short(state.get(place, "absent")) for state in states)
        exact = {repr(state.get(place, "absent")) for state in states}
        if len(exact) > 1 and key not in told:
            told.add(key)
            yield Varying(
                what="state",
                name=f"{key} at {phase}",
                values=tuple(values),
                why=lookup(key).why,
                expected=_GENERATOR.search(key) is not None,
            )


def _changed(job: Job, plain: Record, through: Record) -> Iterator[Changed]:
    """What differs at the start of a trial, and in its whole environment; later phases only repeat it."""
    shaped = trial_environment(job.environment, job.env)
    meant = {*shaped.pinned, *shaped.dropped, *shaped.changed}
    sides = []
    for record in (plain, through):
        state = _state(record)
        start = {place.partition(" ")[2]: value for place, value in state.items() if place.startswith("t0 ")}
        # The whole environment is read at the end, when reading it can't disturb anything.
        start |= {
            place.partition(" ")[2]: value for place, value in state.items() if place.startswith("t3 environ.others.")
        }
        sides.append(start)
    for key in sorted({*sides[0], *sides[1]}):
        ours, theirs = (side.get(key, "absent") for side in sides)
        if ours == theirs:
            continue
        variable = key.rpartition(".")[2] if key.startswith("environ.") else ""
        intended = variable in meant if variable else key in _HASHING and "PYTHONHASHSEED" in meant
        why = "every trial is given this" if intended else lookup(key).why
        yield Changed(key=key, plain=ours, engine=theirs, intended=intended, why=why)


def _split(records: Sequence[Record]) -> Split:
    rows = [_times(record) for record in records if record.ok]
    return Split(**{name: round(statistics.median(row[name] for row in rows), 4) for name in Split.__struct_fields__})


def _times(record: Record) -> dict[str, float]:
    at = record.timeline
    spent = {
        "total": record.seconds,
        "start": record.seconds - at.get("end", record.seconds) + at.get("ready", 0.0),
        "imports": sum(
            at[f"imported:{name}"] - at[f"importing:{name}"] for name in record.trial.order if f"imported:{name}" in at
        ),
        "snapshots": sum(snapshot.ms for snapshot in record.snapshots) / 1e3,
        "workload": at.get("returned", 0.0) - at.get("workload", 0.0),
        "save": at.get("saved", 0.0) - at.get("returned", 0.0),
    }
    return {**spent, "rest": max(0.0, spent["total"] - sum(list(spent.values())[1:]))}


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"

"""From a trial's folder to its record: the phases the worker wrote, and how its process ended."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from reprocheck.engine.process import Exit
from reprocheck.errors import HarnessError, StoreError
from reprocheck.model import Event, Failure, NotCompared, Output, Record, Snapshot, Struct, Trial

__all__ = ["RawOutput", "RawRecord", "finish", "read_phases"]

LAST_WORDS = 12
"""Lines of stderr that are kept as what a process said before it left."""


class RawOutput(Struct, frozen=True, kw_only=True):
    """An output as the worker wrote it, before it has a digest."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    nbytes: int
    file: str
    python: str


class RawRecord(Struct, frozen=True, kw_only=True):
    """A record whose outputs are still files in the trial's folder."""

    record: Record
    outputs: tuple[RawOutput, ...]

    def with_outputs(self, digest: Callable[[str], str]) -> Record:
        """The record with its outputs; `digest` gives that of an output's file, by its name."""
        return msgspec.structs.replace(
            self.record,
            outputs=tuple(
                Output(
                    name=item.name,
                    dtype=item.dtype,
                    shape=item.shape,
                    nbytes=item.nbytes,
                    digest=digest(item.file),
                    python=item.python,
                )
                for item in self.outputs
            ),
        )


def read_phases(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of `phases.jsonl`; a last line cut short by a crash is left out."""
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return
    for line in text.splitlines():
        try:
            value = msgspec.json.decode(line)
        except msgspec.DecodeError:
            return
        if isinstance(value, dict):
            yield value


def finish(trial: Trial, folder: Path, end: Exit) -> RawRecord:
    """The record of a trial that ended as `end`. Raises `HarnessError` if the worker never began its work."""
    lines = list(read_phases(folder / "phases.jsonl"))
    by_kind: dict[str, list[dict[str, Any]]] = {}
    for line in lines:
        by_kind.setdefault(line["what"], []).append(line)
    failure = _failure(trial, by_kind, lines, end, folder)
    if "start" not in by_kind and (failure is None or failure.kind not in ("timeout", "signal")):
        said = end.stderr.text.strip().splitlines() or [""]
        # An interpreter that can't begin gives its reason above what else it knows.
        text = next((line for line in said if line.startswith("Fatal Python error: ")), said[-1])
        raise HarnessError(
            f"the worker did not start (exit status {end.status}{': ' + text if text else ''}); "
            "check that --python names a Python 3.9 or later that runs, and with what --env sets"
        )
    imported = by_kind.get("imported", [])
    effective = tuple(imported[-1]["effective"]) if imported else ()
    ready = by_kind.get("ready", [{}])[0]
    record = Record(
        trial=trial,
        effective_order=effective,
        preloaded=tuple(ready.get("preloaded", ())),
        pulled_in=_pulled_in(by_kind),
        ok=failure is None,
        failure=failure,
        not_compared=tuple(
            NotCompared(name=line["name"], reason=line["reason"]) for line in by_kind.get("skipped", [])
        ),
        snapshots=tuple(
            Snapshot(phase=line["phase"], at=line["at"], ms=line["ms"], kinds=line["kinds"])
            for line in by_kind.get("snapshot", [])
        ),
        events=_events(lines),
        actions=tuple(
            {key: value for key, value in line.items() if key not in ("what", "at")}
            for line in by_kind.get("action", [])
        ),
        exit_status=end.status,
        seconds=round(end.seconds, 4),
        timeline=_timeline(lines),
        python=by_kind.get("start", [{}])[0].get("python", {}),
        stdout=end.stdout,
        stderr=end.stderr,
    )
    outputs = tuple(
        RawOutput(
            **{field: line[field] for field in ("name", "dtype", "nbytes", "file", "python")},
            shape=tuple(line["shape"]),
        )
        for line in by_kind.get("output", [])
    )
    return RawRecord(record=record, outputs=outputs)


def _pulled_in(by_kind: dict[str, list[dict[str, Any]]]) -> dict[str, str]:
    """Subjects that were loaded before their turn, and the earlier subject whose import did it."""
    preloaded = set(by_kind.get("ready", [{}])[0].get("preloaded", ()))
    seen = set(preloaded)
    owner: dict[str, str] = {}
    for line in by_kind.get("imported", []):
        for name in line["effective"]:
            if name not in seen and name != line["subject"]:
                owner[name] = line["subject"]
            seen.add(name)
    return owner


def _timeline(lines: list[dict[str, Any]]) -> dict[str, float]:
    times: dict[str, float] = {}
    for line in lines:
        name = line["what"]
        if name in ("imported", "importing"):
            name = f"{name}:{line['subject']}"
        elif name == "snapshot":
            name = f"snapshot:{line['phase']}"
        elif name not in ("start", "ready", "workload", "returned", "saved", "end"):
            continue
        times[name] = line["at"]
    return times


def _events(lines: list[dict[str, Any]]) -> tuple[Event, ...]:
    """Events carry the phase they fell into: they are written just before that phase's snapshot."""
    events: list[Event] = []
    pending: list[dict[str, Any]] = []
    for line in lines:
        if line["what"] == "event":
            pending.append(line)
        elif line["what"] == "snapshot":
            events += [_event(item, line["phase"]) for item in pending]
            pending = []
    events += [_event(item, "t3") for item in pending]
    return tuple(events)


def _event(line: dict[str, Any], phase: str) -> Event:
    return Event(
        kind=line["kind"],
        at=line["at"],
        phase=phase,
        name=line["name"],
        value=line.get("value"),
        file=line.get("file"),
        line=line.get("line"),
        module=line.get("module"),
    )


# What was going on after the last line of each kind.
_DOING = {
    "start": "starting",
    "ready": "starting",
    "workload": "running the workload",
    "returned": "saving the outputs",
    "tested": "running pytest, between two tests",
    "saved": "reading the state afterwards",
    "end": "shutting down the interpreter",
}


def _doing(lines: list[dict[str, Any]], trial: Trial) -> tuple[str, str | None, float]:
    """(what the worker was doing, the subject if it was an import, since when)."""
    returned = False
    for line in reversed(lines):
        what = line["what"]
        returned = returned or what == "returned"
        if what == "importing":
            count = len(trial.order)
            place = f" ({line['position']} of {count})" if count > 1 else ""
            return f"importing {line['subject']}{place}", line["subject"], line["at"]
        if what == "imported":
            if len(lines) and line["position"] == len(trial.order):
                return "loading the workload", None, line["at"]
            return f"after importing {line['subject']}", None, line["at"]
        if what == "test":
            return f"running {line['name']}", None, line["at"]
        if what in _DOING:
            return _DOING[what], None, line["at"]
    return "starting the interpreter", None, 0.0


def _failure(
    trial: Trial, by_kind: dict[str, list[dict[str, Any]]], lines: list[dict[str, Any]], end: Exit, folder: Path
) -> Failure | None:
    phase, subject, since = _doing(lines, trial)
    stack = _crash_stack(folder)
    if end.timed_out:
        message = f"no end after {end.seconds:.1f} s, while {phase}"
        return Failure(
            kind="timeout",
            phase=phase,
            subject=subject,
            signature=f"timeout @ {phase}",
            message=message,
            # The stack was asked for with SIGABRT; that the process aborted is not what happened.
            traceback=stack and stack.removeprefix("Fatal Python error: Aborted").lstrip(),
            after_s=end.seconds,
        )
    if end.status < 0:
        name = _signal_name(-end.status)
        after = max(0.0, end.seconds - since)
        message = f"signal {-end.status} ({name}) while {phase}, after {after:.1f} s"
        return Failure(
            kind="signal",
            phase=phase,
            subject=subject,
            signature=f"signal:{-end.status} @ {phase}",
            message=message,
            traceback=stack,
            after_s=round(after, 3),
        )
    for line in by_kind.get("fault", []):
        if line["kind"] == "storage":
            raise StoreError(f"{line['message']}; free some space or give another folder with --out")
        if line["kind"] == "harness":
            file, number = re.findall(r'File "([^"]+)", line (\d+)', line["traceback"])[-1]
            what = f"{line['exception'].removeprefix('builtins.')}: {line['message']} ({file}:{number})"
            raise HarnessError(
                f"reprocheck's own worker failed while {line['phase']}: {what}; "
                "this is a fault of reprocheck and says nothing about the workload"
            )
        return _fault(line, end)
    if "end" not in by_kind:
        return Failure(
            kind="exit",
            phase=phase,
            subject=subject,
            signature=f"exit:{end.status} @ {phase}",
            message=f"the process ended with status {end.status} while {phase} (os._exit?)",
            traceback=_last_words(end),
        )
    if end.status:
        return Failure(
            kind="exit",
            phase="shutting down the interpreter",
            signature=f"exit:{end.status} @ shutdown",
            message=f"the process ended with status {end.status} while shutting down",
            traceback=_last_words(end),
        )
    return None


def _last_words(end: Exit) -> str | None:
    """The end of what a process printed to stderr before it left by itself; argparse gives its reason there."""
    return "\n".join(end.stderr.text.rstrip().splitlines()[-LAST_WORDS:]) or None


def _fault(line: dict[str, Any], end: Exit) -> Failure:
    kind = line["kind"]
    exception = line["exception"].removeprefix("builtins.")
    message = line["message"]
    if kind == "exit":
        text = f"exit status {line['exit_code']} while {line['phase']}"
        signature = f"exit:{line['exit_code']} @ {line['phase']}"
    elif kind in ("nothing", "target", "unsupported"):
        text, signature = message, f"{kind}: {message}"
    else:
        first = message.strip().split("\n")[0]
        text = f"{exception}: {first}" if first else exception
        text = f"{text} (while {line['phase']})"
        signature = f"{exception}: {normalise(message)} @ {line['phase']}"
    return Failure(
        kind=kind,
        phase=line["phase"],
        subject=line.get("subject"),
        signature=signature,
        message=text,
        exception=exception,
        missing_module=line.get("missing_module"),
        traceback=_last_words(end) if kind == "exit" else line.get("traceback"),
        after_s=line["at"],
    )


_VARIABLE = re.compile(r"0x[0-9a-fA-F]+|\b\d{4,}\b|/tmp/\S+")


def normalise(message: str) -> str:
    """`message` without addresses, long numbers and temporary paths, so that the same failure reads the same."""
    return _VARIABLE.sub("·", message).strip()


def _crash_stack(folder: Path) -> str | None:
    try:
        text = (folder / "fault.txt").read_text("utf-8", "replace").strip()
    except OSError:
        return None
    return text or None


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"

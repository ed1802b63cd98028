"""One trial: the job file, the fresh interpreter, and the record of how it ended. Every engine runs trials by this."""

from __future__ import annotations

import contextlib
import marshal
import os
import py_compile
import sys
from collections.abc import Mapping
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

import msgspec

from reprocheck.engine.environment import trial_environment
from reprocheck.engine.gate import Gate
from reprocheck.engine.machine import this_machine
from reprocheck.engine.phases import RawRecord, finish
from reprocheck.engine.process import Exit, Stop, kill_left, run_process
from reprocheck.errors import HarnessError
from reprocheck.model import Struct, Target, Trial

__all__ = [
    "WORKER",
    "Job",
    "compile_worker",
    "environment_of",
    "record_of",
    "run_trial",
    "trial_spec",
    "worker_command",
]

WORKER = Path(__file__).resolve().parent.parent / "worker"


class Job(Struct, frozen=True, kw_only=True):
    """What all trials of a study have in common."""

    target: Target
    python: str
    cwd: str
    environment: dict[str, str]
    """The user's environment, before a trial's own changes."""
    env: dict[str, str | None] = {}
    """Changes asked for the whole study."""
    seed: int | None = None
    timeout: float = 600.0
    argv: tuple[str, ...] = ()
    probes: tuple[str, ...] = ()
    """Files with snapshot readers of the user's own."""
    sys_path: tuple[str, ...] = ()
    """Folders to put before `sys.path`, as far as they aren't in it: where a test process found its modules."""


def run_trial(job: Job, trial: Trial, folder: Path, *, stop: Stop, gate: Gate | None = None) -> RawRecord:
    """Run `trial` in `folder`, which is there and empty, until its end, its time-out, or until `stop` is set.

    What it wrote (`arrays/`, `trace.jsonl`) stays in `folder`. Raises `HarnessError` when the interpreter can't be
    started, when the worker never began its work, and, with the text "interrupted", when `stop` was set.
    """
    argv = worker_command(job, folder, trial_spec(job, trial, folder))
    environ = environment_of(job, trial)
    with gate.passing(stop) if gate else contextlib.nullcontext():
        end = run_process(
            argv,
            env=environ,
            cwd=Path(job.cwd),
            timeout=job.timeout,
            stop=stop,
        )
    kill_left(folder)
    if end.interrupted:
        raise HarnessError("interrupted")
    return record_of(trial, folder, end, environ)


def worker_command(job: Job, folder: Path, spec: dict[str, Any]) -> list[str]:
    """The command that starts the worker on `spec` (see `trial_spec`), which is written into `folder`."""
    job_file = folder / "job"
    # Version 2 is the newest marshal format that every supported interpreter reads.
    job_file.write_bytes(marshal.dumps(spec, 2))
    return [job.python, str(WORKER / "main.py"), str(job_file)]


def environment_of(job: Job, trial: Trial) -> dict[str, str]:
    """The variables a trial's process starts with."""
    return trial_environment(job.environment, {**job.env, **trial.variables}).variables


def record_of(trial: Trial, folder: Path, end: Exit, environ: Mapping[str, str]) -> RawRecord:
    """The record of a trial that was started with `environ` and ended as `end` says, with the machine it ran on."""
    raw = finish(trial, folder, end)
    facts = raw.record.python
    python = " ".join(facts[key] for key in ("implementation", "version") if key in facts)
    machine = this_machine(environ, python)
    return msgspec.structs.replace(raw, record=msgspec.structs.replace(raw.record, machine=machine))


def trial_spec(job: Job, trial: Trial, folder: Path) -> dict[str, Any]:
    """What the worker is told."""
    target = job.target
    script = target.path if target.kind != "pytest" else None
    return {
        "folder": str(folder),
        "subjects": list(trial.order),
        "target": msgspec.to_builtins(target),
        "sys_path0": str(Path(script).parent) if script else job.cwd,
        "sys_path": list(job.sys_path),
        "argv": [script or target.module or ("pytest" if target.kind == "pytest" else ""), *job.argv],
        "capture": trial.capture,
        "seed": job.seed,
        "probes": list(job.probes),
        "actions": [dict(action) for action in trial.actions],
        "trace": dict(trial.trace) if trial.trace else None,
        "blame": dict(trial.blame) if trial.blame else None,
        "imports_only": trial.imports_only,
    }


def compile_worker(python: str) -> None:
    """Write the worker's byte code if it is not there: with PYTHONDONTWRITEBYTECODE set, every trial would compile.

    Only for trials on the interpreter we run on: byte code is of one version.
    """
    if Path(python).resolve() != Path(sys.executable).resolve():
        return
    for source in (*WORKER.glob("*.py"), *WORKER.glob("*/*.py")):
        cached = Path(cache_from_source(str(source)))
        try:
            if cached.stat().st_mtime >= source.stat().st_mtime:
                continue
        except OSError:
            # Not compiled yet.
            cached.parent.mkdir(exist_ok=True) if os.access(source.parent, os.W_OK) else None
        if os.access(source.parent, os.W_OK):
            py_compile.compile(str(source), quiet=1)

"""The far side: what runs inside a Dask worker. It only starts the trial's process, with the user's environment.

Functions are sent by name, so the Dask worker loads its own copy of this package; `identity` lets the asking process
see that it is the same one.
"""

from __future__ import annotations

import contextlib
import os
import platform
import secrets
import shutil
import threading
import time
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
from distributed import Worker, get_worker
from distributed.core import Status

from reprocheck.engine.dask import reaper
from reprocheck.engine.dask.parcels import (
    Answer,
    Assignment,
    Inspection,
    Premises,
    changed_files,
    job_of,
    sources_digest,
)
from reprocheck.engine.gate import gpu_gate
from reprocheck.engine.machine import this_machine
from reprocheck.engine.process import run_process
from reprocheck.engine.trial import Job, compile_worker, run_trial
from reprocheck.errors import HarnessError, ReprocheckError, UsageError

__all__ = ["INLINE_BYTES", "active", "finish", "identity", "inspect", "run"]

INLINE_BYTES = 256 << 20
"""Of a trial's files that go through the Dask scheduler; beyond that a shared folder is asked for."""

# Which devices a process may use is said by whoever placed the Dask worker (Slurm, dask-cuda), not by the user's shell
# on another machine.
_MASKS = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
_VERSION = "import sys; print(sys.implementation.name, '%d.%d.%d' % sys.version_info[:3])"
_VERSION_SECONDS = 60.0

_running: Counter[str] = Counter()
_lock = threading.Lock()


def identity() -> dict[str, str]:
    """Version and digest of the sources that would run here. Plain types: the other side may be of another version."""
    return {"version": version("reprocheck"), "sources": sources_digest(), "host": platform.node()}


def inspect(data: bytes, seen: str | None, token: str) -> bytes:
    """What this machine is, and whether a study's trials can run on it, as an encoded `Inspection`.

    `seen` is a file the asking process made, with `token` in it: whoever reads that shares the folder.
    """
    premises = msgspec.json.decode(data, type=Premises)
    job = _here(premises)
    host = platform.node()
    python, problem = _python_version(job, host)
    problem = problem or _missing(premises, host)
    compile_worker(job.python)
    found = Inspection(
        machine=this_machine({**job.environment, **_set(job.env)}, python),
        problem=problem,
        shared=seen is not None and _shared(Path(seen), token),
    )
    return msgspec.json.encode(found)


def run(data: bytes) -> tuple[bytes, dict[str, bytes]]:
    """Run one trial: an encoded `Answer`, and the trial's files by name unless they are in the shared folder."""
    assignment = msgspec.json.decode(data, type=Assignment)
    worker = get_worker()
    files: dict[str, bytes] = {}
    try:
        with _counted(assignment.study):
            answer = _trial(assignment, worker, files)
    except ReprocheckError as error:
        if str(error) == "interrupted":
            answer = Answer(lost=True)
        else:
            answer = Answer(fault=f"{error} (on {platform.node()})", usage=isinstance(error, UsageError))
    except OSError as error:
        what = f"`{error.filename}`" if error.filename else "its folder"
        answer = Answer(fault=f"cannot use {what} on {platform.node()}: {error.strerror}", usage=True)
    return msgspec.json.encode(answer), files


def active(study: str) -> int:
    """How many trials of a study are under way in this process."""
    with _lock:
        return _running[study]


def finish() -> None:
    """No more trials will come from this study: end the reaper when nobody else's trials run here."""
    with _lock:
        busy = any(_running.values())
    if not busy:
        reaper.dismiss()


def _trial(assignment: Assignment, worker: Worker, files: dict[str, bytes]) -> Answer:
    premises = assignment.premises
    wrong = _missing(premises, platform.node())
    if wrong:
        return Answer(fault=wrong, usage=True)
    job = _here(premises)
    stop = _Cancelled(worker, str(worker.get_current_task()))
    parent = Path(assignment.parent or Path(worker.local_directory) / "reprocheck")
    # A new name every time: Dask may run an assignment again when it lost the worker that had it.
    folder = parent / f"dask-{secrets.token_hex(8)}"
    folder.mkdir(parents=True)
    try:
        gate = gpu_gate({**job.environment, **_set(job.env)}, worker.state.nthreads)
        with reaper.guarded(folder):
            raw = run_trial(job, assignment.trial, folder, stop=stop, gate=gate)
        if assignment.parent is None:
            files.update(_contents(folder))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    if assignment.parent is None:
        shutil.rmtree(folder, ignore_errors=True)
    return Answer(raw=raw, folder=folder.name)


def _contents(folder: Path) -> dict[str, bytes]:
    paths = [*sorted(folder.glob("arrays/*")), *folder.glob("trace.jsonl")]
    size = sum(path.stat().st_size for path in paths)
    if size > INLINE_BYTES:
        raise UsageError(
            f"a trial's outputs are {size >> 20} MiB, too large to go through the Dask scheduler; "
            "name a folder that all machines see with --shared DIR"
        )
    return {path.name: path.read_bytes() for path in paths}


def _here(premises: Premises) -> Job:
    """The job, with the device masks of this Dask worker where it has any."""
    names = () if premises.own else _MASKS
    return job_of(premises, {name: os.environ[name] for name in names if name in os.environ})


def _set(changes: dict[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in changes.items() if value is not None}


def _missing(premises: Premises, host: str) -> str | None:
    """The sentence for what a trial would miss here, or find otherwise."""
    if premises.own:
        return None
    if premises.sources != sources_digest():
        return f"reprocheck on {host} is not the one that asks; install the same version on both sides"
    for path, wrong in changed_files(premises.files).items():
        return f"`{path}` {wrong} on {host}; a study needs the same file at the same path on every machine"
    if not Path(premises.job.cwd).is_dir():
        return f"the folder `{premises.job.cwd}`, in which trials run, isn't on {host}; start from one that is"
    return None


def _python_version(job: Job, host: str) -> tuple[str, str | None]:
    """(implementation and version of the trials' interpreter, the sentence if it does not run here)."""
    advice = "name one that is on every machine with --python"
    try:
        end = run_process(
            [job.python, "-I", "-S", "-c", _VERSION],
            env=job.environment,
            cwd=Path("/"),
            timeout=_VERSION_SECONDS,
            stop=threading.Event(),
        )
    except HarnessError:
        return "", f"the interpreter `{job.python}` isn't on {host}; {advice}"
    if end.status:
        return "", f"the interpreter `{job.python}` doesn't run on {host} (exit status {end.status}); {advice}"
    return end.stdout.text.strip(), None


def _shared(file: Path, token: str) -> bool:
    try:
        return file.read_text("ascii") == token and os.access(file.parent, os.W_OK | os.X_OK)
    except (OSError, ValueError):
        return False


@contextlib.contextmanager
def _counted(study: str) -> Iterator[None]:
    with _lock:
        _running[study] += 1
    try:
        yield
    finally:
        with _lock:
            _running[study] -= 1


class _Cancelled:
    """Set when nobody waits for this task any more (cancelled, or its client is gone) or the Dask worker closes."""

    def __init__(self, worker: Worker, key: str) -> None:
        self._worker = worker
        self._key = key

    def is_set(self) -> bool:
        """Whether to end now."""
        task: Any = self._worker.state.tasks.get(self._key)
        wanted = task is not None and task.state in ("executing", "long-running")
        return not wanted or self._worker.status not in (Status.running, Status.paused, Status.closing_gracefully)

    def wait(self, timeout: float | None = None) -> bool:
        """Sleep, then tell."""
        time.sleep(timeout or 0)
        return self.is_set()

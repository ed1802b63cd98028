"""What travels between the asking process and a Dask worker, and the digests by which both know they mean the same."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from reprocheck.engine.environment import from_block, to_block
from reprocheck.engine.phases import RawRecord
from reprocheck.engine.trial import Job
from reprocheck.errors import HarnessError
from reprocheck.model import Machine, Struct, Trial
from reprocheck.store.objects import digest_file

__all__ = [
    "TRACE",
    "Answer",
    "Assignment",
    "Inspection",
    "Premises",
    "changed_files",
    "job_of",
    "premises_for",
    "sources_digest",
    "trusted",
]

TRACE = "trace.jsonl"
_FOLDER = re.compile(r"dask-[0-9a-f]{16}")
_FILE = re.compile(r"\d{6}\.safetensors|trace\.jsonl", re.ASCII)
PACKAGE = Path(__file__).resolve().parent.parent.parent


class Premises(Struct, frozen=True, kw_only=True):
    """What a machine must have before trials can run on it."""

    job: Job
    """Without its environment, which may hold bytes that are no text."""
    environment: bytes
    sources: str
    """Digest of the code that runs there."""
    files: dict[str, str]
    """Path -> digest of the files the study is about."""
    own: bool = False
    """The Dask worker lives in the process that asks: everything is as the user has it."""


def job_of(premises: Premises, masks: Mapping[str, str]) -> Job:
    """The job again, with device masks of the machine it is on."""
    return msgspec.structs.replace(premises.job, environment={**from_block(premises.environment), **masks})


class Inspection(Struct, frozen=True, kw_only=True):
    """What a Dask worker says of its machine."""

    machine: Machine
    problem: str | None = None
    """One sentence when trials can't run there."""
    shared: bool = False
    """Whether it sees the asking process's folder, and may write there."""


class Assignment(Struct, frozen=True, kw_only=True):
    """One trial to be run."""

    premises: Premises
    study: str
    trial: Trial
    parent: str | None = None
    """A folder that both sides see; the trial works in a new folder below it. None: files come back in the answer."""


class Answer(Struct, frozen=True, kw_only=True):
    """What became of an assignment: a record, or one sentence why there is none."""

    raw: RawRecord | None = None
    folder: str | None = None
    """Name of the trial's folder below `parent`."""
    fault: str | None = None
    usage: bool = False
    """Whether the fault is one that the user can mend."""
    lost: bool = False
    """The Dask worker is about to end: the trial has to run somewhere else."""


def premises_for(job: Job, *, own: bool) -> Premises:
    """The premises of a study; reads the files it names."""
    named = (job.target.path, *job.probes)
    files = {path: digest_file(Path(path)) for path in named if path is not None and Path(path).is_file()}
    bare = msgspec.structs.replace(job, environment={})
    block = to_block(job.environment)
    return Premises(job=bare, environment=block, sources=sources_digest(), files=files, own=own)


def sources_digest(package: Path = PACKAGE) -> str:
    """Digest of the code that runs on a Dask worker or decides what a record is: the worker, the engine, the model."""
    found = hashlib.sha256()
    for path in sorted(p for room in ("engine", "model", "worker") for p in (package / room).rglob("*.py")):
        data = path.read_bytes()
        found.update(f"{path.relative_to(package)}:{len(data)}:".encode() + data)
    return found.hexdigest()


def changed_files(files: Mapping[str, str]) -> dict[str, str]:
    """Path -> what is wrong with it here, of the files that aren't as they were where the study was asked."""
    wrong = {}
    for name, digest in files.items():
        try:
            if digest_file(Path(name)) != digest:
                wrong[name] = "has other contents"
        except OSError as error:
            wrong[name] = f"can't be read ({error.strerror})"
    return wrong


def trusted(answer: Answer, files: Mapping[str, bytes], trial: Trial) -> tuple[RawRecord, str]:
    """The record of `trial` in an answer, and its folder's name. Raises `HarnessError` where names lead elsewhere."""
    raw, folder = answer.raw, answer.folder or ""
    names = [*files, *(output.file for output in raw.outputs)] if raw else [""]
    if raw is None or not _FOLDER.fullmatch(folder) or not all(map(_FILE.fullmatch, names)):
        raise HarnessError("a Dask worker gave an answer that makes no sense; is something else answering there?")
    return msgspec.structs.replace(raw, record=msgspec.structs.replace(raw.record, trial=trial)), folder

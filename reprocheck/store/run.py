"""The run folder: written by one process under a `.partial` name, renamed into place when the verdict is in.

    study.json      the verdict (or, while running, only the spec)
    spec.json       what was asked; `--resume` compares against it
    journal.jsonl   one line a trial, fsynced; a truncated tail is tolerated
    records/        one JSON file a trial
    objects/        arrays by digest

Everything read back is untrusted: decoded into closed records, digests and names checked, no pickle, no code.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import secrets
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Self, TypeVar

import msgspec

from reprocheck.errors import StoreError, UsageError
from reprocheck.model import Record, Setting, Struct, Study, Target, Trial
from reprocheck.store.objects import TRACE, ObjectStore

__all__ = ["Run", "RunWriter", "Spec", "at_level", "in_use", "runs_in", "trial_key"]

FORMAT = 1
PARTIAL = ".partial"
T = TypeVar("T")


class Spec(Struct, frozen=True, kw_only=True):
    """Everything that decides what the trials of a run are; two runs with equal specs may share trials."""

    format: int = FORMAT
    target: Target
    workload_digest: str
    subjects: tuple[str, ...]
    orders: tuple[tuple[str, ...], ...]
    python: str
    cwd: str
    argv: tuple[str, ...] = ()
    sys_path: tuple[str, ...] = ()
    env: dict[str, str | None] = {}
    seed: int | None = None
    repeat: int = 3
    timeout: float = 600.0
    presence: bool = False
    observer: bool = True
    isolation: str = "fresh"
    levels: tuple[Setting, ...] = ()
    probes: tuple[str, ...] = ()


class JournalLine(Struct, frozen=True, kw_only=True):
    """One line of the journal."""

    key: str
    record: str
    at: float


def trial_key(trial: Trial) -> str:
    """What makes a trial the same trial: order, level, arm, settings and repeat number."""
    parts = [",".join(trial.order) or "-", f"r{trial.repeat}"]
    if trial.level:
        parts.append("level " + msgspec.json.encode(trial.level, order="sorted").decode())
    if not trial.capture:
        parts.append("bare")
    if trial.presence:
        parts.append("presence")
    if trial.forked:
        parts.append("forked")
    if trial.imports_only:
        parts.append("imports")
    extra = {"env": trial.env, "actions": trial.actions, "trace": trial.trace, "blame": trial.blame}
    if any(extra.values()):
        parts.append(msgspec.json.encode(extra, order="sorted").decode())
    return "|".join(parts)


def at_level(records: Iterable[Record], level: Setting) -> list[Record]:
    """The records of one level of the varied settings, as if there were no other: what a plain study is made of."""
    return [
        msgspec.structs.replace(record, trial=msgspec.structs.replace(record.trial, level={}))
        for record in records
        if record.trial.level == level
    ]


@contextlib.contextmanager
def storage_errors(folder: Path) -> Iterator[None]:
    """Turn what the disk says into one sentence with the folder's name."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.ENOSPC:
            advice = "free some space, then continue with --resume"
        elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            advice = "give a writable folder with --out"
        else:
            advice = "check the path given with --out"
        raise StoreError(f"cannot write to `{folder}`: {error.strerror}; {advice}") from error


class Run:
    """A stored run, for reading."""

    def __init__(self, folder: Path) -> None:
        """Raises `StoreError` if `folder` is not a run folder of a format this version reads."""
        self.folder = folder
        if not (folder / "spec.json").is_file():
            raise StoreError(f"`{folder}` is not a run folder (no spec.json); list runs with `reprocheck list`")
        self.spec = self.read("spec.json", Spec)
        if self.spec.format != FORMAT:
            raise StoreError(
                f"`{folder}` has format {self.spec.format}, but {FORMAT} is read here; use the reprocheck that wrote it"
            )
        self.objects = ObjectStore(folder / "objects")

    def study(self) -> Study:
        """The verdict. Raises `StoreError` for a run that did not end."""
        if not (self.folder / "study.json").is_file():
            raise StoreError(f"`{self.folder}` has no verdict yet; continue it with `reprocheck run … --resume`")
        return self.read("study.json", Study)

    def records(self, level: Setting | None = None) -> list[Record]:
        """All records in the order in which their trials ended; with a `level`, those of it, as if there were no other.

        A run without varied settings has one level, `{}`.
        """
        found = [self.read(line.record, Record) for line in self.journal()]
        return found if level is None else at_level(found, level)

    def journal(self) -> list[JournalLine]:
        """The journal's lines, a cut last one left out."""
        try:
            text = (self.folder / "journal.jsonl").read_bytes()
        except FileNotFoundError:
            return []
        lines = []
        for raw in text.split(b"\n"):
            try:
                line = msgspec.json.decode(raw, type=JournalLine)
            except msgspec.DecodeError:
                break
            if not re.fullmatch(r"records/\d{6}\.json", line.record):
                raise StoreError(f"`{self.folder}` is damaged: its journal names `{line.record[:80]}`")
            lines.append(line)
        return lines

    def read(self, name: str, kind: type[T]) -> T:
        """One of the run's JSON files as a record. Raises `StoreError` naming the file."""
        path = self.folder / name
        try:
            return msgspec.json.decode(path.read_bytes(), type=kind)
        except (OSError, msgspec.DecodeError) as error:
            raise StoreError(f"`{path}` cannot be read: {error}") from error


class RunWriter:
    """A run folder under way. One process holds it (a lock); use as a context manager."""

    def __init__(self, folder: Path, spec: Spec, *, resume: bool = False) -> None:
        """Start `folder`, or with `resume` continue what a killed process left of it.

        Raises `UsageError` if it exists already, is in use, or was made with another spec (the field is named).
        """
        self.final = folder
        self.folder = folder.with_name(folder.name + PARTIAL)
        self.spec = spec
        self._done: dict[str, Record] = {}
        self._next = 0
        if resume:
            self._refuse_another_spec()
        elif folder.exists():
            raise UsageError(f"`{folder}` exists already; give another --out, or --resume to continue it")
        elif self.folder.exists():
            raise UsageError(
                f"`{self.folder}` is left from a run that did not end; continue it with --resume or delete it"
            )
        with storage_errors(self.folder):
            if folder.exists() and not self.folder.exists():
                folder.rename(self.folder)
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock()
            (self.folder / "records").mkdir(exist_ok=True)
            if (self.folder / "spec.json").exists():
                self._take_up()
            else:
                self._write("spec.json", msgspec.json.encode(spec))
            self._journal = os.open(self.folder / "journal.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self.objects = ObjectStore(self.folder / "objects")

    @property
    def scratch(self) -> Path:
        """Where trials work: on the same file system, so that outputs are moved in."""
        return self.folder / "scratch"

    def done(self, trial: Trial) -> Record | None:
        """The record of `trial` if this run already has it. For a trial to be forked, a fresh one is as good."""
        found = self._done.get(trial_key(trial))
        if found is None and trial.forked:
            found = self._done.get(trial_key(msgspec.structs.replace(trial, forked=False)))
        return found

    def records(self) -> Iterator[Record]:
        """The records this run has so far, in the order in which their trials ended."""
        return iter(self._done.values())

    def add(self, record: Record) -> None:
        """Keep a record; once this returns it survives the end of this process.

        A machine that loses power may lose what its disk's cache still had; `--resume` sees that and runs those trials
        again. (Waiting for the disk with every output would cost more than a trial that is lost once in a while.)
        """
        key = trial_key(record.trial)
        name = f"records/{self._next:06d}.json"
        self._next += 1
        line = JournalLine(key=key, record=name, at=time.time())
        with storage_errors(self.folder):
            self._write(name, msgspec.json.encode(record))
            os.write(self._journal, msgspec.json.encode(line) + b"\n")
            os.fsync(self._journal)
        self._done[key] = record

    def finish(self, study: Study) -> Path:
        """Write the verdict and rename the folder into place; returns where it now is."""
        with storage_errors(self.folder):
            self._write("study.json", msgspec.json.format(msgspec.json.encode(study), indent=1))
            _remove(self.scratch)
            self.folder.rename(self.final)
        return self.final

    def close(self) -> None:
        """Let go of the folder; what is there stays, for `--resume`."""
        os.close(self._journal)
        os.close(self._lock_fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _lock(self) -> None:
        self._lock_fd = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock_fd)
            raise UsageError(f"`{self.folder}` is in use by another reprocheck; give another --out") from None

    def _refuse_another_spec(self) -> None:
        """Raise `UsageError` naming the field, before anything is touched, if what is there is another question."""
        there = next((path for path in (self.folder, self.final) if (path / "spec.json").exists()), None)
        if there is None:
            return
        before = Run(there)
        for field in Spec.__struct_fields__:
            old, new = getattr(before.spec, field), getattr(self.spec, field)
            if old != new:
                was, now = (msgspec.json.encode(value).decode()[:120] for value in (old, new))
                raise UsageError(
                    f"`{self.final}` was made with another `{field}` ({was}, now {now}); "
                    "start a new run with another --out"
                )

    def _take_up(self) -> None:
        """Learn what the journal has, cut off a line that a crash left half written, and drop unfinished trials."""
        _remove(self.scratch)
        before = Run(self.folder)
        lines = []
        for line in before.journal():
            self._next = max(self._next, 1 + int(Path(line.record).stem))
            record = _whole(before, line)
            if record is not None:
                self._done[line.key] = record
                lines.append(line)
        self._write("journal.jsonl", b"".join(msgspec.json.encode(line) + b"\n" for line in lines))

    def _write(self, name: str, data: bytes) -> None:
        path = self.folder / name
        temporary = path.with_name(path.name + ".tmp")
        temporary.write_bytes(data)
        temporary.replace(path)


def _whole(run: Run, line: JournalLine) -> Record | None:
    """The record of a journal line with all that it refers to; None where a power cut left less."""
    try:
        record = run.read(line.record, Record)
        sizes = {run.objects.path(output.digest): output.nbytes for output in record.outputs}
        if record.trace is not None:
            sizes[run.objects.path(record.trace, TRACE)] = 1
        short = [path for path, size in sizes.items() if path.stat().st_size < size]
    except (StoreError, OSError):
        return None
    for path in short:
        path.unlink()  # an equal output that comes again would be taken for stored already
    return None if short else record


def _remove(folder: Path) -> None:
    import shutil

    shutil.rmtree(folder, ignore_errors=True)


def new_run_folder(root: Path, name: str) -> Path:
    """A fresh name below `root`: date, workload, and a few random letters, so that two runs at once don't meet."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    slug = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")[-40:] or "run"
    return root / f"{stamp}-{slug}-{secrets.token_hex(2)}"


def in_use(folder: Path) -> bool:
    """Whether a process holds this run or bisection: what is under way must not be deleted."""
    try:
        fd = os.open(folder / "lock", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def runs_in(root: Path) -> list[Path]:
    """Run folders below `root`, newest first; unfinished ones included."""
    if not root.is_dir():
        return []
    found = [path for path in root.iterdir() if (path / "spec.json").is_file()]
    return sorted(found, key=lambda path: path.name, reverse=True)

"""The journal of a bisection: appended and fsynced line by line; what it holds is all that resuming and undoing need.

spec.json        what was asked; `--resume` compares against it
journal.jsonl    one line a run of a version, or an undoing of the last ones; a truncated tail is tolerated
versions/        run folders, by version
report.json      the answer
"""

from __future__ import annotations

import fcntl
import os
import shutil
import threading
import time
from pathlib import Path
from typing import Any, Self

import msgspec

from reprocheck.bisect.records import Report, Seen
from reprocheck.errors import StoreError, UsageError
from reprocheck.model import Struct
from reprocheck.store.run import new_run_folder, storage_errors

__all__ = ["BISECTS", "Entry", "Journal", "answer_of", "bisects_in", "find_unfinished", "is_bisection"]

BISECTS = Path(".reprocheck") / "bisects"
FORMAT = 1


class Entry(Struct, frozen=True, kw_only=True):
    """One run of a version; without `seen`, what it installs; with `undo`, the taking back of so many runs before."""

    name: str = ""
    run: int = 0
    content: str = ""
    """Digest of what was installed; runs of equal contents count for each other."""
    seen: Seen | None = None
    undo: int = 0
    at: float = 0.0


class Journal:
    """The folder of a bisection. One process holds it; use as a context manager."""

    def __init__(self, folder: Path, spec: dict[str, Any], *, resume: bool = False) -> None:
        """Start `folder`, or with `resume` go on with what it holds.

        Raises `UsageError` if it exists already, is in use, or answers another question (the field is named).
        """
        self.folder = folder
        self._spec = {"format": FORMAT, **spec}
        self._mutex = threading.Lock()
        if folder.exists() and not resume:
            raise UsageError(f"`{folder}` exists already; give another --out, or --resume to continue it")
        if resume and not (folder / "spec.json").exists():
            raise UsageError(f"`{folder}` is no bisection to go on with; leave --resume out to start one")
        with storage_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            self._lock()
            if resume:
                self._compare()
            else:
                _write(folder / "spec.json", msgspec.json.encode(self._spec))
            self.entries = _read(folder / "journal.jsonl")
            whole = b"".join(msgspec.json.encode(entry) + b"\n" for entry in self.entries)
            _write(folder / "journal.jsonl", whole)  # a cut last line would join the next one written
            self._file = os.open(folder / "journal.jsonl", os.O_WRONLY | os.O_APPEND)

    def add(self, entry: Entry) -> None:
        """Keep an entry; once this returns it survives a power cut."""
        entry = msgspec.structs.replace(entry, at=time.time())
        with self._mutex, storage_errors(self.folder):
            os.write(self._file, msgspec.json.encode(entry) + b"\n")
            os.fsync(self._file)
            self.entries.append(entry)

    def standing(self) -> list[Entry]:
        """The runs that count: those not taken back."""
        kept: list[Entry] = []
        for entry in self.entries:
            if entry.undo:
                del kept[max(0, len(kept) - entry.undo) :]
            elif entry.seen is not None:
                kept.append(entry)
        return kept

    def contents(self) -> dict[str, str]:
        """Version -> digest of what it installs, as far as that is known."""
        return {entry.name: entry.content for entry in self.entries if entry.content}

    def undo(self, count: int) -> list[Entry]:
        """Take back the last `count` runs, and what they left, so that they are run again. Returns them."""
        kept = self.standing()
        gone = kept[max(0, len(kept) - count) :]
        if not gone:
            raise UsageError("there is no run to undo; leave --undo out")
        for entry in gone:
            # Other runs of the version lie in the same folder: they are in the journal, and are not asked for again.
            if entry.seen is not None and entry.seen.run_dir.startswith(str(self.folder)):
                shutil.rmtree(entry.seen.run_dir, ignore_errors=True)
        self.add(Entry(undo=len(gone)))
        return gone

    def finish(self, report: Report) -> None:
        """Write the answer."""
        with storage_errors(self.folder):
            _write(self.folder / "report.json", msgspec.json.format(msgspec.json.encode(report), indent=1))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)
        os.close(self._lock_fd)

    def _lock(self) -> None:
        self._lock_fd = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock_fd)
            raise UsageError(f"`{self.folder}` is in use by another reprocheck; give another --out") from None

    def _compare(self) -> None:
        old = _spec(self.folder)
        now = msgspec.json.decode(msgspec.json.encode(self._spec))
        for field in {**old, **now}:
            if old.get(field) != now.get(field):
                before, after = (msgspec.json.encode(side.get(field)).decode()[:120] for side in (old, now))
                raise UsageError(
                    f"`{self.folder}` was begun with another `{field}` ({before}, now {after}); start anew without "
                    "--resume"
                )


def is_bisection(folder: Path) -> bool:
    """Whether this is a bisection's folder, finished or not."""
    try:
        return (folder / "versions").is_dir() or "what" in _spec(folder)
    except StoreError:
        return False


def bisects_in(root: Path) -> list[Path]:
    """Folders of bisections below `root`, newest first; unfinished ones included."""
    found = [path for path in root.iterdir() if (path / "spec.json").is_file()] if root.is_dir() else []
    return sorted(found, key=lambda path: path.name, reverse=True)


def answer_of(folder: Path) -> tuple[str, Report | None]:
    """What was asked about, and the answer; None for a bisection that has none yet. Raises `StoreError`."""
    what = str(_spec(folder).get("what", ""))
    path = folder / "report.json"
    if not path.is_file():
        return what, None
    try:
        return what, msgspec.json.decode(path.read_bytes(), type=Report)
    except (OSError, msgspec.DecodeError) as error:
        raise StoreError(f"`{path}` cannot be read: {error}") from error


def find_unfinished(root: Path, what: str) -> Path:
    """The newest bisection below `root`, with the workload or check `what`, that has no answer yet.

    Raises `UsageError` if there is none.
    """
    folders = sorted(root.iterdir(), reverse=True) if root.is_dir() else []
    for folder in folders:
        unfinished = (folder / "spec.json").is_file() and not (folder / "report.json").exists()
        if unfinished and _spec(folder).get("what") == what:
            return folder
    raise UsageError(f"no unfinished bisection of `{what}` in {BISECTS}; name one with --out, or leave --resume out")


def new_folder(root: Path, workload: str) -> Path:
    """A fresh folder name below `root`."""
    return new_run_folder(root, workload)


def _spec(folder: Path) -> dict[str, Any]:
    try:
        found = msgspec.json.decode((folder / "spec.json").read_bytes())
    except (OSError, msgspec.DecodeError) as error:
        raise StoreError(f"`{folder / 'spec.json'}` cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise StoreError(f"`{folder / 'spec.json'}` is damaged; start anew without --resume")
    return found


def _read(path: Path) -> list[Entry]:
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return []
    found = []
    for line in text.split(b"\n"):
        try:
            found.append(msgspec.json.decode(line, type=Entry))
        except msgspec.DecodeError:
            break
    return found


def _write(path: Path, data: bytes) -> None:
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_bytes(data)
    temporary.replace(path)

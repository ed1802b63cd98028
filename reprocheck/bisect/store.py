"""The cache of environments: a folder each, built once, shared by all who ask for the same; the oldest go first."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from reprocheck.bisect.records import Place, Unavailable
from reprocheck.errors import StoreError
from reprocheck.store.run import storage_errors

__all__ = ["EnvironmentStore", "default_cache", "environment_key"]

FORMAT = 1
_MARK = "reprocheck.json"
_WAIT_S = 0.02


def default_cache(environment: Mapping[str, str]) -> Path:
    """`$XDG_CACHE_HOME/reprocheck`, by default `~/.cache/reprocheck`."""
    base = environment.get("XDG_CACHE_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".cache") / "reprocheck"


def environment_key(facts: Mapping[str, Any]) -> str:
    """A name that is equal for environments built from equal facts."""
    text = msgspec.json.encode({"format": FORMAT, **facts}, order="sorted")
    return hashlib.sha256(text).hexdigest()[:24]


class EnvironmentStore:
    """Environments below one folder. Safe between processes: a lock file each, held while it is in use."""

    def __init__(self, folder: Path, limit: int) -> None:
        """Use `folder` (made if missing), and keep it below `limit` bytes as far as nobody uses what it holds."""
        self._folder = folder / "environments"
        self._limit = limit
        self._held: dict[str, int] = {}
        with storage_errors(folder):
            self._folder.mkdir(parents=True, exist_ok=True)

    def get(self, key: str, build: Callable[[Path], Place | Unavailable]) -> Place | Unavailable:
        """The environment `key`, made by `build(folder)` if it is not there yet. It stays until `close`."""
        folder = self._folder / key
        with storage_errors(self._folder):
            lock = os.open(self._folder / f"{key}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            while True:
                place = self._ready_or_built(folder, lock, build)
                if isinstance(place, Unavailable):
                    os.close(lock)
                    return place
                # Giving up the exclusive lock for a shared one is not atomic: somebody may have trimmed in between.
                fcntl.flock(lock, fcntl.LOCK_SH)
                if (folder / _MARK).exists():
                    break
        except BaseException:
            with contextlib.suppress(OSError):
                os.close(lock)
            raise
        if key in self._held:
            os.close(lock)
        else:
            self._held[key] = lock
        os.utime(folder / _MARK)
        return place

    def scratch(self, name: str) -> Path:
        """A folder of this process's own, for an environment that is not kept."""
        return self._folder / f"{name}-{os.getpid()}-{time.monotonic_ns()}.tmp"

    def close(self) -> None:
        """Let go of all environments, and remove the oldest ones beyond the limit."""
        for lock in self._held.values():
            os.close(lock)
        self._held.clear()
        self.trim()

    def trim(self) -> None:
        """Remove environments that were not used for longest, until what is left fits."""
        marks = []
        for folder in self._folder.iterdir():
            with contextlib.suppress(OSError, msgspec.DecodeError):
                mark = folder / _MARK
                size = msgspec.json.decode(mark.read_bytes())["size"]
                marks.append((mark.stat().st_mtime, folder, int(size)))
        total = sum(size for _, _, size in marks)
        for _, folder, size in sorted(marks):
            if total <= self._limit:
                return
            with self._alone(folder) as alone:
                if alone:
                    shutil.rmtree(folder, ignore_errors=True)
                    total -= size

    @contextlib.contextmanager
    def _alone(self, folder: Path) -> Iterator[bool]:
        """Whether nobody uses the environment; while the block runs, nobody will."""
        lock = os.open(f"{folder}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
        finally:
            os.close(lock)

    def _ready_or_built(
        self, folder: Path, lock: int, build: Callable[[Path], Place | Unavailable]
    ) -> Place | Unavailable:
        """Whoever gets the lock builds; whoever does not waits until it is built, or until the builder gave up."""
        while True:
            if (folder / _MARK).exists():
                fcntl.flock(lock, fcntl.LOCK_SH)
                if (place := _read(folder)) is not None:
                    return place
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(_WAIT_S)
            else:
                return _read(folder) or self._build(folder, build)

    def _build(self, folder: Path, build: Callable[[Path], Place | Unavailable]) -> Place | Unavailable:
        if folder.exists():
            shutil.rmtree(folder)  # left by a process that was killed
        try:
            place = build(folder)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        if isinstance(place, Unavailable):
            shutil.rmtree(folder, ignore_errors=True)
            return place
        mark = {"format": FORMAT, "size": _size(folder), "place": msgspec.to_builtins(place)}
        with storage_errors(folder):
            temporary = folder / f"{_MARK}.tmp"
            temporary.write_bytes(msgspec.json.encode(mark))
            temporary.replace(folder / _MARK)
        return place


def _read(folder: Path) -> Place | None:
    """The finished environment in `folder`; None if there is none."""
    try:
        mark = msgspec.json.decode((folder / _MARK).read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        raise StoreError(f"`{folder}` is damaged ({error}); delete it") from error
    if not isinstance(mark, dict) or mark.get("format") != FORMAT:
        return None
    place = msgspec.convert(mark["place"], Place)
    return place if os.access(place.python, os.X_OK) else None


def _size(folder: Path) -> int:
    """Bytes on disk; a file that hard links share counts by its share."""
    total = 0
    for path, _, files in os.walk(folder):
        for name in files:
            with contextlib.suppress(OSError):
                status = os.lstat(os.path.join(path, name))  # noqa: PTH118 - a Path for each of 50,000 files is slow
                total += status.st_blocks * 512 // status.st_nlink
    return total

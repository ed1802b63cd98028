"""Content-addressed arrays: a file is named by the SHA-256 of all its bytes, so equal outputs are stored once."""

from __future__ import annotations

import hashlib
from pathlib import Path

from reprocheck.errors import StoreError

__all__ = ["ARRAY", "TRACE", "ObjectStore", "digest_file"]

ARRAY = ".safetensors"
TRACE = ".jsonl"

_CHUNK = 1 << 20


def digest_file(path: Path) -> str:
    """`sha256:<hex>` of a file's bytes, as `sha256sum` would print."""
    with path.open("rb") as file:
        return "sha256:" + hashlib.file_digest(file, "sha256").hexdigest()


class ObjectStore:
    """The `objects/` of a run folder. Safe from several threads: a file arrives by rename, whole or not at all."""

    def __init__(self, folder: Path) -> None:
        """`folder` is created when the first object arrives."""
        self._folder = folder

    def path(self, digest: str, suffix: str = ARRAY) -> Path:
        """Where the object lies. Raises `StoreError` for anything that is not a digest."""
        algorithm, _, name = digest.partition(":")
        if algorithm != "sha256" or len(name) != 64 or not set(name) <= set("0123456789abcdef"):
            raise StoreError(f"`{digest[:80]}` is not an object digest; the run folder is damaged")
        return self._folder / name[:2] / f"{name[2:]}{suffix}"

    def take(self, file: Path, suffix: str = ARRAY) -> str:
        """Move `file` into the store (or drop it, if its bytes are there already); returns its digest."""
        digest = digest_file(file)
        target = self.path(digest, suffix)
        if target.exists():
            file.unlink()
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            file.replace(target)
        return digest

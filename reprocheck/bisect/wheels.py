"""What a wheel, or an installed distribution, consists of: read from its metadata, without running anything.

Formats: https://packaging.python.org/en/latest/specifications/binary-distribution-format/ and
https://packaging.python.org/en/latest/specifications/recording-installed-packages/.
"""

from __future__ import annotations

import csv
import hashlib
import zipfile
from collections.abc import Iterable, Mapping
from email.parser import HeaderParser
from functools import cache
from pathlib import Path

from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from reprocheck.errors import StoreError
from reprocheck.model import Struct

__all__ = ["Distribution", "content_digest", "installed_in", "read_wheel", "top_level"]

# Differs between any two versions and says nothing about what they do.
_BOOKKEEPING = {"METADATA", "RECORD", "WHEEL", "INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json"}
_MOST_METADATA = 16 << 20


class Distribution(Struct, frozen=True, kw_only=True):
    """A distribution as its metadata tells it."""

    name: str
    """Canonical."""
    version: str
    requires_python: str = ""
    requires: tuple[str, ...] = ()
    tags: frozenset[str] = frozenset()
    """Empty for an installed one."""
    files: dict[str, str] = {}
    """File -> hash as in RECORD, without what merely names the version or the installer."""
    root: str = ""
    """The folder it is installed in."""

    @property
    def content(self) -> str:
        """Digest of its files."""
        return content_digest(self.files)


def content_digest(files: Mapping[str, str]) -> str:
    """Equal for equal files with equal hashes."""
    digest = hashlib.sha256()
    for path, value in sorted(files.items()):
        digest.update(f"{path}\0{value}\n".encode())
    return digest.hexdigest()


def read_wheel(path: Path) -> Distribution:
    """The distribution in a wheel. Raises `StoreError` for a damaged file."""
    return _read_wheel(path, path.stat().st_mtime_ns)


@cache
def _read_wheel(path: Path, _changed: int) -> Distribution:
    try:
        name, version, _, tags = parse_wheel_filename(path.name)
        with zipfile.ZipFile(path) as archive:
            info = _info_folder(archive.namelist(), str(name))
            metadata, record = (_text(archive, f"{info}/{file}") for file in ("METADATA", "RECORD"))
    except (OSError, zipfile.BadZipFile, KeyError, ValueError, InvalidWheelFilename) as error:
        raise StoreError(f"`{path}` is no readable wheel ({error}); build it again or take it away") from error
    headers = HeaderParser().parsestr(metadata)
    return Distribution(
        name=str(name),
        version=str(version),
        requires_python=headers.get("Requires-Python", ""),
        requires=tuple(headers.get_all("Requires-Dist", [])),
        tags=frozenset(str(tag) for tag in tags),
        files=_files(record.splitlines()),
    )


def _info_folder(names: Iterable[str], name: str) -> str:
    for entry in names:
        folder, slash, _ = entry.partition("/")
        if slash and folder.endswith(".dist-info") and str(canonicalize_name(folder.partition("-")[0])) == name:
            return folder
    raise KeyError("no .dist-info folder")


def _text(archive: zipfile.ZipFile, name: str) -> str:
    if archive.getinfo(name).file_size > _MOST_METADATA:
        raise ValueError(f"{name} is too large")
    return archive.read(name).decode("utf-8")


def installed_in(folders: Iterable[Path]) -> dict[str, Distribution]:
    """Distributions installed in these folders, the first one of each name, by canonical name."""
    found: dict[str, Distribution] = {}
    for folder in folders:
        for info in sorted(folder.glob("*.dist-info")):
            try:
                headers = HeaderParser().parsestr((info / "METADATA").read_text("utf-8", "replace"))
                record = (info / "RECORD").read_text("utf-8", "replace") if (info / "RECORD").exists() else ""
            except OSError:
                continue  # being removed, or no distribution
            if headers.get("Name") and headers.get("Version"):
                name = str(canonicalize_name(headers["Name"]))
                found.setdefault(
                    name,
                    Distribution(
                        name=name,
                        version=headers["Version"],
                        requires_python=headers.get("Requires-Python", ""),
                        requires=tuple(headers.get_all("Requires-Dist", [])),
                        files=_files(record.splitlines()),
                        root=str(folder),
                    ),
                )
    return found


def _files(record: Iterable[str]) -> dict[str, str]:
    """Path -> hash of a RECORD, without byte code, scripts (they hold the environment's path) and bookkeeping."""
    found = {}
    for row in csv.reader(record):
        if len(row) < 2 or not row[1] or row[0].endswith(".pyc") or row[0].startswith(("../", "/")):
            continue
        folder, _, file = row[0].partition("/")
        if folder.endswith(".dist-info"):
            if file in _BOOKKEEPING or "/" in file:
                continue
            found[f".dist-info/{file}"] = row[1]
        else:
            found[row[0]] = row[1]
    return found


def top_level(files: Iterable[str]) -> tuple[str, ...]:
    """Top-level modules among a distribution's files, sorted."""
    names = set()
    for path in files:
        first, slash, _ = path.partition("/")
        if slash:
            name = first
        elif first.endswith((".py", ".so", ".pyd")):
            name = first.partition(".")[0]
        else:
            continue
        if name.isidentifier():
            names.add(name)
    return tuple(sorted(names))

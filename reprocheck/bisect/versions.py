"""Which versions of a package there are: in wheel folders, by their files' names, and on indexes, asked through pip."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import InvalidVersion, Version

from reprocheck.bisect.installers import Pip, Sources
from reprocheck.bisect.records import Candidate, Unavailable
from reprocheck.bisect.wheels import read_wheel
from reprocheck.errors import NothingSelectedError, StoreError, UsageError
from reprocheck.model import Struct

__all__ = ["Ends", "Versions", "folder_files", "list_versions", "select"]


class Versions(Struct, frozen=True, kw_only=True):
    """All versions of a package, oldest first."""

    package: str
    candidates: tuple[Candidate, ...]
    unavailable: dict[str, Unavailable] = {}
    """Those of which it is known already that they can't be installed here."""
    notes: tuple[str, ...] = ()


class Ends(Struct, frozen=True, kw_only=True):
    """The part of a history that is searched, oldest first, and whether its old end was given."""

    candidates: tuple[Candidate, ...]
    walk: bool
    """True when no old end was given, so that one is looked for."""


def list_versions(package: str, sources: Sources, pip: Pip | None, *, yanked: bool = False) -> Versions:
    """The versions of `package` in wheel folders and, unless `no_index`, on indexes.

    Raises:
        UsageError: no such package, or an index to be asked and no pip to ask it.
    """
    name = str(canonicalize_name(package))
    files: dict[Version, list[Path]] = {}
    for folder in (Path(place.removeprefix("file://")) for place in sources.find_links):
        for version, path in folder_files(folder, name):
            if sources.build or path.suffix == ".whl":
                files.setdefault(version, []).append(path)
    known: dict[Version, str] = {version: str(version) for version in files}
    unavailable: dict[str, Unavailable] = {}
    if not sources.no_index:
        if pip is None:
            raise UsageError(
                "there is no pip to ask an index for versions; install it, or search a folder of wheels with "
                "--no-index --find-links DIR"
            )
        listing = pip.versions(package)
        for text in (*listing.usable, *listing.python, *(listing.yanked if yanked else ())):
            if (found := _version(text)) is not None:
                known.setdefault(found, text)
        for text, wanted in listing.python.items():
            if (found := _version(text)) is not None and found not in files:
                unavailable[known[found]] = Unavailable(kind="python", reason=f"requires Python {wanted}")
    if not known:
        raise UsageError(
            f"there is no wheel of `{package}` in {', '.join(sources.find_links) or 'no folder at all'}; check the "
            "name and --find-links"
        )
    notes: list[str] = []
    candidates = [
        _candidate(name, known[version], files.get(version, []), notes)
        for version in sorted(known)
    ]  # fmt: skip
    return Versions(package=name, candidates=tuple(candidates), unavailable=unavailable, notes=tuple(notes))


def folder_files(folder: Path, name: str) -> Iterable[tuple[Version, Path]]:
    """(version, file) of every distribution of `name` in a folder, in order of file name."""
    if not folder.is_dir():
        return
    for path in sorted(folder.iterdir()):
        try:
            if path.suffix == ".whl":
                found, version, _, _ = parse_wheel_filename(path.name)
            elif path.name.endswith((".tar.gz", ".zip")):
                found, version = parse_sdist_filename(path.name)
            else:
                continue
        except (InvalidWheelFilename, InvalidSdistFilename, InvalidVersion):
            continue  # something else lies there too
        if str(found) == name:
            yield version, path


def _candidate(name: str, version: str, paths: Sequence[Path], notes: list[str]) -> Candidate:
    contents = set()
    for path in paths:
        if path.suffix == ".whl":
            try:
                contents.add(read_wheel(path).content)
            except StoreError as error:
                # Left to the installer, which will say the same and make it untestable.
                notes.append(str(error))
                contents.add(str(path))
        else:
            contents.add(str(path))
    pure = all(path.name.endswith("-none-any.whl") for path in paths)
    if len(contents) > 1 and pure:
        files = ", ".join(str(path) for path in paths)
        notes.append(
            f"{name} {version} is there {len(paths)} times with different contents ({files}); see which is taken"
        )
    return Candidate(
        name=version,
        requirement=f"{name}=={version}",
        wheels=tuple(str(path) for path in paths),
        content=next(iter(contents)) if len(contents) == 1 and pure else "",
    )


def select(versions: Versions, good: str | None, bad: str | None, *, pre: bool, find_fix: bool = False) -> Ends:
    """The versions from one end to the other.

    Without a bad end the newest one is it; without a good end everything older is offered, to be searched for one.
    Pre-releases are left out unless asked for or named as an end. With `find_fix` good is the newer end.

    Raises:
        UsageError: an end that isn't there, or ends in the wrong order.
        NothingSelectedError: fewer than two versions remain.
    """
    old, new = (bad, good) if find_fix else (good, bad)
    places = {Version(candidate.name): index for index, candidate in enumerate(versions.candidates)}
    first = _place(old, places, versions) if old else 0
    last = _place(new, places, versions) if new else len(versions.candidates) - 1
    if not new:
        finals = [i for i, one in enumerate(versions.candidates) if pre or not Version(one.name).is_prerelease]
        last = finals[-1] if finals else last
    if old and new and first > last:
        if find_fix:
            raise UsageError(
                f"with --find-fix the good end is the newer one, but {good} is older than {bad}; swap them"
            )
        raise UsageError(
            f"the good end {good} is newer than the bad end {bad}; to find the version that fixed it, add --find-fix"
        )
    chosen = [
        candidate
        for index, candidate in enumerate(versions.candidates[first : last + 1], first)
        if pre
        or (old and index == first)
        or (new and index == last)
        or not Version(candidate.name).is_prerelease
    ]  # fmt: skip
    if len(chosen) < 2:
        raise NothingSelectedError(
            f"there is nothing to search: {len(chosen)} version of `{versions.package}` between the ends; "
            "name others with --good and --bad, or allow pre-releases with --pre"
        )
    return Ends(candidates=tuple(chosen), walk=not old)


def _place(text: str, places: dict[Version, int], versions: Versions) -> int:
    version = _version(text)
    if version is None:
        raise UsageError(f"`{text}` is no version number; the versions of `{versions.package}` are {_some(versions)}")
    if version not in places:
        raise UsageError(f"there is no version {text} of `{versions.package}` here; there are {_some(versions)}")
    return places[version]


def _some(versions: Versions) -> str:
    names = [candidate.name for candidate in versions.candidates]
    return ", ".join(names if len(names) <= 12 else [*names[:4], "…", *names[-7:]])


def _version(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None

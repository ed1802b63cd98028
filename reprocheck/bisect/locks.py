"""Lock files as exact pins: requirements files, `pip freeze`, uv.lock, pylock.toml; and what differs between two.

Formats: https://pip.pypa.io/en/stable/reference/requirements-file-format/, https://docs.astral.sh/uv/concepts/projects/layout/
and https://packaging.python.org/en/latest/specifications/pylock-toml/.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from packaging.markers import InvalidMarker, Marker
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from reprocheck.errors import UsageError
from reprocheck.model import Struct

__all__ = ["Change", "Pin", "changes", "mixture", "read_lock"]

_NONE = "none"


class Pin(Struct, frozen=True, kw_only=True):
    """One package, held at one version."""

    name: str
    """Canonical."""
    version: str
    """Its version, or where it comes from if that is no index."""
    requirement: str
    """What an installer is asked for."""


class Change(Struct, frozen=True, kw_only=True):
    """A package that differs between two locks."""

    name: str
    before: str
    after: str


Lock = Mapping[str, Pin]


def read_lock(path: Path, markers: Mapping[str, str]) -> dict[str, Pin]:
    """The pins of a lock file that hold for the interpreter with these `markers`, by name.

    Raises:
        UsageError: the file can't be read, is no lock file, or leaves a version open.
    """
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the lock file `{path}` ({error}); name a readable one") from error
    if path.suffix in (".lock", ".toml"):
        try:
            document = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise UsageError(f"`{path}` is not valid TOML ({error}); correct it") from error
        pins = list(_pylock(document, path, markers) if "packages" in document else _uv_lock(document, path, markers))
    else:
        pins = list(_requirements(text, path, markers, ()))
    if not pins:
        raise UsageError(
            f"`{path}` holds no pins; name a requirements file, `pip freeze` output, uv.lock or pylock.toml"
        )
    found: dict[str, Pin] = {}
    for pin in pins:
        other = found.setdefault(pin.name, pin)
        if other.requirement != pin.requirement:
            raise UsageError(f"`{path}` holds `{pin.name}` at {other.version} and at {pin.version}; keep one")
    return found


def changes(good: Lock, bad: Lock) -> tuple[Change, ...]:
    """What differs, by name."""
    found = []
    for name in sorted({*good, *bad}):
        before, after = good.get(name), bad.get(name)
        if (before and before.requirement) != (after and after.requirement):
            found.append(
                Change(name=name, before=before.version if before else _NONE, after=after.version if after else _NONE)
            )
    return tuple(found)


def mixture(good: Lock, bad: Lock, names: frozenset[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(pins, constraints) of the good lock with some packages as in the bad one.

    A package that only one of the locks holds may be needed by what the mixture holds, or not: it is no pin, but if it
    is needed it comes at that lock's version.
    """
    pins, constraints = [], []
    for name in sorted({*good, *bad}):
        pin = (bad if name in names else good).get(name)
        if pin is not None:
            pins.append(pin.requirement)
        else:
            other = (good if name in names else bad)[name]
            # A constraint can't say where a package comes from.
            constraints += [other.requirement] if " @ " not in other.requirement else []
    return tuple(pins), tuple(constraints)


def _pin(name: str, version: str, url: str = "") -> Pin:
    canonical = str(canonicalize_name(name))
    requirement = f"{canonical} @ {url}" if url else f"{canonical}=={version}"
    return Pin(name=canonical, version=version or url, requirement=requirement)


def _holds(marker: str | None, markers: Mapping[str, str], where: str) -> bool:
    if not marker:
        return True
    try:
        return Marker(marker).evaluate({**markers, "extras": frozenset(), "dependency_groups": frozenset()})
    except InvalidMarker as error:
        raise UsageError(f"{where} has an invalid marker `{marker}` ({error}); make the lock file anew") from error


def _requirements(text: str, path: Path, markers: Mapping[str, str], above: Sequence[Path]) -> Iterator[Pin]:
    for line in re.sub(r"\\\r?\n", " ", text).splitlines():
        line = re.sub(r"(^|\s)#.*$", "", line).strip()  # noqa: PLW2901
        option, _, value = line.partition(" ")
        option, equals, inline = option.partition("=") if option.startswith("--") else (option, "", "")
        value = (inline if equals else value).strip()
        if not line or option in ("-c", "--constraint"):
            continue
        if option in ("-r", "--requirement"):
            other = (path.parent / value).resolve()
            if other in above:
                raise UsageError(f"`{path}` includes `{value}`, which includes it in turn; take one of them out")
            yield from _requirements(_text(other), other, markers, (*above, path.resolve()))
            continue
        if option in ("-e", "--editable"):
            name = re.search(r"[#&]egg=([\w.\-]+)", value)
            base = name[1] if name else re.split(r"[@#]", value.rstrip("/").rpartition("/")[2])[0].removesuffix(".git")
            yield _pin(base, "", value if "://" in value else f"file://{(path.parent / value).resolve()}")
            continue
        if option.startswith("-"):
            continue  # where packages come from is said on the command line
        yield from _requirement(re.split(r"\s+--", line)[0].strip(), path, markers)


def _requirement(line: str, path: Path, markers: Mapping[str, str]) -> Iterator[Pin]:
    try:
        requirement = Requirement(line)
    except InvalidRequirement:
        raise UsageError(f"`{path}` holds `{line[:80]}`, which is no requirement; make the lock file anew") from None
    if not _holds(str(requirement.marker) if requirement.marker else None, markers, f"`{line}` of `{path}`"):
        return
    if requirement.url:
        yield _pin(requirement.name, "", requirement.url)
        return
    exact = [one for one in requirement.specifier if one.operator in ("==", "===") and not one.version.endswith(".*")]
    if len(exact) != 1:
        raise UsageError(
            f"`{path}` leaves the version of `{requirement.name}` open (`{line[:80]}`); a lock pins with ==, "
            "as `pip freeze` or `uv pip compile` write it"
        )
    yield _pin(requirement.name, exact[0].version)


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the lock file `{path}` ({error}); name a readable one") from error


def _pylock(document: Mapping[str, Any], path: Path, markers: Mapping[str, str]) -> Iterator[Pin]:
    for package in document["packages"]:
        if not _holds(package.get("marker"), markers, f"`{package.get('name')}` of `{path}`"):
            continue
        url = ""
        if "vcs" in package:
            vcs = package["vcs"]
            url = f"{vcs.get('type', 'git')}+{vcs.get('url', '')}@{vcs.get('commit-id', '')}"
        elif "archive" in package:
            url = package["archive"].get("url", "")
        elif "directory" in package:
            url = (path.parent / package["directory"]["path"]).resolve().as_uri()
        yield _pin(package["name"], package.get("version", ""), url)


def _uv_lock(document: Mapping[str, Any], path: Path, markers: Mapping[str, str]) -> Iterator[Pin]:
    """What the lock's own projects need here, followed through its dependencies and their markers."""
    packages: dict[str, list[Mapping[str, Any]]] = {}
    for package in document.get("package", ()):
        if any(_holds(one, markers, f"`{path}`") for one in package.get("resolution-markers", [None])):
            packages.setdefault(str(canonicalize_name(package["name"])), []).append(package)
    own = [one for items in packages.values() for one in items if {"virtual", "editable"} & set(one.get("source", ()))]
    todo = list(_needs(own, dev=True)) or [{"name": name} for name in packages]
    seen: set[tuple[str, str]] = set()
    while todo:
        edge = todo.pop()
        name = str(canonicalize_name(edge["name"]))
        if not _holds(edge.get("marker"), markers, f"`{name}` of `{path}`"):
            continue
        wanted = [one for one in packages.get(name, ()) if edge.get("version") in (None, one.get("version"))]
        extras = tuple(edge.get("extra", ()))
        for package in wanted:
            key = (name, ",".join(extras))
            if key not in seen:
                seen.add(key)
                todo += _needs([package], extras=extras)
                if package not in own:
                    yield _uv_pin(package, path)


def _needs(
    packages: Sequence[Mapping[str, Any]], *, extras: Sequence[str] = (), dev: bool = False
) -> Iterator[Mapping[str, Any]]:
    for package in packages:
        yield from package.get("dependencies", ())
        for extra in extras:
            yield from package.get("optional-dependencies", {}).get(extra, ())
        if dev:
            yield from package.get("dev-dependencies", {}).get("dev", ())


def _uv_pin(package: Mapping[str, Any], path: Path) -> Pin:
    source = package.get("source", {})
    url = source.get("url", "")
    if "git" in source:
        url = f"git+{source['git'].replace('#', '@', 1) if '#' in source['git'] else source['git']}"
        url = re.sub(r"\?[^@]*", "", url)
    for kind in ("directory", "path", "editable"):
        if kind in source:
            url = (path.parent / source[kind]).resolve().as_uri()
    return _pin(package["name"], package.get("version", ""), url)

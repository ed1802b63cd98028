"""From a version to an environment in which it, and nothing else, differs from its neighbours'.

Two kinds of base. *Inherited*: everything installed for the interpreter stays visible behind the new environment, as
with `--system-site-packages` but for a virtual environment too, so that only the package itself is exchanged and
nothing large is installed again. *Clean*: nothing but what is asked for and what that needs.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from reprocheck.bisect.installers import Installer, Requirements, Resolution
from reprocheck.bisect.interpreter import Interpreter, wheel_tags
from reprocheck.bisect.records import Candidate, Place, Unavailable
from reprocheck.bisect.store import EnvironmentStore, environment_key
from reprocheck.bisect.wheels import Distribution, content_digest, installed_in, read_wheel, top_level
from reprocheck.errors import StoreError, UsageError

__all__ = ["PackageEnvironments", "parse_requirement", "unmet"]

_INHERIT = "_reprocheck_inherit.pth"


def parse_requirement(text: str) -> Requirement:
    """A requirement as in `--with`. Raises `UsageError` with the text."""
    try:
        return Requirement(text)
    except InvalidRequirement as error:
        first = str(error).splitlines()[0]
        raise UsageError(f"`{text}` is no requirement ({first}); write e.g. --with 'torch==2.7.0'") from None


class PackageEnvironments:
    """Environments for the versions of one package."""

    def __init__(
        self,
        package: str,
        interpreter: Interpreter,
        installer: Installer,
        store: EnvironmentStore,
        *,
        inherit: bool,
        extra: Sequence[str] = (),
        constraints: Sequence[str] = (),
        sources: Mapping[str, object] | None = None,
        yanked: bool = True,
        jobs: int = 4,
    ) -> None:
        """`extra` are further requirements; `sources`, where packages come from, is part of what a cache entry is."""
        self._package = package
        self._interpreter = interpreter
        self._installer = installer
        self._store = store
        self._inherit = inherit
        self._constraints = tuple(constraints)
        self._sources = dict(sources or {})
        self._yanked = yanked
        self._jobs = jobs
        self._resolutions: dict[str, Resolution | Unavailable] = {}
        self._lock = threading.Lock()
        self._probe: Path | None = None
        inherited = {name: version for name, version in interpreter.installed.items() if name != package}
        self._inherited = inherited if inherit else {}
        # What is asked for and is there already need not be installed again.
        self._extra = tuple(text for text in extra if not self._satisfied(parse_requirement(text)))
        asked = {canonicalize_name(parse_requirement(text).name) for text in self._extra}
        self._behind = {name: version for name, version in self._inherited.items() if name not in asked}

    def preflight(self, candidates: Sequence[Candidate]) -> dict[str, Unavailable]:
        """Which of the versions can't be installed, found without installing anything.

        By dry runs where they are cheap, else by what wheels in folders say of themselves.
        """
        if not self._installer.previews:
            tags = wheel_tags(self._interpreter)
            results: Sequence[object] = [_unfit(candidate, tags, self._interpreter.version) for candidate in candidates]
        else:
            with ThreadPoolExecutor(self._jobs, thread_name_prefix="preflight") as pool:
                results = list(pool.map(self._resolve, candidates))
        return {
            candidate.name: result
            for candidate, result in zip(candidates, results, strict=True)
            if isinstance(result, Unavailable)
        }

    def prepare(self, candidate: Candidate) -> Place | Unavailable:
        """The environment of a version; made if it is not there.

        Raises `HarnessError` when it can't be had for a reason that has nothing to do with the version.
        """
        resolution = self._resolve(candidate) if self._installer.previews else None
        if isinstance(resolution, Unavailable):
            return resolution
        key = environment_key(
            {
                "installer": self._installer.name,
                "python": [self._interpreter.real, self._interpreter.version, self._interpreter.prefix],
                "inherited": self._inherited,
                "site": self._interpreter.site if self._inherit else (),
                "wanted": self._wanted(candidate),
                "constraints": self._constraints,
                "resolved": resolution.packages if resolution else {},
                "sources": self._sources,
                "files": _fingerprints(candidate.wheels),
                "tree": candidate.content if candidate.commit else "",
            }
        )
        return self._store.get(key, lambda folder: self._build(candidate, folder))

    def _wanted(self, candidate: Candidate) -> tuple[str, ...]:
        return (candidate.requirement, *self._extra)

    def _requirements(self, candidate: Candidate) -> Requirements:
        return Requirements(
            package=self._package,
            wanted=self._wanted(candidate),
            constraints=self._constraints,
            inherited=self._behind,
        )

    def _resolve(self, candidate: Candidate) -> Resolution | Unavailable:
        if candidate.name not in self._resolutions:
            found = self._installer.resolve(self._requirements(candidate), self._empty())
            if isinstance(found, Resolution) and self._package in found.yanked and not self._yanked:
                found = Unavailable(kind="yanked", reason="its makers took it back; use it all the same with --yanked")
            self._resolutions[candidate.name] = found
        return self._resolutions[candidate.name]

    def _empty(self) -> Path:
        """An environment with nothing in it, to resolve in."""
        with self._lock:
            if self._probe is None:
                key = environment_key(
                    {"empty": [self._installer.name, self._interpreter.real, self._interpreter.version]}
                )
                place = self._store.get(key, self._build_empty)
                assert isinstance(place, Place)  # noqa: S101 - nothing is installed that could be unavailable
                self._probe = Path(place.folder)
            return self._probe

    def _build_empty(self, folder: Path) -> Place:
        self._installer.create(folder, self._interpreter.executable)
        return Place(python=str(folder / "bin" / "python"), folder=str(folder), content="", installed={})

    def _build(self, candidate: Candidate, folder: Path) -> Place | Unavailable:
        self._installer.create(folder, self._interpreter.executable)
        packages = next(folder.glob("lib/python*/site-packages"))
        if self._inherit:
            lines = [f"import site; site.addsitedir({path!r})\n" for path in self._interpreter.site]
            (packages / _INHERIT).write_text("".join(lines), "utf-8")
        failed = self._installer.install(self._requirements(candidate), folder)
        if failed is not None:
            return failed
        found = installed_in([packages])
        visible = {**self._inherited, **{name: one.version for name, one in found.items()}}
        missing = unmet(found.values(), visible, self._interpreter.markers)
        if missing and self._inherit:
            has = {name: visible.get(str(canonicalize_name(Requirement(name).name)), "none") for name in missing}
            needs = ", ".join(f"{text} (there is {version})" for text, version in has.items())
            return Unavailable(kind="dependency", reason=f"needs {needs}; give it with --with, or use --base clean")
        return self._place(candidate, folder, packages, found)

    def _place(
        self, candidate: Candidate, folder: Path, packages: Path, found: Mapping[str, Distribution]
    ) -> Place | Unavailable:
        own = found.get(self._package)
        asked = parse_requirement(candidate.requirement).specifier
        if own is None or not asked.contains(own.version, prereleases=True):
            got = own.version if own else "nothing"
            return Unavailable(
                kind="other-version", reason=f"{candidate.requirement} was asked for, {got} was installed"
            )
        files = {f"{name}/{path}": value for name, one in found.items() for path, value in one.files.items()}
        modules = top_level(own.files)
        return Place(
            python=str(folder / "bin" / "python"),
            folder=str(folder),
            content=content_digest(files),
            installed={name: one.version for name, one in found.items()},
            inherited=self._inherited,
            files=own.files,
            root=str(packages),
            modules=modules,
            notes=self._leaks(modules),
        )

    def _leaks(self, modules: Sequence[str]) -> tuple[str, ...]:
        """Modules of the interpreter's own copy of the package that this version has not, and which stay visible."""
        if not self._inherit or self._package not in self._interpreter.installed:
            return ()
        behind = installed_in(Path(path) for path in self._interpreter.site).get(self._package)
        left = sorted(set(top_level(behind.files)) - set(modules)) if behind else []
        if not left:
            return ()
        copy = f"the interpreter's own {self._package} {behind.version if behind else ''}"
        return (f"versions without {', '.join(left)} see that of {copy}; --base clean avoids it",)

    def _satisfied(self, requirement: Requirement) -> bool:
        version = self._inherited.get(str(canonicalize_name(requirement.name)))
        return version is not None and not requirement.url and _accepts(requirement.specifier, version)


def _unfit(candidate: Candidate, tags: frozenset[str], python: str) -> Unavailable | None:
    """Why none of the candidate's own wheels fits; None if one does, or if it has none here."""
    found: Unavailable | None = None
    for path in candidate.wheels:
        if not path.endswith(".whl"):
            return None
        try:
            wheel = read_wheel(Path(path))
        except StoreError as error:
            found = Unavailable(kind="other", reason=str(error))
            continue
        if not wheel.tags & tags:
            found = Unavailable(kind="platform", reason=f"its wheel is for {', '.join(sorted(wheel.tags))}")
        elif wheel.requires_python and not _accepts(SpecifierSet(wheel.requires_python), python):
            found = Unavailable(kind="python", reason=f"requires Python {wheel.requires_python}")
        else:
            return None
    return found


def unmet(installed: Iterable[Distribution], visible: Mapping[str, str], markers: Mapping[str, str]) -> tuple[str, ...]:
    """Requirements of `installed` that the `visible` versions don't meet, extras left out, in order of appearance."""
    found: dict[str, None] = {}
    for one in installed:
        for text in one.requires:
            try:
                requirement = Requirement(text)
            except InvalidRequirement:
                continue  # old metadata; installers pass over it too
            if requirement.marker is not None and not requirement.marker.evaluate(dict(markers)):
                continue
            version = visible.get(str(canonicalize_name(requirement.name)))
            if version is None or not _accepts(requirement.specifier, version):
                requirement.marker = None
                found.setdefault(str(requirement))
    return tuple(found)


def _accepts(specifier: SpecifierSet, version: str) -> bool:
    return specifier.contains(version, prereleases=True)


def _fingerprints(files: Sequence[str]) -> list[tuple[str, int, int]]:
    """What tells whether a wheel in a folder was built anew."""
    found = []
    for file in files:
        status = Path(file).stat()
        found.append((file, status.st_size, status.st_mtime_ns))
    return found

"""The programs that install: uv where there is one, pip otherwise. Each is asked the same few things.

What pip is configured with (indexes, wheel folders, constraints) is the user's answer to where packages come from.
uv does not read it, so it is handed over; a setting that can't be is a reason to take pip.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Literal, Protocol

import msgspec
from packaging.utils import canonicalize_name

from reprocheck.bisect import pip_settings
from reprocheck.bisect.interpreter import Interpreter
from reprocheck.bisect.reasons import out_of_reach, unavailable
from reprocheck.bisect.records import Unavailable
from reprocheck.engine.process import Exit, run_process
from reprocheck.errors import HarnessError, UsageError
from reprocheck.model import Struct

__all__ = ["Installer", "Pip", "Requirements", "Resolution", "Sources", "Uv", "choose"]

SECONDS = 1800.0
"""An installation may build from source and download gigabytes; this ends one that hangs."""
Choice = Literal["auto", "uv", "pip"]


class Sources(Struct, frozen=True, kw_only=True):
    """Where packages come from, as the user said."""

    index_url: str | None = None
    extra_index_urls: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    no_index: bool = False
    pre: bool = False
    build: bool = False
    """Whether packages may be built from source, which runs code of theirs."""

    def arguments(self) -> list[str]:
        """As options that uv and pip share."""
        found = [] if self.build else ["--only-binary", ":all:"]
        found += ["--no-index"] if self.no_index else []
        found += ["--index-url", self.index_url] if self.index_url else []
        for url in self.extra_index_urls:
            found += ["--extra-index-url", url]
        for place in self.find_links:
            found += ["--find-links", place]
        return found


class Requirements(Struct, frozen=True, kw_only=True):
    """What to install."""

    package: str
    """The one the question is about, for messages."""
    wanted: tuple[str, ...]
    constraints: tuple[str, ...] = ()
    inherited: dict[str, str] = {}
    """Distributions (with versions) that are there already and must not be installed again."""
    deps: bool = True


class Resolution(Struct, frozen=True, kw_only=True):
    """What would be installed."""

    packages: dict[str, str]
    yanked: tuple[str, ...] = ()
    """Those of them that their makers withdrew."""


class Installer(Protocol):
    """What every installer can do. `stop` ends a running one."""

    name: str
    previews: bool
    """True when `resolve` is cheap enough to ask it for every version beforehand."""

    @property
    def version(self) -> str:
        """Its version, for the record."""

    def resolve(self, requirements: Requirements, venv: Path) -> Resolution | Unavailable:
        """What `requirements` come to in the (empty) environment `venv`.

        Raises `HarnessError` when it can't be asked.
        """

    def create(self, venv: Path, python: str) -> None:
        """Make an empty environment. Raises `HarnessError`."""

    def install(self, requirements: Requirements, venv: Path) -> Unavailable | None:
        """Install, or say why not. Raises `HarnessError` when the reason has nothing to do with the packages."""


class _Program:
    """Runs one program with the user's environment."""

    def __init__(self, environment: Mapping[str, str], stop: threading.Event) -> None:
        self.environment = dict(environment)
        self._stop = stop

    def run(self, argv: Sequence[str]) -> Exit:
        end = run_process(argv, env=self.environment, cwd=Path.cwd(), timeout=SECONDS, stop=self._stop)
        if end.interrupted:
            raise HarnessError("interrupted")
        if end.timed_out:
            raise HarnessError(f"`{Path(argv[0]).name}` did not end within {SECONDS:.0f} s: {' '.join(argv[1:6])} …")
        return end


def _failure(end: Exit, package: str, program: str) -> Unavailable:
    text = f"{end.stdout.text}\n{end.stderr.text}"
    if out_of_reach(text) or end.status < 0:
        last = end.stderr.text.strip().rpartition("\n")[2]
        raise HarnessError(
            f"{program} could not reach what it needs for `{package}`: {last or f'status {end.status}'}; "
            "nothing is concluded from that, try again with --resume"
        )
    return unavailable(text, package)


class Uv:
    """uv: environments in milliseconds, packages by hard links from its cache."""

    name = "uv"
    previews = True

    def __init__(
        self,
        program: str,
        sources: Sources,
        environment: Mapping[str, str],
        stop: threading.Event,
        pip_settings: Sequence[str] = (),
    ) -> None:
        """`pip_settings`: options that hand over what pip is configured with."""
        self._run = _Program(environment, stop)
        self.program = program
        # Several indexes are one to pip; uv would stop at the first that knows a name, and so miss versions.
        strategy = ["--index-strategy", "unsafe-best-match"] if sources.extra_index_urls or pip_settings else []
        self._sources = [*sources.arguments(), *pip_settings, *strategy]
        self._pre = sources.pre
        said = self._run.run([program, "--version"])
        self.version = said.stdout.text.split()[1] if said.status == 0 else "unknown"

    def create(self, venv: Path, python: str) -> None:
        """An environment without pip; `python` is given by its absolute path, so that nothing is searched for."""
        end = self._run.run([self.program, "venv", "--quiet", "--no-project", "--python", python, str(venv)])
        if end.status:
            raise HarnessError(f"uv cannot make an environment from `{python}`: {_last(end)}; check --python")

    def resolve(self, requirements: Requirements, venv: Path) -> Resolution | Unavailable:
        """A dry run."""
        end = self._install(requirements, venv, "--dry-run", "--output-format", "json")
        if end.status:
            return _failure(end, requirements.package, "uv")
        document = msgspec.json.decode(end.stdout.text)
        packages = {
            str(canonicalize_name(change["name"])): str(change.get("version") or change.get("url", ""))
            for change in document["changes"]
            if change.get("action") in ("installed", "reinstalled", "updated")
        }
        yanked = [name for name in packages if f"`{name}=={packages[name]}` is yanked" in end.stderr.text]
        return Resolution(packages=packages, yanked=tuple(yanked))

    def install(self, requirements: Requirements, venv: Path) -> Unavailable | None:
        """Install for real."""
        end = self._install(requirements, venv, "--quiet")
        return _failure(end, requirements.package, "uv") if end.status else None

    def _install(self, requirements: Requirements, venv: Path, *options: str) -> Exit:
        argv = [self.program, "pip", "install", "--python", str(venv / "bin" / "python"), *self._sources, *options]
        argv += ["--prerelease", "allow"] if self._pre else []
        argv += [] if requirements.deps else ["--no-deps"]
        with _files(requirements) as files:
            return self._run.run([*argv, *files, *requirements.wanted])


class Pip:
    """pip: everywhere, and slower. Takes what the environment inherits into account by itself."""

    name = "pip"
    previews = False

    def __init__(
        self,
        python: str,
        sources: Sources,
        environment: Mapping[str, str],
        stop: threading.Event,
        *,
        host: Sequence[str],
    ) -> None:
        """`host`: the command of a pip that may work on another interpreter's environment."""
        self._run = _Program(environment, stop)
        self._python = python
        self._host = list(host)
        self._sources = [*sources.arguments(), *(["--pre"] if sources.pre else [])]

    @cached_property
    def version(self) -> str:
        """Asked when it is wanted: pip takes its time."""
        said = self._run.run([*self._host, "--version"])
        return said.stdout.text.split()[1] if said.status == 0 else "unknown"

    def create(self, venv: Path, python: str) -> None:
        """An environment without pip in it: installing that takes longer than all the rest."""
        end = self._run.run([python, "-m", "venv", "--without-pip", str(venv)])
        if end.status:
            raise HarnessError(f"`{python}` cannot make an environment: {_last(end)}; check --python")

    def resolve(self, requirements: Requirements, venv: Path) -> Resolution | Unavailable:
        """A dry run, with a report."""
        end = self._install(requirements, venv, "--dry-run", "--quiet", "--report", "-")
        if end.status:
            return _failure(end, requirements.package, "pip")
        items = msgspec.json.decode(end.stdout.text)["install"]
        packages = {str(canonicalize_name(item["metadata"]["name"])): item["metadata"]["version"] for item in items}
        yanked = [str(canonicalize_name(item["metadata"]["name"])) for item in items if item.get("is_yanked")]
        return Resolution(packages=packages, yanked=tuple(yanked))

    def install(self, requirements: Requirements, venv: Path) -> Unavailable | None:
        """The packages asked for into this environment, whatever it inherits; then what they need and don't find."""
        first = msgspec.structs.replace(requirements, deps=False)
        # Not quiet: the sides of a conflict are told at pip's ordinary level only.
        end = self._install(first, venv, "--ignore-installed")
        if end.status == 0 and requirements.deps:
            end = self._install(requirements, venv)
        return _failure(end, requirements.package, "pip") if end.status else None

    def _install(self, requirements: Requirements, venv: Path, *options: str) -> Exit:
        argv = [*self._host, "--python", str(venv / "bin" / "python"), "install", "--no-input"]
        argv += [*self._sources, *options]
        argv += [] if requirements.deps else ["--no-deps"]
        # pip sees what is inherited by itself; held at its version, nothing is installed over it.
        pins = tuple(f"{name}=={version}" for name, version in requirements.inherited.items())
        held = msgspec.structs.replace(requirements, inherited={}, constraints=(*requirements.constraints, *pins))
        with _files(held) as files:
            return self._run.run([*argv, *files, *requirements.wanted])

    def versions(self, package: str) -> Listing:
        """All versions that indexes and folders have. Raises `UsageError` if there is no such package.

        Asked by requiring a version that can't exist: unlike `pip index versions`, the answer names the versions
        that were withdrawn and those that ask for another Python.
        """
        venvless = [*self._host, "--python", self._python, "install", "--dry-run", "--no-deps", "--no-input"]
        end = self._run.run([*venvless, *self._sources, "--pre", f"{package}===0+none"])
        text = end.stderr.text
        if out_of_reach(text):
            _failure(end, package, "pip")
        found = re.search(r"\(from versions: ([^)]*)\)", text)
        usable = [] if found is None or found[1] == "none" else found[1].split(", ")
        yanked = _listed("yanked versions", text, ", ")
        other = _listed("versions that require a different python version", text, "; ")
        python = dict(item.partition(" Requires-Python ")[::2] for item in other)
        if not (usable or yanked or python):
            raise UsageError(
                f"there is no package `{package}`{_hint(self._sources)} where packages come from here; correct the "
                "name, or name an index with --index-url or a folder of wheels with --find-links"
            )
        return Listing(usable=tuple(usable), yanked=tuple(yanked), python=python)


class Listing(Struct, frozen=True, kw_only=True):
    """What pip knows of a package's versions, in its own spelling and order."""

    usable: tuple[str, ...]
    yanked: tuple[str, ...]
    python: dict[str, str]
    """Version -> the Python it asks for, where that is not this one."""


def _listed(what: str, text: str, separator: str) -> list[str]:
    found = re.search(f"Ignored the following {what}: (.*)", text)
    return [item.strip() for item in found[1].split(separator)] if found else []


def _hint(sources: Sequence[str]) -> str:
    return " as a wheel (allow building from source with --build)" if "--only-binary" in sources else ""


def choose(
    choice: Choice,
    interpreter: Interpreter,
    sources: Sources,
    environment: Mapping[str, str],
    stop: threading.Event,
) -> tuple[Installer, Pip | None]:
    """(the installer, the pip that lists what an index has, if there is a pip).

    `auto` takes uv when it is there and can be told everything pip is configured with.

    Raises:
        UsageError: the installer asked for is not there.
    """
    host = _pip_command(interpreter, environment)
    pip = Pip(interpreter.executable, sources, environment, stop, host=host) if host else None
    program = None if choice == "pip" else _uv_program(environment)
    if choice == "uv" and program is None:
        raise UsageError("there is no uv on PATH; install it (`pip install uv`), or use --installer pip")
    if program is not None:
        settings, obstacle = pip_settings.carried_over(
            _pip_settings(host, environment),
            environment,
            no_index=sources.no_index,
            index_given=sources.index_url is not None,
        )
        if choice == "uv" or obstacle is None or pip is None:
            return Uv(program, sources, {**environment, **settings.variables}, stop, settings.options), pip
    if pip is None:
        raise UsageError(
            f"neither uv nor pip is there to install with; install one, e.g. `{interpreter.executable} -m ensurepip`"
        )
    return pip, pip


def _uv_program(environment: Mapping[str, str]) -> str | None:
    """The uv on PATH, or next to the interpreter that runs reprocheck (installed with it)."""
    beside = Path(sys.executable).with_name("uv")
    return shutil.which("uv", path=environment.get("PATH")) or (str(beside) if os.access(beside, os.X_OK) else None)


def _pip_command(interpreter: Interpreter, environment: Mapping[str, str]) -> list[str]:
    """A pip that can install for `interpreter`: its own, else ours, else the one on PATH; empty if there is none."""
    if "pip" in interpreter.installed:
        return [interpreter.executable, "-m", "pip"]
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    found = shutil.which("pip", path=environment.get("PATH"))
    return [found] if found else []


def _pip_settings(host: Sequence[str], environment: Mapping[str, str]) -> dict[str, str]:
    """What pip is configured with, files and variables, the stronger place winning."""
    return _asked_settings(tuple(host), tuple(sorted(environment.items()))) if host else {}


@lru_cache(maxsize=4)
def _asked_settings(host: tuple[str, ...], environment: tuple[tuple[str, str], ...]) -> dict[str, str]:
    end = run_process(
        [*host, "config", "list"], env=dict(environment), cwd=Path.cwd(), timeout=60, stop=threading.Event()
    )
    return pip_settings.parse(end.stdout.text) if end.status == 0 else {}


@contextlib.contextmanager
def _files(requirements: Requirements) -> Iterator[list[str]]:
    """Options with the files uv wants: constraints, and an override that takes away what is inherited.

    A requirement whose marker never holds is none; so uv neither looks for these packages nor installs them.
    """
    with tempfile.TemporaryDirectory(prefix="reprocheck-") as folder:
        options: list[str] = []
        if requirements.constraints:
            path = Path(folder, "constraints.txt")
            path.write_text("\n".join(requirements.constraints) + "\n", "utf-8")
            options += ["--constraint", str(path)]
        if requirements.inherited:
            path = Path(folder, "overrides.txt")
            path.write_text("".join(f"{name} ; sys_platform == 'never'\n" for name in requirements.inherited), "utf-8")
            options += ["--override", str(path)]
        yield options


def _last(end: Exit) -> str:
    return end.stderr.text.strip().rpartition("\n")[2] or f"exit status {end.status}"

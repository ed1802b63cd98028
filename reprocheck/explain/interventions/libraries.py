"""Which copy of a native library computes: loaded first, from another file, or visible to everybody."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from os.path import normpath
from typing import Any, ClassVar

from reprocheck.explain.interventions.base import SIDES, Candidate, Intervention, Pair, Side, with_actions
from reprocheck.explain.views import ABSENT, WORKLOAD, Views
from reprocheck.model import Change as StateChange, Origin, StateDifference, Trial

__all__ = ["LibraryCopy", "Load", "Skip", "SymbolScope", "copies"]


@dataclass(frozen=True)
class Load:
    """A file to load when the interpreter starts; with `everywhere`, into the global scope."""

    path: str
    everywhere: bool = False


@dataclass(frozen=True)
class Skip:
    """A file that `ctypes` is not to load at all."""

    path: str


Change = Load | Skip


class LibraryCopy(Intervention):
    """The files that provide a name or a family to others: loaded before the first subject, or not at all."""

    kind: ClassVar[str] = "library copy"

    @classmethod
    def applies_to(cls, difference: StateDifference) -> bool:
        """Bindings, and the list of loaded files."""
        return difference.key.startswith("libraries.binding.") or difference.key in _FILES

    @classmethod
    def propose(cls, differences: Sequence[StateDifference], pair: Pair) -> list[Candidate]:
        """One candidate for everything that is provided by another file: the copies are loaded together."""
        own = [item for item in differences if cls.applies_to(item)]
        values = {side: copies(pair.side(side), pair.other(side)) for side in SIDES} if own else _brought(pair)
        if not any(values.values()):
            return []
        bound = tuple(item for item in own if item.key.startswith("libraries.binding.") and _provided(item))
        paths = {side: [change.path for change in values[side] if isinstance(change, Load)] for side in SIDES}
        if bound:
            key, keys, differing, shown = bound[0].key, tuple(item.key for item in bound), bound, None
        else:
            found = [_soname(pair.side(side), path) for side in SIDES for path in paths[side]]
            name = next((name for name in found if name), None)
            key = f"libraries.soname.{name}" if name else "libraries.loaded"
            keys, differing, shown = (key,), tuple(own) or (_absence(key, paths, pair),), paths
        return [
            Candidate(
                intervention=cls(key),
                keys=keys,
                differences=differing,
                values={side: changes or None for side, changes in values.items()},
                display=shown,
                origin=_loader(pair, paths),
            )
        ]

    def apply(self, trial: Trial, value: Sequence[Change]) -> Trial:
        """Load them when the interpreter starts, and skip what is not to be loaded."""
        skipped = [change.path for change in value if isinstance(change, Skip)]
        actions: list[dict[str, Any]] = [
            {"do": "load", "at": "t0", "id": self.id, "path": change.path, "everywhere": change.everywhere}
            for change in value
            if isinstance(change, Load)
        ]
        if skipped:
            actions.append({"do": "skip", "at": "t0", "id": self.id, "paths": skipped})
        return with_actions(trial, actions)

    def says(self, value: Any) -> str:
        """`/x/libmkl_rt.so.3 loaded first, into the global scope`."""
        loaded = [change for change in value if isinstance(change, Load)]
        files = ", ".join(f"`{change.path}`" for change in value)
        if not loaded:
            return f"{files} not loaded"
        wide = any(change.everywhere for change in loaded)
        return f"{files} loaded first{', into the global scope' if wide else ''}"


class SymbolScope(Intervention):
    """Nothing is loaded into the global scope; or what the other order has there is."""

    kind: ClassVar[str] = "symbol scope"

    @classmethod
    def applies_to(cls, difference: StateDifference) -> bool:
        """The files of the global scope, in the order of look-up."""
        return difference.key == "libraries.scope.global"

    @classmethod
    def propose(cls, differences: Sequence[StateDifference], pair: Pair) -> list[Candidate]:
        """A candidate where a file is in the global scope in one order only, and all copies are the same."""
        own = [item for item in differences if cls.applies_to(item)]
        scopes = {side: _scope(pair.side(side)) for side in SIDES}
        only = {side: [path for path in scopes[side] if path not in scopes[_OTHER[side]]] for side in SIDES}
        if not own or not any(only.values()) or LibraryCopy.propose(differences, pair):
            return []
        values = {side: tuple(Load(path, everywhere=True) for path in only[side]) for side in SIDES}
        return [Candidate(intervention=cls(own[0].key), keys=(own[0].key,), differences=tuple(own), values=values)]

    def apply(self, trial: Trial, value: Sequence[Load]) -> Trial:
        """Make the files global before the workload; with none to make so, keep everything local from the start."""
        if not value:
            return with_actions(trial, [{"do": "local", "at": "t0", "id": self.id}])
        return with_actions(
            trial,
            [{"do": "load", "at": "t2", "id": self.id, "path": change.path, "everywhere": True} for change in value],
        )

    def says(self, value: Any) -> str:
        """`/x/libcublasLt.so.13 made visible to all libraries`."""
        if not value:
            return "no library loaded into the global scope"
        return ", ".join(f"`{change.path}`" for change in value) + " made visible to all libraries"


_FILES = ("libraries.objects", "libraries.new")
_OTHER: Mapping[Side, Side] = {"good": "bad", "bad": "good"}


def _provided(difference: StateDifference) -> bool:
    """A binding to a file on both sides; a map of several files is told by its own keys."""
    return all(isinstance(change.value, str) and change.value.startswith("/") for change in difference.changes)


def _soname(views: Views, path: str) -> str | None:
    found = next((item.get("soname") for item in _read(views).get("objects", ()) if item["path"] == path), None)
    return str(found) if found else None


def _loader(pair: Pair, paths: Mapping[Side, Sequence[str]]) -> Origin | None:
    """Who loaded what the bad order computes with: the event of the first such file that has a line, there or here."""
    for side in ("bad", "good"):
        for event in pair.side(side).record.events:
            if event.kind in ("library", "dlopen") and normpath(event.name) in paths[side] and event.file:
                by = event.phase.removeprefix("t1:") if event.phase.startswith("t1:") else None
                return Origin(by=by, file=event.file, line=event.line)
    return None


def _absence(key: str, paths: Mapping[Side, Sequence[str]], pair: Pair) -> StateDifference:
    """The difference that no snapshot before the workload shows, because an import failed on the way to it."""
    changes = tuple(
        StateChange(group=side, order=pair.side(side).record.trial.order, value=list(paths[side]) or ABSENT, phase="t1")
        for side in SIDES
    )
    return StateDifference(
        key=key, phase="t1", severity="latent", why="A library that another import loads.", changes=changes
    )


def copies(source: Views, own: Views) -> tuple[Load, ...]:
    """The files to load first on `own`'s order so that names and families are provided as in `source`'s.

    A file is one of them when something is bound to it in `source` and to another file in `own`, or when it is the
    first of its SONAME there and not here.
    """
    theirs, mine = _read(source), _read(own)
    order = [item["path"] for item in theirs.get("objects", ())]
    scope = set(_scope(source))
    wanted: dict[str, None] = {}
    for key, value in theirs.items():
        if key.startswith("binding.") and mine.get(key, value) != value:
            for path in _paths(value):
                wanted[path] = None
    sonames, other = _first_of_soname(theirs), _first_of_soname(mine)
    for soname, path in sonames.items():
        if other.get(soname, path) != path:
            wanted[path] = None
    ranked = sorted((path for path in wanted if path in order), key=order.index)
    return tuple(Load(path, everywhere=path in scope) for path in ranked)


def _paths(value: Any) -> Iterable[str]:
    """The files of a binding: a path, or path -> number of symbols."""
    return value if isinstance(value, Mapping) else [str(value)]


def _read(views: Views) -> Mapping[str, Any]:
    """What was read of the libraries before the workload, as it was read; empty where it did not come to that."""
    snapshot = views.snapshot(WORKLOAD)
    return snapshot.kinds.get("libraries", {}) if snapshot is not None else {}


def _scope(views: Views) -> list[str]:
    found = _read(views).get("scope.global")
    # The loader leaves `..` in the paths it made of RUNPATHs; objects and bindings are told without.
    return [normpath(str(path)) for path in found] if isinstance(found, list) else []


def _first_of_soname(values: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for item in values.get("objects", ()):
        if item.get("soname"):
            found.setdefault(item["soname"], item["path"])
    return found


def _brought(pair: Pair) -> dict[Side, tuple[Change, ...]]:
    """What to load, or to skip, when an import fails in one order only, and in the other finds files loaded already."""
    nothing: dict[Side, tuple[Change, ...]] = {"good": (), "bad": ()}
    if not pair.bad.record.failure or pair.good.record.failure:
        return nothing
    moment = next((item for item in reversed(pair.bad.moments) if item in pair.good.moments), None)
    if moment is None:
        return nothing
    here = set(_loaded(pair.bad, moment))
    files = [path for path in _loaded(pair.good, moment) if path not in here and not _is_extension(path)]
    by_ctypes = {normpath(event.name) for event in pair.good.record.events if event.kind == "dlopen"}
    # What was loaded on purpose, if anything was; the rest came along with it or with `ctypes` itself.
    files = [path for path in files if path in by_ctypes] or files
    return {
        "good": tuple(Load(path) for path in files),
        "bad": tuple(Skip(path) for path in files if path in by_ctypes),
    }


def _loaded(views: Views, moment: str) -> list[str]:
    """The files that were loaded when a moment came, in load order."""
    paths: dict[str, None] = {}
    for snapshot in views.record.snapshots:
        for path in snapshot.kinds.get("libraries", {}).get("new", ()):
            paths[normpath(path)] = None
        if snapshot is views.snapshot(moment):
            break
    return list(paths)


def _is_extension(path: str) -> bool:
    """An extension module of Python: loading it is its own package's affair."""
    return ".cpython-" in path or ".abi3." in path

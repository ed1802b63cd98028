"""Which copy of a native library computes: loaded first, from another file, or visible to everybody."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os.path import normpath
from typing import Any, ClassVar

from reprocheck.explain.interventions.base import SIDES, Candidate, Intervention, Pair, Side, with_actions
from reprocheck.explain.views import WORKLOAD, Views
from reprocheck.model import Origin, StateDifference, Trial

__all__ = ["LibraryCopy", "SymbolScope", "copies"]

Loads = tuple[tuple[str, bool], ...]
"""(file, into the global scope), in the order in which to load them."""


class LibraryCopy(Intervention):
    """The files that provide a name or a family to those who need it, loaded before the first subject."""

    kind: ClassVar[str] = "library copy"

    @classmethod
    def applies_to(cls, difference: StateDifference) -> bool:
        """Bindings, and the list of loaded files."""
        return difference.key.startswith("libraries.binding.") or difference.key in _FILES

    @classmethod
    def propose(cls, differences: Sequence[StateDifference], pair: Pair) -> list[Candidate]:
        """One candidate for everything that is provided by another file: the copies are loaded together."""
        own = [item for item in differences if cls.applies_to(item)]
        values = {side: copies(pair.side(side), pair.other(side)) for side in SIDES}
        if not own or not any(values.values()):
            return []
        bound = tuple(item for item in own if item.key.startswith("libraries.binding.") and _provided(item))
        key, shown = bound[0].key if bound else "libraries.loaded", None
        if not bound:
            shown = {side: [path for path, _ in values[side]] for side in SIDES}
            name = next((_soname(pair.side(side), loads[0][0]) for side, loads in values.items() if loads), None)
            key = f"libraries.soname.{name}" if name else key
        differing = bound or tuple(own)
        return [
            Candidate(
                intervention=cls(key),
                keys=tuple(item.key for item in differing) if bound else (key, *(item.key for item in differing)),
                differences=differing,
                values={side: loads or None for side, loads in values.items()},
                display=shown,
                origin=_loader(pair, values),
            )
        ]

    def apply(self, trial: Trial, value: Loads) -> Trial:
        """Load them when the interpreter starts."""
        return with_actions(
            trial,
            [{"do": "load", "at": "t0", "id": self.id, "path": path, "everywhere": wide} for path, wide in value],
        )

    def says(self, value: Any) -> str:
        """`/x/libmkl_rt.so.3 loaded first, into the global scope`."""
        files = ", ".join(f"`{path}`" for path, _ in value)
        wide = any(everywhere for _, everywhere in value)
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
        values = {side: tuple((path, True) for path in only[side]) for side in SIDES}
        return [Candidate(intervention=cls(own[0].key), keys=(own[0].key,), differences=tuple(own), values=values)]

    def apply(self, trial: Trial, value: Loads) -> Trial:
        """Make the files global before the workload; with none to make so, keep everything local from the start."""
        if not value:
            return with_actions(trial, [{"do": "local", "at": "t0", "id": self.id}])
        return with_actions(
            trial, [{"do": "load", "at": "t2", "id": self.id, "path": path, "everywhere": wide} for path, wide in value]
        )

    def says(self, value: Any) -> str:
        """`/x/libcublasLt.so.13 made visible to all libraries`."""
        if not value:
            return "no library loaded into the global scope"
        return ", ".join(f"`{path}`" for path, _ in value) + " made visible to all libraries"


_FILES = ("libraries.objects", "libraries.new")
_OTHER: Mapping[Side, Side] = {"good": "bad", "bad": "good"}


def _provided(difference: StateDifference) -> bool:
    """A binding to a file on both sides; a map of several files is told by its own keys."""
    return all(isinstance(change.value, str) and change.value.startswith("/") for change in difference.changes)


def _soname(views: Views, path: str) -> str | None:
    found = next((item.get("soname") for item in _read(views).get("objects", ()) if item["path"] == path), None)
    return str(found) if found else None


def _loader(pair: Pair, values: Mapping[Side, Loads]) -> Origin | None:
    """Who loaded what the bad order computes with: the event of the first such file that has a line, there or here."""
    for side in ("bad", "good"):
        paths = {path for path, _ in values[side]}
        for event in pair.side(side).record.events:
            if event.kind in ("library", "dlopen") and normpath(event.name) in paths and event.file:
                by = event.phase.removeprefix("t1:") if event.phase.startswith("t1:") else None
                return Origin(by=by, file=event.file, line=event.line)
    return None


def copies(source: Views, own: Views) -> Loads:
    """The files to load first on `own`'s order so that names and families are provided as in `source`'s.

    A file is one of them when something is bound to it in `source` and to another file in `own`, or when it is the
    first of its SONAME there and not here. Without the workload's snapshot (an import failed), it is any file that
    the failing import found loaded already in `source` and did not in `own`.
    """
    theirs, mine = _read(source), _read(own)
    if not mine or not theirs:
        return _found_loaded(source, own)
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
    return tuple((path, path in scope) for path in ranked)


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


def _found_loaded(source: Views, own: Views) -> Loads:
    """Files that were loaded before an import in one order, and not in the other."""

    def loaded(views: Views, moment: str) -> list[str]:
        paths: dict[str, None] = {}
        for snapshot in views.record.snapshots:
            for path in snapshot.kinds.get("libraries", {}).get("new", ()):
                paths[path] = None
            if snapshot is views.snapshot(moment):
                break
        return list(paths)

    moment = next((item for item in reversed(own.moments) if item in source.moments), None)
    if moment is None:
        return ()
    here = set(loaded(own, moment))
    return tuple((path, False) for path in loaded(source, moment) if path not in here)

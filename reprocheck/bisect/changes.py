"""What else differs between the two versions at a boundary: its files, other packages, state and who set it."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path

from reprocheck.bisect.arms import neutral
from reprocheck.bisect.records import AlsoChanged, Blame, FileChange, Place
from reprocheck.explain.state import state_differences
from reprocheck.model import Record, StateDifference

__all__ = ["blame", "changed_files", "other_packages"]

MOST_FILES = 200
MOST_LINES = 24
_NEAR = 2  # lines shown around one that is blamed
_BAD, _GOOD = "bad", "good"


def blame(
    package: str, good: Place, bad: Place, good_records: Sequence[Record], bad_records: Sequence[Record]
) -> Blame:
    """The differences between the two versions, the state as seen in trials that forced no order.

    State that only says where things lie or what is loaded is left out.
    """
    groups = {
        _GOOD: [neutral(record, good) for record in good_records if record.ok],
        _BAD: [neutral(record, bad) for record in bad_records if record.ok],
    }
    found = state_differences(groups, phases=("t3",)) if all(groups.values()) else ()
    state = tuple(sorted((item for item in found if item.severity != "informational"), key=_telling))
    files = changed_files(good, bad, _blamed_lines(state))
    return Blame(
        files=tuple(sorted(files, key=lambda change: (not change.blamed, change.path)))[:MOST_FILES],
        file_count=len(files),
        also_changed=other_packages(package, good, bad),
        state=state,
    )


def _telling(item: StateDifference) -> tuple[bool, bool]:
    """Sort key: first what was seen being set, last what is only there because a library is not loaded."""
    seen = any(change.event is not None and change.event.file for change in item.changes)
    absent = any(change.value == "absent" for change in item.changes)
    return not seen, absent and not seen


def other_packages(package: str, good: Place, bad: Place) -> tuple[AlsoChanged, ...]:
    """Distributions besides `package` that differ between two environments; `none` where there is none."""
    before, after = ({**place.inherited, **place.installed} for place in (good, bad))
    return tuple(
        AlsoChanged(name=name, before=before.get(name, "none"), after=after.get(name, "none"))
        for name in sorted({*before, *after} - {package})
        if before.get(name) != after.get(name)
    )


def changed_files(good: Place, bad: Place, blamed: Mapping[str, set[int]]) -> list[FileChange]:
    """Files of the package that differ, with the change itself around lines that are blamed."""
    found = []
    for path in sorted({*good.files, *bad.files}):
        if good.files.get(path) == bad.files.get(path) or path.startswith(".dist-info/"):
            continue
        kind = "added" if path not in good.files else "removed" if path not in bad.files else "changed"
        lines = tuple(sorted(blamed.get(path, ())))
        found.append(
            FileChange(
                path=path,
                kind=kind,  # type: ignore[arg-type]
                blamed=lines,
                lines=_hunks(Path(good.root, path), Path(bad.root, path), lines) if lines else (),
            )
        )
    return found


def _blamed_lines(state: Sequence[StateDifference]) -> dict[str, set[int]]:
    """File, relative to where packages lie -> lines in the bad version that set state which differs."""
    found: dict[str, set[int]] = {}
    for difference in state:
        for change in difference.changes:
            event = change.event
            if change.group != _BAD or event is None or not event.file or event.line is None:
                continue
            _, _, path = event.file.partition("/site-packages/")
            path = path or event.file.removeprefix("{package}/")
            found.setdefault(path, set()).add(event.line)
    return found


def _hunks(before: Path, after: Path, lines: Sequence[int]) -> tuple[str, ...]:
    """What is new around those of the `lines` of `after` that `before` has not; empty when none is new."""
    old, new = _lines(before), _lines(after)
    kept: list[str] = []
    for tag, low, high, first, last in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        here = [line for line in lines if first < line <= last]
        if tag not in ("insert", "replace") or not here:
            continue
        if high - low <= _NEAR:
            kept += [f"- {line}" for line in old[low:high]]
        for number in range(max(first, here[0] - 1 - _NEAR), min(last, here[-1] + _NEAR)):
            kept.append(f"+ {new[number]}".rstrip())
    return tuple(kept if len(kept) <= MOST_LINES else [*kept[: MOST_LINES - 1], "…"])


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []

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
    package: str,
    old: Place,
    new: Place,
    old_records: Sequence[Record],
    new_records: Sequence[Record],
    *,
    find_fix: bool = False,
) -> Blame:
    """The differences between the older and the newer version, the state as seen in trials that forced no order.

    Lines of the newer one are blamed, with `find_fix` those of the older one. State that only says where things lie or
    what is loaded is left out.
    """
    names = (_BAD, _GOOD) if find_fix else (_GOOD, _BAD)
    sides = zip(names, (old_records, new_records), (old, new), strict=True)
    groups = {name: [neutral(record, place) for record in records if record.ok] for name, records, place in sides}
    found = state_differences(groups, phases=("t3",)) if all(groups.values()) else ()
    state = tuple(sorted((item for item in found if item.severity != "informational"), key=_telling))
    files = changed_files(old, new, _blamed_lines(state), find_fix=find_fix)
    return Blame(
        files=tuple(sorted(files, key=lambda change: (not change.blamed, change.path)))[:MOST_FILES],
        file_count=len(files),
        also_changed=other_packages(package, old, new),
        state=state,
    )


def _telling(item: StateDifference) -> tuple[bool, bool]:
    """Sort key: first what was seen being set, last what is only there because a library is not loaded."""
    seen = any(change.event is not None and change.event.file for change in item.changes)
    absent = any(change.value == "absent" for change in item.changes)
    return not seen, absent and not seen


def other_packages(package: str, old: Place, new: Place) -> tuple[AlsoChanged, ...]:
    """Distributions besides `package` that differ between two environments; `none` where there is none."""
    before, after = ({**place.inherited, **place.installed} for place in (old, new))
    return tuple(
        AlsoChanged(name=name, before=before.get(name, "none"), after=after.get(name, "none"))
        for name in sorted({*before, *after} - {package})
        if before.get(name) != after.get(name)
    )


def changed_files(
    old: Place, new: Place, blamed: Mapping[str, set[int]], *, find_fix: bool = False
) -> list[FileChange]:
    """Files of the package that differ, with the change itself around blamed lines.

    Those are lines of the newer version, with `find_fix` of the older one.
    """
    found = []
    for path in sorted({*old.files, *new.files}):
        if old.files.get(path) == new.files.get(path) or path.startswith(".dist-info/"):
            continue
        kind = "added" if path not in old.files else "removed" if path not in new.files else "changed"
        lines = tuple(sorted(blamed.get(path, ())))
        found.append(
            FileChange(
                path=path,
                kind=kind,  # type: ignore[arg-type]
                blamed=lines,
                lines=_hunks(Path(old.root, path), Path(new.root, path), lines, find_fix=find_fix) if lines else (),
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


def _hunks(old: Path, new: Path, blamed: Sequence[int], *, find_fix: bool) -> tuple[str, ...]:
    """What one version alone has around its `blamed` lines, as a unified diff; empty when the other has it, too."""
    without, having = (_lines(path) for path in ((new, old) if find_fix else (old, new)))
    kept: list[str] = []
    for tag, low, high, first, last in difflib.SequenceMatcher(None, without, having, autojunk=False).get_opcodes():
        here = [line for line in blamed if first < line <= last]
        if tag not in ("insert", "replace") or not here:
            continue
        own = having[max(first, here[0] - 1 - _NEAR) : min(last, here[-1] + _NEAR)]
        others = without[low:high] if high - low <= _NEAR else []
        removed, added = (own, others) if find_fix else (others, own)
        kept += [f"- {line}".rstrip() for line in removed] + [f"+ {line}".rstrip() for line in added]
    return tuple(kept if len(kept) <= MOST_LINES else [*kept[: MOST_LINES - 1], "…"])


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []

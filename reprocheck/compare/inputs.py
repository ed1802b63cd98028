"""Opening what `diff` is given: a run folder, a record, or a file of arrays, as named sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from reprocheck.compare.files import open_file
from reprocheck.compare.source import Source
from reprocheck.compare.tolerance import matches
from reprocheck.errors import UsageError
from reprocheck.model import Record
from reprocheck.store.objects import ObjectStore
from reprocheck.store.run import Run

__all__ = ["open_outputs"]


def open_outputs(path: Path, patterns: Sequence[str] = ()) -> Mapping[str, Source]:
    """Name -> array of what `path` holds: of a run folder the first trial of its first order (and level).

    Raises `UsageError` when there is nothing to compare in it.
    """
    if not path.exists():
        raise UsageError(f"there is no `{path}`; give a run folder, a record, or a .safetensors, .npz or .npy file")
    found: Mapping[str, Source]
    if path.is_dir():
        found = _from_record(_reference(Run(path)), path, path)
    elif path.suffix == ".json":
        try:
            record = msgspec.json.decode(path.read_bytes(), type=Record)
        except msgspec.DecodeError as error:
            raise UsageError(f"`{path}` is not a record: {error}") from error
        found = _from_record(record, path.absolute().parent.parent, path)
    else:
        found = open_file(path)
    if patterns:
        found = {name: found[name] for name in found if any(matches(pattern, name) for pattern in patterns)}
    if not found:
        raise UsageError(f"`{path}` has no outputs to compare{' that match --outputs' if patterns else ''}")
    return found


def _reference(run: Run) -> Record | None:
    """The first repeat of the run's first order, or the nearest to it that finished."""
    orders = run.spec.orders
    level = run.spec.levels[0] if run.spec.levels else {}
    able = [r for r in run.records(level) if r.ok and r.trial.order in orders and r.trial.judged]
    return min(able, key=lambda r: (orders.index(r.trial.order), r.trial.repeat), default=None)


def _from_record(record: Record | None, folder: Path, path: Path) -> dict[str, Source]:
    if record is None:
        raise UsageError(f"no trial of `{path}` finished, so there are no outputs to compare")
    objects = ObjectStore(folder / "objects")
    return {output.name: Source.from_object(objects.path(output.digest)) for output in record.outputs}

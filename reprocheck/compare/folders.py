"""Outputs that differ only by the name of a temporary folder, which is made up anew in every trial."""

from __future__ import annotations

import re
from collections.abc import Sequence

from reprocheck.compare.suite import text_of
from reprocheck.model import Output, OutputDifference, Record
from reprocheck.store.objects import ObjectStore

__all__ = ["folder_notes", "without_folders"]

MOST_BYTES = 1 << 16
MOST_NAMES = 6
# Where a trial's pytest keeps its folders, and the names that `tempfile` makes up.
_BASE = re.compile(r"/[^\s'\"]*/[0-9]+-[0-9]{6}/basetemp(?![^/\s'\"])")
_MADE_UP = re.compile(r"(?<=/)tmp[a-z0-9_]{8}(?![a-z0-9_])")


def folder_notes(
    outputs: Sequence[OutputDifference], records: Sequence[Record], objects: ObjectStore
) -> tuple[str, ...]:
    """A sentence that names them, if there are any. `records` are those of all groups."""
    texts: dict[str, list[Output]] = {output.name: [] for output in outputs if output.differs}
    for record in records if texts else ():
        for output in record.outputs:
            if output.dtype == "str" and output.nbytes <= MOST_BYTES and output.name in texts:
                texts[output.name].append(output)
    names = [name for name, found in texts.items() if len(found) == len(records) and _alike(found, objects)]
    if not names:
        return ()
    some = ", ".join(f"`{name}`" for name in names[:MOST_NAMES])
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    told = (
        f"the values of {some}{more} differ only in the path of a temporary folder, which is another one in every trial"
    )
    return (f"{told}; record what lies below it by a relative path",)


def without_folders(text: str) -> str:
    """`text` with what is made up of such paths taken out."""
    return _MADE_UP.sub("tmp…", _BASE.sub("/…", text))


def _alike(found: Sequence[Output], objects: ObjectStore) -> bool:
    return (
        len({without_folders(text_of(item, objects)) for item in {item.digest: item for item in found}.values()}) == 1
    )

"""Where on a code-review page a finding belongs: files as the repository names them."""

from __future__ import annotations

import os
from pathlib import Path

from reprocheck.model import Struct, Study
from reprocheck.report.source import Place, node_place, workload_place

__all__ = ["Anchor", "anchor_of", "repository_root", "study_anchor", "test_anchor"]


class Anchor(Struct, frozen=True, kw_only=True):
    """A line of a file below the repository's root."""

    file: str
    """Relative, with forward slashes."""
    line: int


def repository_root(start: Path | None = None) -> Path:
    """GitHub's checkout, else the git repository around `start` (the working directory), else that directory."""
    workspace = os.environ.get("GITHUB_WORKSPACE")
    if workspace and Path(workspace).is_dir():
        return Path(workspace).resolve()
    here = (start or Path.cwd()).resolve()
    return next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here)


def study_anchor(study: Study, root: Path) -> Anchor | None:
    """Where the workload is defined, if that is a file below `root`."""
    return _anchor(workload_place(study, root), root)


def test_anchor(node: str, root: Path) -> Anchor | None:
    """Where a test is defined, if that is a file below `root`."""
    return _anchor(node_place(node, Path.cwd()), root) or _anchor(node_place(node, root), root)


def anchor_of(file: str | None, line: int | None, root: Path) -> Anchor | None:
    """A place that was recorded, if its file is there, below `root`, and has that line."""
    if not file or not line or line < 1:
        return None
    path = Path(file)
    path = path if path.is_absolute() else root / path
    try:
        with path.open("rb") as stream:
            if sum(1 for _ in stream) < line:
                return None
    except OSError:
        return None
    return _anchor(Place(file=path, line=line), root)


def _anchor(place: Place | None, root: Path) -> Anchor | None:
    if place is None:
        return None
    file = place.file.resolve()
    if not file.is_file() or not file.is_relative_to(root):
        return None
    return Anchor(file=file.relative_to(root).as_posix(), line=place.line)

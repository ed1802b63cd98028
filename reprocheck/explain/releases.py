"""Another release of the package that makes the difference: worth a try that explaining does not make by itself."""

from __future__ import annotations

import importlib.metadata
import shlex
from collections.abc import Sequence
from pathlib import Path

from reprocheck.model import Cause, Study

__all__ = ["installed_owner", "other_releases"]

_FOLDERS = ("site-packages", "dist-packages")


def installed_owner(file: str) -> tuple[str, str] | None:
    """(name, version) of the installed distribution a file belongs to, by its folder's metadata; None for others."""
    parts = Path(file).parts
    at = next((at for at in range(len(parts) - 2, 0, -1) if parts[at] in _FOLDERS), None)
    if at is None:
        return None
    inside = "/".join(parts[at + 1 :])
    for found in importlib.metadata.distributions(path=[str(Path(*parts[: at + 1]))]):
        if found.metadata["Name"] and any(str(path) == inside for path in found.files or ()):
            return found.metadata["Name"], found.version
    return None


def other_releases(study: Study, causes: Sequence[Cause]) -> tuple[str, ...]:
    """A sentence for each installed package that a proved cause comes from, with the command to try its releases."""
    told: dict[str, str] = {}
    for cause in causes:
        file = cause.event.file if cause.event is not None else None
        owner = installed_owner(file) if cause.status == "confirmed" and file else None
        if owner is None:
            continue
        name, version = owner
        command = ["reprocheck", "bisect", study.target.text, "--package", name, "--bad", version]
        if study.subjects:
            command += ["--imports", ",".join(study.subjects)]
        told[name] = (
            f"another release of `{name}` ({version} is installed) may not do this; not tried. "
            f"`{shlex.join(command)}` looks for the first one that does"
        )
    return tuple(told.values())

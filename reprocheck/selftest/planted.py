"""What a planted fault is, and what has to be found of it."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["MARK", "Fault", "Needs"]

MARK = "# planted"
"""Stands at the lines that bring the fault about."""

Needs = tuple[str, ...]
"""What a machine must have for a fault to show: `cores`, `compiler`, `torch`, `x86-64`."""


@dataclass(frozen=True)
class Fault:
    """Tiny toolboxes with a known fault, or with none."""

    name: str
    kind: str
    sources: Mapping[str, str]
    """File name without `.py` -> its source."""
    verdict: str
    causes: frozenset[str] = frozenset()
    """State keys that have to be named as causes; `unknown` where no captured state can explain it."""
    count: str = "single"
    """`single`, `paired` or `none`."""
    pair: tuple[str, str] | None = ("a", "b")
    """The two subjects whose order matters; None where the order does not."""
    imports: tuple[str, ...] = ("a", "b")
    options: Mapping[str, Any] = field(default_factory=dict)
    """More options of the run."""
    needs: Needs = ()
    prepare: str = ""
    """Python code run once in the folder before the first trial, e.g. to build libraries."""
    quick: bool = False
    """Part of the quick test."""
    remedy: bool = True
    """Whether a remedy exists that can be tried."""

    def write(self, folder: Path) -> None:
        """Write the toolboxes and the workload `work.py` into `folder`."""
        for name, source in self.sources.items():
            path = folder / f"{name}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(source).lstrip("\n"), encoding="utf-8")

    def places(self) -> set[tuple[str, int]]:
        """(file name, line) of everything that is marked as planted."""
        return {
            (f"{name}.py", number)
            for name, source in self.sources.items()
            for number, line in enumerate(textwrap.dedent(source).lstrip("\n").splitlines(), 1)
            if MARK in line
        }

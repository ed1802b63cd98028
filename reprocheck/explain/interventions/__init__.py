"""Interventions: one small class for each kind of state that can be changed, and what they make of differences."""

from __future__ import annotations

from collections.abc import Sequence

from reprocheck.explain.interventions.base import Candidate, Intervention, Pair
from reprocheck.explain.interventions.environment import Environment
from reprocheck.explain.interventions.floating import FloatingPoint, WorkerFloatingPoint
from reprocheck.explain.interventions.generators import Generator
from reprocheck.explain.interventions.libraries import LibraryCopy, SymbolScope
from reprocheck.explain.interventions.patches import Patch
from reprocheck.explain.interventions.settings import Setting
from reprocheck.explain.interventions.threads import Threads
from reprocheck.model import StateDifference

__all__ = ["KINDS", "Candidate", "Intervention", "Pair", "candidates"]

KINDS: tuple[type[Intervention], ...] = (
    Environment,
    FloatingPoint,
    LibraryCopy,
    Patch,
    Setting,
    Generator,
    SymbolScope,
    Threads,
    WorkerFloatingPoint,
)
"""All kinds. Of two that make one another redundant, the one nearer to the root of things comes first."""

SEVERITIES = ("numeric", "performance", "latent", "informational")


def candidates(differences: Sequence[StateDifference], pair: Pair) -> list[Candidate]:
    """Everything that can be changed about `differences`, the most suspected first.

    Ranked by how serious the key is, then by kind, then by how early the two orders part there; differences that no
    intervention applies to are left out.
    """
    found = [candidate for kind in KINDS for candidate in kind.propose(differences, pair)]

    def suspicion(candidate: Candidate) -> tuple[int, int, int, str]:
        severity = min(SEVERITIES.index(item.severity) for item in candidate.differences)
        if isinstance(candidate.intervention, LibraryCopy):
            # That other files are loaded says little; that a name is provided by another one says much.
            severity = 0
        return severity, KINDS.index(type(candidate.intervention)), pair.parts_at(candidate.keys), candidate.id

    return sorted(found, key=suspicion)

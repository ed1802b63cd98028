"""Thread counts, set by the library that holds them, before the workload."""

from __future__ import annotations

from typing import Any, ClassVar

from reprocheck.explain.interventions.base import Course, Intervention, moment_of, with_actions
from reprocheck.model import StateDifference, Trial
from reprocheck.words import counted

__all__ = ["Threads", "library_of"]


def library_of(key: str) -> tuple[str, str] | None:
    """(library, file) that a thread count belongs to, in the worker's words; None for other keys."""
    exact = {"torch.threads.intra": ("torch", ""), "torch.threads.inter": ("torch.inter", "")}
    if key in exact:
        return exact[key]
    for prefix, suffix, library in (
        ("openmp.", ".max_threads", "openmp"),
        ("blas.openblas.", ".threads", "openblas"),
        ("blas.mkl.", ".threads", "mkl"),
    ):
        if key.startswith(prefix) and key.endswith(suffix):
            return library, key[len(prefix) : -len(suffix)]
    return None


class Threads(Intervention):
    """How many threads torch, an OpenMP runtime or a BLAS computes with."""

    kind: ClassVar[str] = "thread count"

    @classmethod
    def applies_to(cls, difference: StateDifference) -> bool:
        """Counts that have a setter."""
        numbers = all(isinstance(change.value, int) for change in difference.changes)
        return library_of(difference.key) is not None and numbers

    def apply(self, trial: Trial, value: Course) -> Trial:
        """Set it before the workload."""
        library, file = library_of(self.key) or ("", "")
        moment, values, _ = value[-1]
        action = {"do": "threads", "at": moment_of(moment), "id": self.id, "library": library, "file": file}
        return with_actions(trial, [{**action, "count": values[self.key]}])

    def says(self, value: Any) -> str:
        """`torch on 1 thread`."""
        library, file = library_of(self.key) or ("", "")
        count = value[-1].values[self.key]
        return f"{file or library} on {counted(count, 'thread')}"

"""The end of a sentence about a name that doesn't exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["closest", "did_you_mean"]


def closest(word: str, candidates: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """The candidate most like `word`, by difflib's ratio; None if none reaches `cutoff`."""
    return next(iter(difflib.get_close_matches(word, list(candidates), n=1, cutoff=cutoff)), None)


def did_you_mean(word: str, candidates: Iterable[str], otherwise: str = ".") -> str:
    """``: did you mean `x`?`` with the candidate most like `word`, or `otherwise` if none is like it."""
    close = closest(word, candidates)
    return f": did you mean `{close}`?" if close else otherwise

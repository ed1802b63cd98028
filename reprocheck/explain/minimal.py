"""Delta debugging: the smallest part of a list for which something still holds (Zeller's ddmin)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

__all__ = ["smallest"]

T = TypeVar("T", bound=Hashable)


def smallest(items: Sequence[T], holds: Callable[[tuple[T, ...]], bool]) -> tuple[T, ...]:
    """A subset of `items`, in their order, for which `holds` is true and without any one of whose members it is not.

    `holds(items)` is taken for granted and not asked. Each subset is asked about once. For one necessary item among n
    this takes about 2·log2 n questions, in the worst case n² + 3n (Zeller and Hildebrandt 2002,
    https://doi.org/10.1109/32.988498).
    """
    known: dict[tuple[T, ...], bool] = {tuple(items): True}

    def ask(part: tuple[T, ...]) -> bool:
        if part not in known:
            known[part] = holds(part)
        return known[part]

    current = tuple(items)
    if not current or ask(()):
        return ()
    pieces = 2
    while len(current) > 1:
        size = -(-len(current) // pieces)
        chunks = [current[at : at + size] for at in range(0, len(current), size)]
        complements = [tuple(item for item in current if item not in chunk) for chunk in chunks]
        smaller = next((chunk for chunk in chunks if ask(chunk)), None)
        if smaller is not None:
            current, pieces = smaller, 2
            continue
        smaller = next((rest for rest in complements if len(chunks) > 2 and ask(rest)), None)
        if smaller is not None:
            current, pieces = smaller, max(pieces - 1, 2)
        elif pieces >= len(current):
            break
        else:
            pieces = min(len(current), 2 * pieces)
    return current

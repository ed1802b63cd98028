"""The search for the version at which an outcome changes: a pure function of what is known so far.

`step` says what the search wants to know next, given the labels it has; nothing is kept between calls. So a journal
is all that resuming and undoing need, what comes after either answer can be asked beforehand (prefetching, several
versions at a time), and no number of jobs can change the answer: labels that the one-at-a-time search would not have
asked for are never looked at.

Every boundary found is proven by its neighbours: they have different labels, and everything between them was tried
and could not be judged. Histories need not be monotone; a change that was undone before the next version looked at
stays invisible, which is what scouts are for. The shape is that of cargo-bisect-rustc's `least_satisfying`
(https://github.com/rust-lang/cargo-bisect-rustc/blob/master/src/least_satisfying.rs), with more than two labels and a
doubling escape from runs of versions that can't be judged.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

__all__ = ["Boundary", "History", "Known", "Label", "Step", "Unknown", "batch", "remaining", "step"]


@dataclass(frozen=True, slots=True)
class Unknown:
    """The label of a version that can't be judged."""

    reason: str


Label = Hashable
"""What a version showed; `Unknown` when that can't be said."""
Known = Mapping[int, Label]
"""Labels by index, as far as they are known."""


@dataclass(frozen=True, slots=True)
class History:
    """What is searched: `count` versions, oldest first."""

    count: int
    scouts: int = 0
    """So many versions, evenly spaced, are looked at before anything is halved."""
    walk: bool = False
    """True when no good end is known: go back from the newest by growing steps until the label changes."""

    def __post_init__(self) -> None:
        """Raises `ValueError` for a history without two ends."""
        if self.count < 2 or self.scouts < 0:
            raise ValueError(f"no change can lie in {self.count} versions with {self.scouts} scouts")


@dataclass(frozen=True, slots=True)
class Boundary:
    """Two versions with different labels; every version between them was tried and could not be judged."""

    before: int
    after: int

    @property
    def between(self) -> range:
        """The versions that could not be judged."""
        return range(self.before + 1, self.after)


@dataclass(frozen=True, slots=True)
class Step:
    """Where a search stands."""

    wanted: tuple[int, ...] = ()
    """What to look at next, most urgent first; each of them will be needed. Empty: the search is over."""
    guesses: tuple[Label, ...] = ()
    """Labels that the first of `wanted` may well turn out to have."""
    boundaries: tuple[Boundary, ...] = ()
    """Those found so far, oldest first."""
    consulted: frozenset[int] = field(default_factory=frozenset)
    """Versions whose labels the search has looked at."""
    open: tuple[tuple[int, int], ...] = ()
    """Pairs of versions with different labels between which the search goes on."""
    stuck: int | None = None
    """An end that can't be judged, so that there is nothing to search."""
    same: bool = False
    """True when the ends agree, or going back never met another label."""


def step(history: History, known: Known) -> Step:
    """What the search wants next, or its result."""
    consulted: set[int] = set()
    last = history.count - 1
    ends = (last,) if history.walk else (0, last)
    missing = tuple(index for index in ends if index not in known)
    if missing:
        return Step(wanted=missing, guesses=(_OTHER, _ANY), consulted=frozenset(ends) - set(missing))
    consulted.update(ends)
    for end in ends:
        if isinstance(known[end], Unknown):
            return Step(stuck=end, consulted=frozenset(consulted))

    anchors = list(ends)
    if history.walk:
        wanted = _walk(known, last, anchors, consulted)
        if wanted is not None:
            return Step(wanted=(wanted,), guesses=(known[last], _OTHER), consulted=frozenset(consulted))
        anchors.sort()
    if known[anchors[0]] == known[last] and (history.walk or not history.scouts):
        return Step(same=True, consulted=frozenset(consulted))

    scouts = _evenly(anchors[0], last, history.scouts)
    missing = tuple(index for index in scouts if index not in known)
    if missing:
        guesses = (known[anchors[0]], known[last])
        return Step(wanted=missing, guesses=guesses, consulted=frozenset(consulted | (set(scouts) - set(missing))))
    consulted.update(scouts)
    anchors = sorted({*anchors, *(index for index in scouts if not isinstance(known[index], Unknown))})
    same = all(known[anchor] == known[last] for anchor in anchors)

    boundaries: list[Boundary] = []
    wanting: list[tuple[int, int, int]] = []
    blocked: Known = {index: known[index] for index in scouts if isinstance(known[index], Unknown)}
    todo = [(low, high, blocked) for low, high in pairwise(anchors)]
    while todo:
        low, high, unknown = todo.pop(0)
        if known[low] == known[high]:
            continue
        middle, unknown, asked = _split(low, high, known, unknown, consulted)
        if middle is None:
            boundaries.append(Boundary(low, high))
        elif asked:
            wanting.append((low, high, middle))
        else:
            todo[:0] = [(low, middle, unknown), (middle, high, unknown)]
    return Step(
        wanted=tuple(middle for _, _, middle in wanting),
        guesses=(known[wanting[0][0]], known[wanting[0][1]]) if wanting else (),
        boundaries=tuple(sorted(boundaries, key=lambda boundary: boundary.before)),
        consulted=frozenset(consulted),
        open=tuple((low, high) for low, high, _ in wanting),
        same=same,
    )


def batch(history: History, known: Known, size: int) -> tuple[int, ...]:
    """Up to `size` versions worth looking at now: those wanted, then those wanted after the likely answers.

    With `size` of 2**k - 1, one round settles k halvings. Only the first is certain to be needed when the history
    holds a single change.
    """
    found: dict[int, None] = {}
    rounds: list[Known] = [known]
    tried = 0
    while rounds and len(found) < size and tried < 4 * size:
        assumed = rounds.pop(0)
        tried += 1
        now = step(history, assumed)
        for index in now.wanted:
            found.setdefault(index)
        if now.wanted:
            first = now.wanted[0]
            rounds += [{**assumed, first: guess} for guess in dict.fromkeys(now.guesses)]
    return tuple(found)[:size]


def remaining(history: History, known: Known) -> int:
    """About how many versions the search will still look at, if there is a single change and all can be judged."""
    now = step(history, known)
    if not now.wanted:
        return 0
    if now.open:
        return sum((high - low - 1).bit_length() for low, high in now.open)
    if history.walk:
        # Growing steps back over half of the history, then halving the last of them.
        return 2 * (history.count - 1).bit_length() + len(now.wanted) - 1
    span = (history.count - 1) // (history.scouts + 1)
    scouts = sum(1 for index in _evenly(0, history.count - 1, history.scouts) if index not in known)
    return len(set(now.wanted) & {0, history.count - 1}) + scouts + max(0, span - 1).bit_length()


_OTHER = "\0other"
_ANY = "\0any"


def _walk(known: Known, last: int, anchors: list[int], consulted: set[int]) -> int | None:
    """The next version to look at on the way back; None when the way ended. Adds what was met to `anchors`."""
    for place in _way_back(last):
        if place >= anchors[-1]:
            return None  # the oldest versions can't be judged, and those after them were met before
        if place not in known:
            return place
        consulted.add(place)
        if not isinstance(known[place], Unknown):
            anchors.append(place)
            if known[place] != known[last] or place == 0:
                return None
    return None


def _way_back(last: int) -> Iterator[int]:
    """1, 3, 7, 15, … before the last, down to the oldest; then from there 1, 2, 4, … forward, should it be broken."""
    stride = 1
    place = last - 1
    while place > 0:
        yield place
        stride *= 2
        place -= stride
    yield 0
    place = 1
    while place < last:
        yield place
        place *= 2


def _split(
    low: int, high: int, known: Known, unknown: Mapping[int, Label], consulted: set[int]
) -> tuple[int | None, Mapping[int, Label], bool]:
    """The version to split (low, high) at: (index or None, the unknown ones met so far, whether it must be asked)."""
    met = {index: label for index, label in unknown.items() if low < index < high}
    postponed: list[int] = []
    for index in _escape(low, high):
        if index in met:
            continue
        if _enclosed(index, met):
            postponed.append(index)
        elif (answer := _look(index, known, met, consulted)) is not None:
            return index, met, answer
    for index in postponed:
        if (answer := _look(index, known, met, consulted)) is not None:
            return index, met, answer
    return None, met, False


def _look(index: int, known: Known, met: dict[int, Label], consulted: set[int]) -> bool | None:
    """True if it must be asked, False if it has a label, None (and noted in `met`) if it can't be judged."""
    if index not in known:
        return True
    consulted.add(index)
    if isinstance(known[index], Unknown):
        met[index] = known[index]
        return None
    return False


def _enclosed(index: int, met: Mapping[int, Label]) -> bool:
    """Whether the nearest unjudgeable neighbours on both sides have the same reason: then it most likely shares it."""
    before = max((other for other in met if other < index), default=None)
    after = min((other for other in met if other > index), default=None)
    return before is not None and after is not None and met[before] == met[after]


def _escape(low: int, high: int) -> Iterator[int]:
    """All versions strictly between: the middle, then 1, 2, 4, … away from it on either side, then by distance.

    What breaks a version breaks its neighbours too, so a search that steps along a run of broken ones pays for each.
    """
    middle = (low + high) // 2
    reach = high - low
    near = {0}
    if middle > low:
        yield middle
    distance = 1
    while distance < reach:
        for index in (middle - distance, middle + distance):
            if low < index < high:
                yield index
        near.add(distance)
        distance *= 2
    for distance in range(reach):
        if distance not in near:
            for index in (middle - distance, middle + distance):
                if low < index < high:
                    yield index


def _evenly(low: int, high: int, number: int) -> tuple[int, ...]:
    """Up to `number` different versions strictly between, evenly spaced."""
    places = (low + round((high - low) * place / (number + 1)) for place in range(1, number + 1))
    return tuple(dict.fromkeys(index for index in places if low < index < high))

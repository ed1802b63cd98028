"""When the snapshots do not explain it: a closer look at what imports saw, and then the narrowest import."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from reprocheck.explain.asking import Asker
from reprocheck.explain.causes import Question
from reprocheck.explain.interventions import Pair
from reprocheck.explain.interventions.base import SIDES, Side, is_kept
from reprocheck.explain.narrowing import narrow
from reprocheck.explain.views import Views, differences
from reprocheck.model import Cause, Origin, Trial

__all__ = ["look_closer", "unknown_cause"]

READERS = ("patches",)
"""Readers too slow for a snapshot after every import."""
MOST_HIDDEN = 3
"""Variables named whose values are not kept."""


def look_closer(question: Question, asker: Asker) -> Question | None:
    """The question with what slow readers find before each import, in one more trial of each order.

    None when they find no difference. Raises `BudgetSpentError`.
    """
    records = asker.records([_looking(question.pair, side) for side in SIDES])
    views = dict(zip(SIDES, map(Views, records), strict=True))
    known = {item.key for item in question.differences}
    prefixes = tuple(f"{name}." for name in READERS)
    new = [
        item
        for item in differences([records[0]], [records[1]])
        if item.key.startswith(prefixes) and item.key not in known
    ]
    if not new:
        return None
    return replace(question, pair=Pair(good=views["good"], bad=views["bad"]), differences=tuple(new))


def _looking(pair: Pair, side: Side) -> Trial:
    trial = pair.trial(side)
    actions = tuple(
        {"do": "look", "at": f"before:{name}", "id": "closer look", "readers": list(READERS)} for name in trial.order
    )
    return Trial(order=trial.order, repeat=0, presence=trial.presence, actions=actions)


def unknown_cause(question: Question, asker: Asker, tried: Sequence[str]) -> Cause | None:
    """What is left to say: the two imports whose order matters, as narrow as they can be told."""
    before = asker.spent
    points = narrow(question.pair, asker)
    if points is None:
        return None
    first, second = points
    changes = f"the outcome changes with whether {first.text()} runs before or after {second.text()}"
    text = f"{_known(question, tried)}; {changes}"
    good, bad = question.pair.trial("good").order, question.pair.trial("bad").order
    return Cause(
        key=f"import.{first.module}",
        kind="unknown",
        status="unknown",
        text=text,
        good=f"{first.text()} after {second.text()}",
        bad=f"{first.text()} before {second.text()}",
        groups=(question.good, question.bad),
        orders=(good, bad),
        event=Origin(by=first.module, file=first.file),
        tried=tuple(tried),
        trials=asker.spent - before,
    )


def _known(question: Question, tried: Sequence[str]) -> str:
    """What the captured state says, as far as it goes."""
    hidden = [
        item.key for item in question.differences if not all(is_kept(item.key, change.value) for change in item.changes)
    ]
    if hidden:
        names = ", ".join(f"`{key}`" for key in hidden[:MOST_HIDDEN]) + (", …" if len(hidden) > MOST_HIDDEN else "")
        differs, its = ("differs", "its") if len(hidden) == 1 else ("differ", "their")
        also = "what else differs was tried and explains nothing; " if tried else ""
        return f"{also}{names} {differs}, but {its} values are kept only as digests and could not be exchanged"
    if tried:
        return "none of the state differences that can be changed explains it"
    if question.differences:
        return "none of the captured state that differs can be changed"
    return "no captured state differs"

from __future__ import annotations

from typing import Any

from reprocheck.explain.asking import Asker
from reprocheck.explain.labels import Labels
from reprocheck.explain.remedy import Proposal, find_remedy, joined
from reprocheck.model import Record, Tolerance, Trial
from tests.unit.explain.making import Engine, failed, record, study

AB, BA = ("a", "b"), ("b", "a")


def asker(limit: int = 50) -> Asker:
    """`b,a` differs from `a,b`, unless PIN is set, and fails with BREAK."""
    known = [record(AB, "1"), record(BA, "2")]

    def outcome(trial: Trial) -> Record:
        if "BREAK" in trial.env:
            return failed(trial.order, "ImportError")
        return record(trial.order, "1" if trial.order == AB or "PIN" in trial.env else "2")

    labels = Labels(
        study(known),
        known,
        patterns=(),
        tolerance_for=lambda _: Tolerance(),
        objects=None,  # type: ignore[arg-type]
    )
    return Asker(Engine(outcome), labels, limit)  # type: ignore[arg-type]


def proposal(name: str, **fields: Any) -> Proposal:
    return Proposal(
        text=f"set {name}", kind="environment", env={name: "1"}, snippets={"shell": f"export {name}=1"}, **fields
    )


def test_the_first_that_works_is_named_with_what_did_not() -> None:
    asking = asker()

    remedy = find_remedy([AB, BA], [proposal("OTHER"), proposal("BREAK"), proposal("PIN"), proposal("NEVER")], asking)

    assert remedy is not None
    assert (remedy.text, remedy.agrees, remedy.group) == ("set PIN", True, "A")
    assert (remedy.orders, remedy.tried_trials) == (2, 6)
    assert remedy.failed == ("set OTHER", "set BREAK"), "to fail alike in all orders is no remedy"
    assert remedy.snippets == {"shell": "export PIN=1"}


def test_none_that_works_is_said() -> None:
    remedy = find_remedy([AB, BA], [proposal("OTHER")], asker())

    assert remedy is not None
    assert (remedy.agrees, remedy.failed) == (False, ("set OTHER",))


def test_nothing_is_said_of_what_was_not_tried() -> None:
    assert find_remedy([AB, BA], [], asker()) is None
    assert find_remedy([AB, BA], [proposal("PIN")], asker(limit=1)) is None
    assert find_remedy([AB, BA], [proposal("PIN")], asker(limit=4)) is None, "one run of each is not enough"


def test_joined_proposals_are_one_change() -> None:
    both = joined([proposal("ONE"), proposal("TWO")])

    assert both.text == "set ONE, and set TWO"
    assert both.apply(Trial(order=AB, repeat=0)).env == {"ONE": "1", "TWO": "1"}
    assert both.snippets == {"shell": "export ONE=1\nexport TWO=1"}

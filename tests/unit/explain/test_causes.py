from __future__ import annotations

from typing import Any

import msgspec
import pytest

from reprocheck.engine.runner import Runner
from reprocheck.explain.asking import Asker
from reprocheck.explain.causes import Findings, Question, find_causes
from reprocheck.explain.interventions import Pair
from reprocheck.explain.labels import Labels
from reprocheck.explain.views import Views, differences
from reprocheck.model import Record, Tolerance, Trial
from tests.unit.explain.making import Engine, record, study

GOOD, BAD = ("a", "b"), ("b", "a")
VARIABLE = "OMP_NUM_THREADS"
THREADS, POOL = "thread count: torch.threads.intra", "thread count: openmp.x.so.max_threads"


def state(count: int, variable: str) -> dict[str, dict[str, Any]]:
    return {
        "environ": {f"python.{VARIABLE}": variable},
        "torch": {"threads.intra": count},
        "openmp": {"x.so.max_threads": count},
    }


def outcome(trial: Trial, *, unfit: tuple[str, ...]) -> Record:
    """`b` reads the variable when it is imported; afterwards only torch's own setter changes what it computes."""
    made = {action["id"]: action for action in trial.actions}
    early = trial.order == BAD or any(action["do"] == "env" for action in trial.actions)
    count = 1 if early else 2
    if THREADS in made and THREADS not in unfit:
        count = made[THREADS]["count"]
    variable = "1" if trial.order == BAD and VARIABLE not in str(trial.actions) else "absent"
    if trial.order == GOOD and early:
        variable = "1"
    states = {
        "t0": state(2, "absent"),
        "t1:a": state(count, variable),
        "t1:b": state(count, variable),
        "t2": state(count, variable),
    }
    settled = record(trial.order, str(count), states=states)
    reports = tuple({"id": name, "ok": name not in unfit, "error": "no setter"} for name in made)
    return msgspec.structs.replace(settled, actions=reports)


def found(*unfit: str) -> Findings:
    engine = Engine(lambda trial: outcome(trial, unfit=unfit))
    runner = Runner(engine, engine, engine.progress)  # type: ignore[arg-type]
    records = [list(runner.run([Trial(order=order, repeat=n) for n in range(2)])) for order in (GOOD, BAD)]
    labels = Labels(
        study([*records[0], *records[1]]),
        [*records[0], *records[1]],
        patterns=(),
        tolerance_for=lambda _: Tolerance(),
        objects=engine,  # type: ignore[arg-type]
    )
    question = Question(
        pair=Pair(good=Views(records[0][0]), bad=Views(records[1][0])),
        good="A",
        bad="B",
        differences=tuple(differences(*records)),
    )
    return find_causes(question, Asker(runner, labels, 100))


@pytest.mark.parametrize("unfit", [(), (POOL,)])
def test_a_cause_is_undone_with_what_followed_and_can_be_undone(unfit: tuple[str, ...]) -> None:
    result = found(*unfit)

    assert [(cause.key, cause.status) for cause in result.causes] == [(f"environ.python.{VARIABLE}", "confirmed")]
    assert "torch on 2 threads" in result.causes[0].text
    assert ("x.so on 2 threads" in result.causes[0].text) is not bool(unfit)
    assert any(f"{POOL}: could not be undone (no setter)" in text for text in result.tried) is bool(unfit)


def test_what_cannot_be_undone_at_all_is_correlated() -> None:
    result = found(THREADS, POOL)

    assert (result.causes[0].key, result.causes[0].status) == (f"environ.python.{VARIABLE}", "correlated")

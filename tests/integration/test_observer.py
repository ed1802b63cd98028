"""The observer arm: a reader that changes what it reads is caught, and the verdict stands on the runs without it."""

from __future__ import annotations

from pathlib import Path

from reprocheck.store.run import Run
from tests.conftest import Lab

HARMFUL = """
    name = "harmful"
    phases = ("t2",)

    def read():
        import sys
        sys.modules["state"].value = sys.modules["state"].value + 1.0
        return {"looked": True}
"""
WORK = "import state\ndef run(): return state.value"


def test_a_harmful_reader_is_caught(lab: Lab) -> None:
    lab.write(state="value = 1.0", a="import state", b="", probe=HARMFUL, work=WORK)

    study = lab.check(probes=[lab.folder / "probe.py"])

    assert study.noise.observer == "differs"
    assert study.verdict == "identical", "the bare runs of both orders agree"
    bare = [record for record in Run(Path(study.run_dir)).records() if not record.trial.capture]
    assert study.noise.trials == len(bare)


def test_a_harmless_reader_is_part_of_the_snapshot(lab: Lab) -> None:
    harmless = 'name = "mine"\nphases = ("t2", "t3")\ndef read():\n    return {"answer": 42}\n'
    lab.write(state="value = 1.0", a="import state", b="", probe=harmless, work=WORK)

    study = lab.check(probes=[lab.folder / "probe.py"])

    snapshots = Run(Path(study.run_dir)).records()[0].snapshots
    assert study.noise.observer == "agrees"
    assert {snapshot.phase: snapshot.kinds.get("mine") for snapshot in snapshots}["t2"] == {"answer": 42}


def test_a_reader_that_raises_is_a_value(lab: Lab) -> None:
    broken = 'name = "broken"\nphases = ("t2",)\ndef read():\n    raise RuntimeError("no")\n'
    lab.write(state="value = 1.0", a="import state", b="", probe=broken, work=WORK)

    study = lab.check(probes=[lab.folder / "probe.py"])

    snapshot = Run(Path(study.run_dir)).records()[0].snapshots[-2]
    assert study.verdict == "identical"
    assert snapshot.kinds["broken"] == {"error": "RuntimeError: no"}


def test_without_the_observer_nothing_runs_bare(lab: Lab) -> None:
    lab.write(state="value = 1.0", a="import state", b="", work=WORK)

    study = lab.check(observer=False)

    assert study.noise.observer == "not run"
    assert all(record.trial.capture for record in Run(Path(study.run_dir)).records())

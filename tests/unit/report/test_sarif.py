"""SARIF against its schema, and what GitHub asks for beyond it: every result at a line of a file that is there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from reprocheck.model import Change, DifferingTest, Event, Origin, StateDifference, Study, Suite, Target
from reprocheck.report.sarif import RULES, sarif_json
from tests.samples import HOSTILE, full_study, tiny_study

SCHEMA = json.loads((Path(__file__).parents[2] / "data/schemas/sarif-2.1.0-rtm.4.json").read_text())


def checked(root: Path, *studies: Study) -> dict[str, Any]:
    """The run of the document, validated."""
    document = json.loads(sarif_json(studies, root=root))
    jsonschema.Draft4Validator(SCHEMA).validate(document)
    run: dict[str, Any] = document["runs"][0]
    for result in run["results"]:
        place = result["locations"][0]["physicalLocation"]
        file = root / place["artifactLocation"]["uri"]
        lines = len(file.read_text().splitlines())
        assert 1 <= place["region"]["startLine"] <= lines
        assert result["ruleId"] == run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"]
    return run


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/work.py").write_text("import a\n\n\ndef run():\n    return 1\n" + "x = 1\n" * 40)
    (tmp_path / "src/box.py").write_text("import os\nos.environ['OMP_NUM_THREADS'] = '1'\n")
    return tmp_path


def at(root: Path, study: Study) -> Study:
    target = Target(text="src/work.py::run", kind="function", path=str(root / "src/work.py"), name="run")
    return msgspec.structs.replace(study, target=target)


def places(run: dict[str, Any]) -> list[tuple[str, str, int]]:
    found = []
    for result in run["results"]:
        place = result["locations"][0]["physicalLocation"]
        found.append((result["ruleId"], place["artifactLocation"]["uri"], place["region"]["startLine"]))
    return found


def test_a_divergence_is_at_the_workload(root: Path, tmp_path: Path) -> None:
    study = at(root, full_study(tmp_path / "run"))
    cause = msgspec.structs.replace(study.causes[0], event=Origin(by="box", file=str(root / "src/box.py"), line=2))

    run = checked(root, msgspec.structs.replace(study, causes=(cause,)))

    assert places(run)[0] == ("order-dependent", "src/work.py", 4)
    assert ("cause", "src/box.py", 2) in places(run)
    assert [result["level"] for result in run["results"]] == ["error", "warning", "warning", "warning"]


def test_what_lies_outside_the_repository_is_told_at_the_workload(root: Path, tmp_path: Path) -> None:
    run = checked(root, at(root, full_study(tmp_path / "run")))

    assert {file for _, file, _ in places(run)} == {"src/work.py"}


def test_what_has_no_place_is_a_notification_not_a_result(root: Path, tmp_path: Path) -> None:
    run = checked(root, full_study(tmp_path / "run"))

    assert run["results"] == []
    notes = run["invocations"][0]["toolExecutionNotifications"]
    assert notes[0]["descriptor"]["id"] == "order-dependent"


def test_agreement_has_no_results(root: Path) -> None:
    run = checked(root, at(root, tiny_study()))

    assert run["results"] == []
    assert "toolExecutionNotifications" not in run["invocations"][0]


def test_no_studies(root: Path) -> None:
    assert checked(root)["results"] == []


def test_hazards_are_notes_at_the_line_that_set_them(root: Path) -> None:
    event = Event(kind="putenv", at=0.1, phase="t1:b", name="X", file=str(root / "src/box.py"), line=2)
    change = Change(group="a,b", order=("a", "b"), value="1", phase="t1:b", event=event)
    hazard = StateDifference(key="environ.python.X", phase="t2", severity="latent", why="Read.", changes=(change,))

    run = checked(root, at(root, tiny_study(hazards=(hazard,))))

    assert places(run) == [("hazard", "src/box.py", 2)]
    assert run["results"][0]["level"] == "note"


def test_tests_of_a_suite_are_at_their_definitions(root: Path) -> None:
    (root / "test_it.py").write_text("class TestX:\n    def test_y(self):\n        pass\n")
    test = DifferingTest(
        test="test_it.py::TestX::test_y[1]", verdict="noisy", reason="r", orders={"a,b": {"passed": 1}}
    )
    target = Target(text="pytest", kind="pytest", args=("test_it.py",))
    study = tiny_study(verdict="noisy", exit_code=1, target=target, suite=Suite(tests=1, differing=(test,)))

    run = checked(root, study)

    assert places(run) == [("noisy", "test_it.py", 1), ("noisy", "test_it.py", 2)]


def test_a_finding_keeps_its_fingerprint_when_its_line_moves(root: Path, tmp_path: Path) -> None:
    study = at(root, full_study(tmp_path / "run"))
    before = checked(root, study)["results"][0]
    work = root / "src/work.py"
    work.write_text("\n\n\n" + work.read_text())
    import reprocheck.report.source

    reprocheck.report.source._definition.cache_clear()
    after = checked(root, study)["results"][0]

    assert before["locations"] != after["locations"]
    assert before["partialFingerprints"] == after["partialFingerprints"]


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_names(root: Path, hostile: str) -> None:
    study = tiny_study(verdict="noisy", exit_code=1, headline=f"noisy: {hostile}", workload=hostile)

    run = checked(root, at(root, study))

    assert len(run["results"]) == 1


def test_every_verdict_that_is_no_agreement_has_a_rule() -> None:
    from typing import get_args

    from reprocheck.model import Verdict

    assert set(get_args(Verdict)) - {"identical"} <= set(RULES)

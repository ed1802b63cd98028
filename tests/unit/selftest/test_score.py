from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reprocheck.model import Cause, Origin, Remedy, Rule
from reprocheck.selftest.faults import FAULTS
from reprocheck.selftest.planted import Fault
from reprocheck.selftest.score import Case, SelfTest, judge_case, summary
from reprocheck.selftest.table import lines, row
from tests.unit.explain.making import record, study

KEY = "environ.python.OMP_NUM_THREADS"
FOLDER = Path("/planted")
FAULT = Fault(
    name="a variable",
    kind="environment",
    sources={"a": "\n    import os\n    os.environ['X'] = '1'  # planted\n", "work": ""},
    verdict="order-dependent",
    causes=frozenset({KEY}),
)


def judged(fault: Fault = FAULT, **fields: Any) -> Case:
    return judge_case(fault, study([record("ab"), record("ba", "2")], **fields), FOLDER, 20, 1.234)


def cause(status: Any = "confirmed", line: int | None = 2) -> Cause:
    return Cause(
        key=KEY, kind="environment", status=status, text="", event=Origin(by="a", file="/planted/a.py", line=line)
    )


RULE = Rule(sentence="", kind="order", pair=("b", "a"), explained=2, total=2)
REMEDY = Remedy(text="", agrees=True)


def test_all_found() -> None:
    case = judged(causes=(cause(),), rule=RULE, remedy=REMEDY)

    assert (case.verdict, case.rule, case.place, case.cause, case.remedy) == (True,) * 5
    assert summary([case]) == (2, 2, 1.0, 1.0)
    assert row(case).startswith("✓ ✓ ✓ ✓ ✓  a variable")


@pytest.mark.parametrize(
    ("fields", "missed"),
    [
        ({"causes": (cause(line=7),)}, "place"),
        ({"causes": (cause("correlated"),)}, "cause"),
        ({"causes": (cause("unknown"),)}, "cause"),
        ({"causes": ()}, "cause"),
        ({"rule": None}, "rule"),
        ({"remedy": None}, "remedy"),
        ({"verdict": "identical"}, "verdict"),
    ],
)
def test_what_is_missed_is_shown(fields: dict[str, Any], missed: str) -> None:
    settled: dict[str, Any] = {"causes": (cause(),), "rule": RULE, "remedy": REMEDY}
    case = judged(**(settled | fields))

    assert getattr(case, missed) is False
    if missed in ("cause", "verdict"):
        assert summary([case])[2] < 1


def test_a_cause_named_where_none_was_planted_costs_precision() -> None:
    innocent = Fault(name="none", kind="nothing", sources={}, verdict="order-dependent", count="none", pair=None)

    case = judged(innocent, causes=(cause(),))

    assert case.cause is False
    planted, found, recall, precision = summary([case])
    assert (planted, found, recall, precision) == (1, 1, 1.0, 0.5)


def test_the_table_says_what_was_wrong_and_what_was_not_checked() -> None:
    case = judged()
    planted, found, recall, precision = summary([case])
    result = SelfTest(
        reprocheck_version="0",
        quick=True,
        planted=planted,
        found=found,
        recall=recall,
        precision=precision,
        trials=20,
        seconds=1.0,
        not_checked=(),
        cases=(case,),
    )

    text = "\n".join(lines(result))

    assert not result.passed
    assert f"planted {KEY}, found no cause" in text
    assert "recall 50.0%, precision 100.0%" in text


def test_the_faults_are_many_and_of_every_kind() -> None:
    assert sum(fault.count != "none" for fault in FAULTS) >= 40
    assert {fault.count for fault in FAULTS} == {"single", "paired", "none"}
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
    kinds = {fault.kind for fault in FAULTS}
    assert kinds >= {"environment", "threads", "floating point", "floating point of worker threads", "random state"}
    assert kinds >= {"precision", "patch", "library copy", "affinity", "locale", "errstate", "crash", "hang", "noise"}
    assert "nothing" in kinds


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_every_fault_is_python_and_complete(fault: Fault, tmp_path: Path) -> None:
    fault.write(tmp_path)

    for path in tmp_path.rglob("*.py"):
        compile(path.read_text(), str(path), "exec")
    for name in fault.imports:
        assert (tmp_path / f"{name}.py").exists() or (tmp_path / name / "__init__.py").exists()
    assert bool(fault.causes) == (fault.count != "none")
    assert all((tmp_path / file).exists() for file, _ in fault.places())

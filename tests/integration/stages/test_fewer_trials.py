"""`--fail-fast` and `--reduce trace` in real interpreters: what is saved, what is said, and what is never lost."""

from __future__ import annotations

import json
from pathlib import Path

from reprocheck.report.evidence import Evidence
from reprocheck.report.html import study_html
from reprocheck.report.json import study_json
from reprocheck.report.markdown import study_markdown
from reprocheck.report.text import console_for, print_study
from reprocheck.store.run import Run
from tests.conftest import Lab

WORK = "import state\ndef run(): return {'y': state.value * 2.0}"
FIRST_WINS = "import state\nif state.value is None: state.value = {value}"


def trials_of(run_dir: str) -> int:
    return sum(record.trial.judged for record in Run(Path(run_dir)).records())


def test_fail_fast_ends_at_the_first_established_divergence(lab: Lab) -> None:
    lab.write(state="value = None", work=WORK)
    lab.write({f"{name}.py": FIRST_WINS.format(value=number) for number, name in enumerate("abc", 1)})

    study = lab.check(imports=["a", "b", "c"], fail_fast=True)

    assert study.verdict == "order-dependent"
    assert [arm.trials for arm in study.orders] == [6, 6]
    assert study.not_run is not None
    assert len(study.not_run.orders) == 4
    assert study.coverage is not None
    assert (study.coverage.run, study.coverage.planned) == (2, 6)
    assert study.coverage.stated.triples.complete
    assert (study.coverage.achieved.pairs.covered, study.coverage.achieved.triples.covered) == (6, 2)
    assert trials_of(study.run_dir) == 12


def test_fail_fast_that_finds_nothing_has_run_everything(lab: Lab) -> None:
    lab.write(state="value = 1.0", a="", b="", c="", work=WORK)

    study = lab.check(imports=["a", "b", "c"], fail_fast=True)

    assert (study.verdict, study.noise.trials, study.not_run) == ("identical", 18, None)


def test_a_suspect_order_and_the_reference_are_told_apart_on_fresh_runs(lab: Lab) -> None:
    last = "import sys, state\nif 'a' in sys.modules and 'b' not in sys.modules: state.value = 2.0"
    lab.write(state="value = 1.0", a="", b="", c=last, work=WORK)

    study = lab.check(imports=["a", "b", "c"], fail_fast=True)

    assert study.verdict == "order-dependent"
    assert study.noise.tested == 12
    assert "over 12 of them" in study.headline
    assert study.not_run is not None
    assert {arm.order: arm.group for arm in study.orders}["a", "c", "b"] == "B"


def test_achieved_coverage_counts_orders_as_they_were_and_is_in_every_report(lab: Lab) -> None:
    # `b` pulls `a` in, so one order never really runs; `c` dies where `a` was there before it.
    lab.write(
        state="value = 1.0", a="", b="import a", c="import sys\nif 'a' in sys.modules: raise ValueError", work=WORK
    )

    study = lab.check(imports=["a", "b", "c"])

    covered = study.coverage
    assert covered is not None
    assert covered.stated.pairs.complete
    assert covered.stated.triples.covered == 6
    assert covered.achieved.triples.covered < 6
    assert ("a", "c", "b") in covered.cut_short
    said = f"{covered.achieved.triples.covered} of 6 ordered triples"
    assert said in study_markdown(study)
    with (lab.folder / "report.txt").open("w+") as stream:
        print_study(study, console_for(stream))
        stream.seek(0)
        assert said in stream.read()
    assert said in study_html(Evidence.of(study))
    assert json.loads(study_json(study))["coverage"]["achieved"]["triples"] == {
        "covered": covered.achieved.triples.covered,
        "total": 6,
    }


def test_a_cut_plan_says_what_it_is_and_covers(lab: Lab) -> None:
    lab.write(state="value = 1.0", a="", b="", c="", work=WORK)

    study = lab.check(imports=["a", "b", "c"], max_orders=2)

    assert study.plan.startswith("all: 2 orders of 3 subjects, the first of 6; would cover 6 of 6 ordered pairs")
    assert study.coverage is not None
    assert study.coverage.achieved == study.coverage.stated
    assert study.coverage.achieved.triples.covered == 2


# --- --reduce trace ---------------------------------------------------------------------------------------------

SETS = "import os\nos.environ.setdefault('OMP_NUM_THREADS', {value!r})"


def test_orders_with_equal_load_traces_are_run_once(lab: Lab) -> None:
    # Two modules that set something, two that do nothing: 24 orders, two ways to load.
    lab.write(a=SETS.format(value="1"), b=SETS.format(value="2"), c="", d="")
    lab.write(work="import os\ndef run(): return float(os.environ['OMP_NUM_THREADS'])")

    study = lab.check(imports=["a", "b", "c", "d"], reduce="trace")

    reduction = study.reduction
    assert study.verdict == "order-dependent"
    assert reduction is not None
    assert (reduction.probes, reduction.classes, reduction.abandoned) == (24, 2, "")
    assert [audit.agrees for audit in reduction.audits] == [True, True]
    assert reduction.left_out == 20
    assert reduction.saved == 20 * 4
    assert trials_of(study.run_dir) == 4 * 4
    alike = {arm.order: arm.same_as for arm in study.orders}
    assert len(study.orders) == 24
    assert sum(stand is not None for stand in alike.values()) == 20
    assert {alike[order] for order in alike if order.index("a") < order.index("b")} - {None} == {tuple("abcd")}


def test_an_audit_that_disagrees_brings_all_orders_back(lab: Lab) -> None:
    # What decides is a Python object: no load trace shows it.
    lab.write(state="value = None", work=WORK)
    lab.write({f"{name}.py": FIRST_WINS.format(value=number) for number, name in enumerate("abc", 1)})

    study = lab.check(imports=["a", "b", "c"], reduce="trace")

    assert study.verdict == "order-dependent"
    assert {arm.group for arm in study.orders} == {"A", "B", "C"}
    assert study.reduction is not None
    assert study.reduction.abandoned.startswith("`c,b,a` loads like `a,b,c`")
    assert (study.reduction.left_out, study.reduction.saved) == (0, 0)
    assert "warning: `c,b,a` loads like" in study_markdown(study).replace("\\", "")


def test_imports_that_fail_are_not_taken_to_be_alike(lab: Lab) -> None:
    lab.write(state="value = 1.0", a="", b="import sys\nif 'a' in sys.modules: raise ValueError", work=WORK)

    study = lab.check(reduce="trace")

    assert study.verdict == "fails-in-some-orders"
    assert study.reduction is not None
    assert study.reduction.classes == 2


def test_probes_leave_nothing_that_is_compared(lab: Lab) -> None:
    lab.write(state="value = 1.0", a="", b="", work=WORK)

    study = lab.check(reduce="trace")

    probes = [record for record in Run(Path(study.run_dir)).records() if record.trial.imports_only]
    assert len(probes) == 2
    assert all(record.ok and not record.outputs for record in probes)
    assert study.verdict == "identical"

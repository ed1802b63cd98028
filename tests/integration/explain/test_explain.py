"""The whole of `explain` on tiny toolboxes: rule, place, cause both ways, consequences, remedy, reproducer, budget."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reprocheck.api import explain_run
from reprocheck.errors import UsageError
from reprocheck.model import Study
from reprocheck.report.explanation import explanation
from reprocheck.store.run import Run
from tests.conftest import Lab

SETS = "import os\nos.environ['OMP_NUM_THREADS'] = '1'"
READS = "import os\ncount = float(os.environ.get('OMP_NUM_THREADS', '2'))"
RETURNS = "import b\ndef run(): return b.count"


def explained(lab: Lab, imports: tuple[str, ...] = ("a", "b"), **options: Any) -> Study:
    return lab.check(imports=imports, explain=True, **options)


def text_of(study: Study) -> str:
    return "\n".join(f"{name}: {text}" for name, text in explanation(study))


def test_a_variable_with_everything_that_belongs_to_it(lab: Lab) -> None:
    lab.write(a=SETS, b=READS, work=RETURNS)

    study = explained(lab)

    assert study.rule is not None
    assert study.rule.sentence == "outputs follow one rule: `b` before `a` → group B (2 of 2 orders)"
    assert study.rule.pair == ("a", "b")
    (cause,) = study.causes
    assert (cause.key, cause.kind, cause.status) == ("environ.python.OMP_NUM_THREADS", "environment", "confirmed")
    assert (cause.good, cause.bad) == ("1", "absent")
    assert cause.event is not None
    assert (cause.event.by, cause.event.file, cause.event.line) == ("a", str(lab.folder / "a.py"), 2)
    assert "`a,b` gives group B (2 runs)" in cause.text
    assert "`b,a` gives group A (2 runs)" in cause.text
    assert study.remedy is not None
    assert study.remedy.agrees
    assert study.remedy.text == "set `OMP_NUM_THREADS=1` before Python starts"
    assert (study.remedy.group, study.remedy.tried_trials) == ("A", 6)
    assert study.remedy.snippets["shell"] == "export OMP_NUM_THREADS=1"
    assert study.budget is not None
    assert study.budget.trials == 10, "two and two for the cause, six for the remedy"
    assert "confirmed: environment" in text_of(study)


def test_the_reproducer_is_a_plain_script(lab: Lab) -> None:
    lab.write(a=SETS, b=READS, work=RETURNS)

    study = explained(lab)

    assert study.reproducer is not None
    assert study.reproducer.reproduces
    script = Path(study.run_dir) / study.reproducer.path
    done = subprocess.run(
        [sys.executable, "-S", str(script)], capture_output=True, text=True, check=False, cwd=lab.folder.parent
    )
    assert done.returncode == 1
    assert "different: 1 of 1 output" in done.stdout
    assert "with the remedy (OMP_NUM_THREADS=1):\nequal: 1 output" in done.stdout
    assert "import reprocheck" not in script.read_text()


def test_subjects_that_do_not_matter_are_left_out(lab: Lab) -> None:
    lab.write(a=SETS, b=READS, c="import json", d="import fractions", work=RETURNS)

    study = explained(lab, ("d", "a", "c", "b"))

    assert study.rule is not None
    assert (study.rule.kind, study.rule.explained, study.rule.total) == ("order", 24, 24)
    assert study.rule.pair is not None
    assert set(study.rule.pair) == {"a", "b"}
    assert study.rule.context == ()
    assert [cause.status for cause in study.causes] == ["confirmed"]
    assert study.reproducer is not None
    assert "`a,b` and `b,a`" in study.reproducer.text, "the smallest orders"


def test_context_is_named(lab: Lab) -> None:
    lab.write(
        a=SETS,
        b="import os, sys\ncount = float(os.environ.get('OMP_NUM_THREADS', '2')) if 'c' in sys.modules else 0.0",
        c="",
        work="import sys, b\ndef run(): return b.count",
    )

    study = explained(lab, ("c", "a", "b"))

    assert study.rule is not None
    assert study.rule.context == ("c",)
    assert "matters only when `c` is imported, too" in study.rule.sentence


def test_three_groups_share_one_cause(lab: Lab) -> None:
    lab.write(
        u="import os\nos.environ['OMP_NUM_THREADS'] = '1'",
        n=READS,
        t=READS,
        work="import n, t\ndef run(): return [n.count, t.count]",
    )

    study = explained(lab, ("n", "t", "u"))

    assert study.rule is not None
    assert study.rule.explained == study.rule.total == 6
    assert {cause.key for cause in study.causes} == {"environ.python.OMP_NUM_THREADS"}
    assert study.causes[0].status == "confirmed"
    assert study.remedy is not None
    assert study.remedy.agrees


def test_a_design_is_checked_on_orders_held_back(lab: Lab) -> None:
    names = ("a", "b", "c", "d", "e")
    lab.write(a=SETS, b=READS, c="", d="", e="", work=RETURNS)

    study = explained(lab, names, orders="pairs")

    assert study.rule is not None
    assert study.rule.held_back >= 1
    assert study.rule.explained == study.rule.total > 2
    assert "`b` before `a`" in study.rule.sentence or "`a` before `b`" in study.rule.sentence


def test_orders_that_load_alike_are_not_held_back(lab: Lab) -> None:
    lab.write(a=f"{SETS}\nimport c", b=READS, c="", work=RETURNS)

    study = explained(lab, ("a", "b", "c"))

    assert any(arm.same_as for arm in study.orders)
    assert study.rule is not None
    assert study.rule.held_back == 0
    assert study.rule.explained == study.rule.total == len({arm.effective_order for arm in study.orders})


def test_presence(lab: Lab) -> None:
    lab.write(a="", b=SETS, work="import os\ndef run(): return os.environ.get('OMP_NUM_THREADS', 'none')")

    study = explained(lab, presence=True)

    assert study.verdict == "identical"
    assert study.rule is not None
    assert study.rule.kind == "presence"
    assert study.rule.sentence.startswith("merely importing `b` changes the result; its place does not matter")
    assert [(cause.key, cause.status) for cause in study.causes] == [("environ.python.OMP_NUM_THREADS", "confirmed")]
    assert study.remedy is not None
    assert study.remedy.agrees
    assert study.remedy.text.startswith("do not import `b` before the workload has run")
    assert study.remedy.tried_trials >= 6
    assert "import b" in "".join(study.remedy.snippets.values())


def test_other_releases_of_the_package_are_named_but_not_claimed(lab: Lab) -> None:
    """Nothing is installed to explain: the command that tries them is handed out instead."""
    lab.write(
        {
            "site-packages/a.py": SETS,
            "site-packages/maker_of_a-1.4.dist-info/METADATA": "Name: maker-of-a\nVersion: 1.4\n",
            "site-packages/maker_of_a-1.4.dist-info/RECORD": "a.py,,\n",
        },
        b=READS,
        work=RETURNS,
    )

    study = explained(lab, sys_path=[str(lab.folder / "site-packages")])

    assert study.remedy is not None
    (other,) = study.remedy.untried
    assert other.startswith("another release of `maker-of-a` (1.4 is installed) may not do this; not tried")
    assert "reprocheck bisect work.py::run --package maker-of-a --bad 1.4 --imports a,b" in other
    assert other in text_of(study)


def test_crash_with_a_rule_and_an_import_that_helps(lab: Lab) -> None:
    lab.write(
        a="",
        b="import sys, os, signal\nif 'a' in sys.modules: os.kill(os.getpid(), signal.SIGSEGV)",
        work="def run(): return 1.0",
    )

    study = explained(lab)

    assert study.rule is not None
    assert study.rule.sentence.startswith("outcomes follow one rule")
    assert study.causes[0].status == "unknown"
    assert study.remedy is not None
    assert study.remedy.text == "import `b` first"


def test_unseen_state_is_narrowed_to_two_modules(lab: Lab) -> None:
    for name in "ab":
        lab.write(
            {
                f"{name}/__init__.py": f"from {name} import one, two, three",
                f"{name}/one.py": "import fractions",
                f"{name}/two.py": f"import kept\nkept.value = kept.value or {ord(name)}.0",
                f"{name}/three.py": "import decimal",
            }
        )
    lab.write(kept="value = None", work="import kept\ndef run(): return kept.value")

    study = explained(lab)

    (cause,) = study.causes
    assert cause.status == "unknown"
    assert "no captured state differs" in cause.text
    assert "`b.two`" in cause.text
    assert "`a.two`" in cause.text
    assert cause.event is not None
    assert cause.event.file == str(lab.folder / "b" / "two.py")


def test_a_variable_whose_value_is_not_kept_is_told_all_the_same(lab: Lab) -> None:
    lab.write(
        a="import os\nos.environ.setdefault('MODE', 'fast')",
        b="import os\nos.environ.setdefault('MODE', 'exact')",
        work="import os\ndef run(): return float(os.environ['MODE'] == 'fast')",
    )

    (cause,) = explained(lab).causes

    assert cause.status == "unknown"
    assert cause.text.startswith(
        "`environ.python.MODE` differs, but its values are kept only as digests and could not be exchanged; the outcome"
    )


def test_a_first_run_unlike_all_later_ones_hides_no_cause(lab: Lab) -> None:
    """As with something that is compiled when it is first needed."""
    lab.write(
        a="""
            import os
            from pathlib import Path
            built = Path(__file__).with_name("built")
            os.environ["MKL_BUILD"] = "known" if built.exists() else "new"
            built.touch()
        """,
        b="import os\ncount = float('MKL_BUILD' in os.environ)",
        work=RETURNS,
    )

    study = explained(lab, jobs=1)

    (cause,) = study.causes
    assert (cause.key, cause.status) == ("environ.python.MKL_BUILD", "confirmed")


def test_what_works_in_one_direction_only_is_correlated(lab: Lab) -> None:
    lab.write(
        a="import math\ndef mine(numbers): return 7.0\nmath.fsum = mine",
        b="import math\ntaken = math.fsum",
        work="import b\ndef run(): return b.taken([1.0, 2.0])",
    )

    study = explained(lab)

    (cause,) = study.causes
    assert (cause.key, cause.status) == ("patches.math.fsum", "correlated")
    assert "with the original `math.fsum` when `b` is imported" in cause.text
    assert any("does not exist in this process" in line for line in cause.tried)


def test_value_that_is_not_kept_can_only_be_taken_away(lab: Lab) -> None:
    lab.write(
        a="import os\nos.environ['TOOLBOX_KEY'] = 'private'",
        b="import os\ncount = float(len(os.environ.get('TOOLBOX_KEY', '')))",
        work=RETURNS,
    )

    study = explained(lab)

    (cause,) = study.causes
    assert (cause.key, cause.status) == ("environ.python.TOOLBOX_KEY", "correlated")
    folder = Path(study.run_dir)
    kept = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    assert b"private" not in kept.replace(b"PRIVATE", b"")


def test_two_causes_and_one_joint_remedy(lab: Lab) -> None:
    lab.write(
        a="import os\nos.environ['OMP_NUM_THREADS'] = '1'\nos.environ['MKL_NUM_THREADS'] = '3'",
        b="import os\ncount = [os.environ.get(n, '2') for n in ('OMP_NUM_THREADS', 'MKL_NUM_THREADS')]",
        work=RETURNS,
    )

    study = explained(lab)

    assert {cause.key for cause in study.causes} == {
        "environ.python.OMP_NUM_THREADS",
        "environ.python.MKL_NUM_THREADS",
    }
    assert all(cause.status == "confirmed" for cause in study.causes)
    assert study.remedy is not None
    assert "OMP_NUM_THREADS=1" in study.remedy.text
    assert "MKL_NUM_THREADS=3" in study.remedy.text


def test_what_follows_from_the_cause(lab: Lab) -> None:
    lab.write(
        a=SETS,
        b="""
            import os, sys
            if os.environ.get("OMP_NUM_THREADS") == "1":
                sys.setrecursionlimit(1234)
        """,
        work="import sys\ndef run(): return float(sys.getrecursionlimit())",
    )

    study = explained(lab)

    assert [cause.key for cause in study.causes] == ["environ.python.OMP_NUM_THREADS"]
    assert [(item.key, item.good) for item in study.consequences] == [("process.recursion_limit", 1234)]


def test_tolerance_joins_groups(lab: Lab) -> None:
    # `c` moves the last bit only, which the tolerance allows; `a` before `b` is the difference that counts.
    lab.write(
        a=SETS,
        b=READS,
        c="import sys\nlast = 'a' in sys.modules",
        work="import b, c\ndef run(): return b.count + 2**-52 * c.last",
    )

    study = explained(lab, ("a", "b", "c"), rtol=1e-12)

    assert study.rule is not None
    assert study.rule.explained == study.rule.total == 6
    assert "`b` before `a`" in study.rule.sentence
    assert [cause.key for cause in study.causes] == ["environ.python.OMP_NUM_THREADS"]


@pytest.mark.parametrize(
    ("reads", "key"),
    [
        ("__import__('random').random()", "process.random_state"),
        ("float(int.from_bytes(os.urandom(6), 'big'))", "process.entropy"),
        ("time.time()", "process.clock"),
        ("float(id(object()))", "process.addresses"),
    ],
)
def test_noise_is_named(lab: Lab, reads: str, key: str) -> None:
    lab.write(a="import random", b="", work=f"import os, time\ndef run(): return {reads}")

    study = explained(lab, max_repeat=5)

    assert study.verdict == "noisy"
    assert [(cause.key, cause.status) for cause in study.causes] == [(key, "confirmed")]
    assert study.remedy is not None
    assert study.remedy.agrees


def test_noise_that_no_pin_stops(lab: Lab) -> None:
    lab.write(a="", b="", work="import os\ndef run(): return float(os.getpid())")

    study = explained(lab, max_repeat=4)

    assert study.causes[0].status == "unknown"
    assert "with every pin that was tried" in study.causes[0].text


def test_noise_on_top_of_an_order_effect(lab: Lab) -> None:
    lab.write(a=SETS, b=READS, work="import os, b\ndef run(): return b.count + 8.0 * (os.urandom(1)[0] % 2)")

    study = explained(lab, max_repeat=12)

    assert study.verdict == "order-dependent-with-noise"
    assert [(cause.key, cause.status) for cause in study.causes] == [("environ.python.OMP_NUM_THREADS", "confirmed")]


@pytest.mark.parametrize("verdict", ["identical", "fails-everywhere"])
def test_nothing_to_explain(lab: Lab, verdict: str) -> None:
    lab.write(a="", b="", work="def run(): return 1.0" if verdict == "identical" else "def run(): raise ValueError")

    study = explained(lab)

    assert study.verdict == verdict
    assert (study.rule, study.causes, study.budget) == (None, (), None)
    assert explanation(study) == []


def test_budget_ends_with_what_is_known_and_is_resumed(lab: Lab) -> None:
    lab.write(a=SETS, b=READS, work=RETURNS)
    short = explained(lab, budget=2)

    assert short.budget is not None
    assert (short.budget.trials <= 2, short.budget.complete) == (True, False)
    assert short.rule is not None, "that costs nothing"
    assert "reprocheck explain" in dict(explanation(short))["budget"]

    again = explain_run(short.run_dir, environment=dict(os.environ))

    assert [cause.status for cause in again.causes] == ["confirmed"]
    assert again.remedy is not None
    assert again.budget is not None
    assert again.budget.trials <= 12
    assert again.run_dir == short.run_dir
    once_more = explain_run(short.run_dir, environment=dict(os.environ))
    assert once_more.budget is not None
    assert once_more.budget.trials == 0, "everything is in the journal"
    assert once_more.causes == again.causes


def test_stored_run_whose_outcomes_changed_is_refused(lab: Lab) -> None:
    lab.write(a=SETS, b=READS, work=RETURNS)
    study = lab.check()
    lab.write(b="count = 5.0")

    with pytest.raises(UsageError, match="gave group A when this run was made and does not now"):
        explain_run(study.run_dir, environment=dict(os.environ))

    assert (Path(study.run_dir) / "study.json").exists(), "the run is still there"


def test_a_stored_run_is_explained_with_its_own_readers(lab: Lab) -> None:
    reader = 'name = "mine"\nphases = ("t2",)\ndef read():\n    return {"answer": 42}\n'
    lab.write(a=SETS, b=READS, work=RETURNS, reader=reader)
    study = lab.check(probes=[lab.folder / "reader.py"])
    before = len(Run(Path(study.run_dir)).records())

    explain_run(study.run_dir, environment=dict(os.environ))

    added = [record for record in Run(Path(study.run_dir)).records()[before:] if record.trial.capture]
    assert added
    assert all(snapshot.kinds["mine"] for record in added for snapshot in record.snapshots if snapshot.phase == "t2")


def test_capture_that_disturbs_is_kept_out_of_the_labels(lab: Lab) -> None:
    lab.write(
        a=SETS,
        b=READS,
        work="""
            import sys, b
            def run():
                return b.count + 16.0 * ("_reprocheck_worker.capture" in sys.modules)
        """,
    )

    study = explained(lab, max_repeat=12)

    assert study.noise.observer == "differs"
    assert study.rule is not None
    assert study.rule.sentence == "outputs follow one rule: `b` before `a` → group B (2 of 2 orders)"
    assert [cause.key for cause in study.causes] == ["environ.python.OMP_NUM_THREADS"]

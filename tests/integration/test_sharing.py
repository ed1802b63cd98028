"""`isolation="shared-prefix"` through the whole line: the same verdicts with fewer fresh trials, and honest notes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from itertools import permutations
from pathlib import Path

import pytest

from reprocheck import check
from reprocheck.compare.tolerance import tolerance_for
from reprocheck.crossing import under_tolerance
from reprocheck.errors import UsageError
from reprocheck.model import Study, Target, Tolerance
from reprocheck.store.run import Run
from tests.conftest import Lab

pytestmark = pytest.mark.long

SHARED = "shared-prefix"
A = "import os; os.environ.setdefault('FIRST', 'a')\n"
B = "import os; os.environ.setdefault('FIRST', 'b')\n"
THREAD = """
import threading, time
threading.Thread(target=time.sleep, args=(600,), daemon=True, name='tick').start()
"""
FIRST = "import os\ndef run():\n    return os.environ['FIRST'] if 'FIRST' in os.environ else ''\n"


def groups(study: Study) -> dict[tuple[str, ...], str | None]:
    return {arm.order: arm.group for arm in study.orders}


def trials(study: Study) -> list[tuple[tuple[str, ...], bool]]:
    """(order, forked) of each trial that was run."""
    return [(record.trial.order, record.trial.forked) for record in Run(Path(study.run_dir)).records()]


def test_identical(lab: Lab) -> None:
    lab.write(a="", b="", c="", d="", work="def run():\n    return 1.5\n")

    study = lab.check(imports="abcd", orders="all", isolation=SHARED)

    assert study.verdict == "identical"
    assert study.isolation == SHARED
    assert len(study.orders) == 24
    assert {arm.group for arm in study.orders} == {"A"}
    # The first order and the one that turns every pair round, three trials each; the rest stands on forks.
    assert study.noise.trials == 6
    assert sum(arm.forked for arm in study.orders) == 22
    assert study.groups[0].trials == 6 + 22
    assert [forked for _, forked in trials(study)].count(True) == 23
    assert any("22 of 24 orders were run once, forked" in note for note in study.notes)


def test_order_dependent_in_the_same_orders_as_fresh(lab: Lab) -> None:
    lab.write(a=A, b=B, c="", work=FIRST)

    fresh = lab.check(imports="abc", orders="all")
    shared = lab.check(imports="abc", orders="all", isolation=SHARED)

    assert shared.verdict == fresh.verdict == "order-dependent"
    assert groups(shared) == groups(fresh)
    assert [group.orders for group in shared.groups] != []
    assert {g.id: set(g.orders) for g in shared.groups} == {g.id: set(g.orders) for g in fresh.groups}
    assert {item.key for item in shared.state_differences} == {item.key for item in fresh.state_differences}
    assert shared.noise.p_value is not None
    assert shared.noise.p_value < 0.01
    assert [forked for _, forked in trials(shared)].count(False) < len(trials(fresh))


def test_explained_as_without(lab: Lab) -> None:
    lab.write(a=A, b=B, c="", work=FIRST)

    study = lab.check(imports="abc", orders="all", isolation=SHARED, explain=True)

    assert study.rule is not None
    assert study.rule.pair is not None
    assert set(study.rule.pair) == {"a", "b"}
    assert study.rule.explained == study.rule.total == 6
    assert study.remedy is not None
    assert study.remedy.agrees


def test_a_number_drawn_at_import_is_no_order_dependence(lab: Lab) -> None:
    """All forks of one process share what was drawn, so each beginning looks like a stable group of its own."""
    drawn = "import os\nDRAWN = os.urandom(4).hex()\n"
    lab.write(a=drawn, b="", c="", work="import a\ndef run():\n    return a.DRAWN\n")

    study = lab.check(imports="abc", orders="all", isolation=SHARED, max_repeat=3)

    assert study.verdict == "noisy"
    assert not any(arm.forked for arm in study.orders)
    assert any("were dropped, all trials are fresh" in note for note in study.notes)
    assert all(arm.trials == 3 for arm in study.orders)


def test_a_coin_thrown_at_import_is_no_order_dependence(lab: Lab) -> None:
    lab.write(
        a="import os\nCOIN = os.urandom(1)[0] % 2\n", b="", c="", work="import a\ndef run():\n    return a.COIN\n"
    )

    study = lab.check(imports="abc", orders="all", isolation=SHARED, max_repeat=4)

    assert study.verdict in ("noisy", "inconclusive")


def test_what_forking_hides_is_found_by_fresh_trials(lab: Lab) -> None:
    """A fork handler undoes what the first two imports did, in the trials that are forked after both."""
    lab.write(
        a="import os\nstate = []\nos.register_at_fork(after_in_child=state.clear)\n",
        b="import sys\nif 'a' in sys.modules: sys.modules['a'].state.append('b')\n",
        c="",
        d="",
        work="import a\ndef run():\n    return ','.join(a.state)\n",
    )

    study = lab.check(imports="cabd", orders="all", isolation=SHARED)

    assert study.verdict == "order-dependent"
    assert not any(arm.forked for arm in study.orders)
    assert {arm.order for arm in study.orders if arm.group == "A"} == {
        order for order in permutations("abcd") if order.index("a") < order.index("b")
    }
    assert any("were dropped, all trials are fresh" in note for note in study.notes)


def test_a_crash_in_some_orders(lab: Lab) -> None:
    lab.write(a="", b="import os, sys\nif 'a' in sys.modules: os.abort()\n", c="", work="def run():\n    return 1\n")

    study = lab.check(imports="cab", orders="all", isolation=SHARED)
    fresh = lab.check(imports="cab", orders="all")

    assert study.verdict == fresh.verdict == "fails-in-some-orders"
    assert groups(study) == groups(fresh)
    assert {arm.order: arm.failures > 0 for arm in study.orders} == {
        arm.order: arm.failures > 0 for arm in fresh.orders
    }


def test_a_thread_is_said_with_the_orders_it_cost(lab: Lab) -> None:
    lab.write(a="", b="", c="", t=THREAD, work="def run():\n    return 1\n")

    study = lab.check(imports="abct", orders="all", isolation=SHARED)

    assert study.verdict == "identical"
    note = next(note for note in study.notes if "could not be forked" in note)
    assert "threads were started that a fork would lose (1: tick)" in note
    # The six that begin with it, and two each that go on with it after another one.
    assert note.startswith("12 of 24")


def test_where_nothing_can_be_forked_one_line_says_so(lab: Lab) -> None:
    lab.write(a="", b="", c="", sitecustomize=THREAD, work="def run():\n    return 1\n")

    study = lab.check(imports="abc", orders="all", isolation=SHARED, env={"PYTHONPATH": str(lab.folder)})

    assert study.verdict == "identical"
    (note,) = (note for note in study.notes if "shared" in note)
    assert note == (
        "nothing was shared (--isolation shared-prefix), all trials are fresh: after the start, threads were started "
        "that a fork would lose (1: tick)"
    )
    assert all(arm.trials == 3 for arm in study.orders)


def test_two_orders_share_nothing(lab: Lab) -> None:
    lab.write(a=A, b=B, work=FIRST)

    study = lab.check(imports="ab", isolation=SHARED)

    assert study.verdict == "order-dependent"
    assert study.notes[-1].endswith("all trials are fresh: no two orders begin alike")
    assert not any(forked for _, forked in trials(study))


@pytest.mark.parametrize(
    ("work", "said"),
    [
        ("def other():\n    return 1\n", "defines no `run`"),
        ("def run():\n    return None\n", "recorded nothing to compare"),
        ("def run():\n    return object()\n", "object"),
        ("import nowhere_at_all\ndef run():\n    return 1\n", "isn't installed"),
    ],
)
def test_bad_input_is_told_as_without(lab: Lab, work: str, said: str) -> None:
    lab.write(a="", b="", c="", work=work)

    with pytest.raises(UsageError, match=said):
        lab.check(imports="abc", isolation=SHARED)


def test_a_suite(lab: Lab) -> None:
    suite = "import os\ndef test_one():\n    assert os.environ['FIRST'] == 'a'\ndef test_two():\n    pass\n"
    lab.write({"test_it.py": suite}, a=A, b=B, c="")
    target = Target(text="test_it.py", kind="pytest", args=("test_it.py", "-q"))
    orders = [tuple("abc"), tuple("acb"), tuple("bac"), tuple("bca")]

    study = check(target, list("abc"), cwd=lab.folder, order=orders, isolation=SHARED, explain=False)

    assert study.verdict == "fails-in-some-orders"
    assert {arm.order: arm.group for arm in study.orders} == dict(zip(orders, "AABB", strict=True))
    assert study.suite is not None
    assert [test.test for test in study.suite.differing] == ["test_it.py::test_one"]


def test_a_stored_study_reads_under_a_tolerance(lab: Lab) -> None:
    work = "import os\ndef run():\n    return 1.0 if os.environ.get('FIRST') == 'a' else 1.001\n"
    lab.write(a=A, b=B, c="", work=work)
    study = lab.check(imports="abc", orders="all", isolation=SHARED)

    read = under_tolerance(Run(Path(study.run_dir)), tolerance_for({"*": Tolerance(rtol=0.01)}))

    assert study.verdict == "order-dependent"
    assert read.verdict == "within-tolerance"
    assert [group.trials for group in read.groups] == [group.trials for group in study.groups]


def run_command(lab: Lab, *words: str) -> list[str]:
    return [
        *(sys.executable, "-m", "reprocheck", "run", "work.py::run", "--imports", "a,b,c,d", "--orders", "all"),
        *("--isolation", SHARED, "--out", "out", "--no-explain", *words),
    ]


def test_a_killed_run_is_resumed_where_it_was(lab: Lab) -> None:
    lab.write(
        a=A, b=B, c="", d="", work="import os, time\ndef run():\n    time.sleep(0.1)\n    return os.environ['FIRST']\n"
    )
    process = subprocess.Popen(
        run_command(lab), cwd=lab.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    journal = lab.folder / "out.partial" / "journal.jsonl"
    end = time.monotonic() + 60
    while (not journal.exists() or journal.read_text().count("\n") < 8) and time.monotonic() < end:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    before = journal.read_text().splitlines()
    assert 8 <= len(before) < 24

    done = subprocess.run(
        run_command(lab, "--resume", "--format", "json"), cwd=lab.folder, capture_output=True, text=True, check=False
    )

    study = json.loads(done.stdout)
    assert study["verdict"] == "order-dependent"
    lines = (lab.folder / "out" / "journal.jsonl").read_text().splitlines()
    keys = [json.loads(line)["key"] for line in lines]
    assert [json.loads(line)["key"] for line in before] == keys[: len(before)]
    assert len(keys) == len(set(keys))
    assert sum(key.endswith("forked") for key in keys) == 23


def test_the_command_says_what_it_takes(lab: Lab) -> None:
    lab.write(a="", b="", work="def run():\n    return 1\n")

    done = subprocess.run(
        [*run_command(lab)[:-4], "--isolation", "none"], cwd=lab.folder, capture_output=True, text=True, check=False
    )

    assert done.returncode == 2
    assert "'fresh', 'shared-prefix'" in done.stderr


def test_the_option_in_a_file_and_as_a_keyword(lab: Lab) -> None:
    lab.write({"pyproject.toml": '[tool.reprocheck]\nisolation = "shared-prefix"\n'}, a="", b="", c="")
    lab.write(work="def run():\n    return 1\n")

    assert lab.check(imports="abc").isolation == SHARED
    with pytest.raises(UsageError, match="must be `fresh` or `shared-prefix`"):
        lab.check(imports="abc", isolation="forked")


def test_all_orders_of_four_are_there_once(lab: Lab) -> None:
    lab.write(a="", b="", c="", d="", work="def run():\n    return 1\n")

    study = lab.check(imports="abcd", orders="all", isolation=SHARED, jobs=3)

    tried = {order for order, _ in trials(study)}
    assert tried == set(permutations("abcd"))

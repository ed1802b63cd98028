"""Whole pages: what they say and in which order, what must not be in them, and how large they may get."""

from __future__ import annotations

import importlib.util
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from reprocheck.errors import UsageError
from reprocheck.model import (
    Arm,
    Cause,
    Change,
    DifferingTest,
    Failure,
    Group,
    NotCompared,
    Origin,
    Remedy,
    StateDifference,
    Study,
    Suite,
)
from reprocheck.report.evidence import Evidence
from reprocheck.report.html import study_html
from reprocheck.report.html.index import index_html
from reprocheck.report.redact import Redaction
from tests.samples import HOSTILE, full_study, make_run, orders_of, tiny_study

Checked = Callable[[str], Any]


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Study:
    return full_study(tmp_path_factory.mktemp("full") / "run")


@pytest.fixture(scope="module")
def full_page(full: Study) -> str:
    return study_html(Evidence.of(full))


def test_sections_come_in_the_order_in_which_a_person_asks(full_page: str, checked: Checked) -> None:
    page = checked(full_page)

    wanted = ["orders", "rule", "start", "why", "size", "loading", "libraries", "allocator", "environment"]
    wanted += ["not-compared", "repeat"]
    assert [name for name in page.ids if name in wanted] == wanted
    assert [link for link in page.links if link != "#main"] == [f"#{name}" for name in wanted]
    assert page.headings[0] == 1
    assert page.headings.count(1) == 1
    steps = zip(page.headings, page.headings[1:], strict=False)
    assert all(after <= before + 1 for before, after in steps), "no level of heading is left out"


@pytest.mark.parametrize(
    "words",
    [
        "order-dependent 3 of 4 outputs differ between mkl,toolbox,torch and mkl,torch,toolbox",
        "set OMP_NUM_THREADS=1 before Python starts",
        "toolbox before torch gives group B, all other orders group A",
        "weights = weights - rate * grad",
        "confirmed environ.python.OMP_NUM_THREADS",
        "40 later operators were given different inputs",
        "401 6.5 %",
        "2.2550664",
        "0x1.20a604p+1",
        "slice [3, …], 24 × 32 elements",
        "/venv/lib/libtoolbox.so.1",
        "35.0",
        "a Module holds no values of its own",
        "reprocheck run work.py::run --imports a,b",
    ],
)
def test_a_page_says(full_page: str, checked: Checked, words: str) -> None:
    assert words in " ".join(checked(full_page).words.split())


def test_pictures_are_told_in_words(full_page: str) -> None:
    assert 'aria-label="Histogram of ULP distances of step.weights"' in full_page
    assert 'aria-label="Loading timeline. mkl,torch,toolbox  (A): mkl 0.01 to 0.41 s, ' in full_page


def test_the_chain_shows_where_equal_becomes_unequal(full_page: str, checked: Checked) -> None:
    words = " ".join(checked(full_page).words.split())

    assert "2 aten.add = equal = equal" in words
    assert "3 aten.mm here = equal ≠ unequal" in words
    assert "4 aten.add ≠ unequal ≠ unequal" in words


def test_a_study_alone_says_what_it_lacks(full: Study, checked: Checked) -> None:
    page = checked(study_html(Evidence.of(msgspec.structs.replace(full, run_dir="/gone"))))

    assert "the run folder is not at hand, so what only records hold is left out" in page.words
    assert not {"loading", "libraries", "allocator"} & set(page.ids)
    assert {"orders", "size", "why"} <= set(page.ids)


def test_a_cause_without_a_line_names_its_file_and_has_its_words_as_code(full: Study, checked: Checked) -> None:
    cause = Cause(
        key="import.b",
        kind="unknown",
        status="unknown",
        text="it is `b`",
        good="`b` after `a`",
        bad="`b` before `a`",
        event=Origin(by="b", file="/x/b.py"),
    )
    remedy = Remedy(text="import `a` first", agrees=True, kind="order", orders=2, tried_trials=6)
    page = study_html(Evidence(msgspec.structs.replace(full, causes=(cause,), remedy=remedy)))
    words = " ".join(checked(page).words.split())

    assert "at /x/b.py ." in words or "at /x/b.py." in words
    assert "`b`" not in words
    assert "<code>b</code> after <code>a</code>" in page
    assert "import a first. Tried: all 2 orders agree (6 runs)." in words.replace(" .", ".")


def test_the_smallest_study(checked: Checked) -> None:
    page = checked(study_html(Evidence(tiny_study())))

    assert page.ids[:1] == ["main"] or "orders" in page.ids
    assert not {"size", "why", "rule", "start", "not-compared"} & set(page.ids)


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_names_render_as_text(tmp_path: Path, checked: Checked, hostile: str) -> None:
    one, two = np.arange(6.0), np.arange(6.0) * 3
    change = Change(group="A", order=("a", "b"), value=[hostile, {hostile: hostile}], phase=f"t1:{hostile}")
    state = StateDifference(key=hostile, phase="t2", severity="numeric", why=hostile, changes=(change,))
    failure = Failure(kind="exception", phase=hostile, signature="s", message=hostile, traceback=hostile * 3)
    test = DifferingTest(test=hostile, verdict="noisy", reason=hostile, orders={hostile: {hostile: 1}}, failure=hostile)
    study = make_run(
        tmp_path / "run",
        {(hostile, "b"): [{hostile: one, "plain": one}], ("b", hostile): [{hostile: two, "plain": one}]},
        study={
            "workload": hostile,
            "notes": (hostile,),
            "state_differences": (state,),
            "hazards": (state,),
            "not_compared": (NotCompared(name=hostile, reason=hostile),),
            "remedy": Remedy(text=hostile, agrees=True, snippets={hostile: hostile}, failed=(hostile,)),
            "causes": (Cause(key=hostile, kind=hostile, status="unknown", text=hostile, tried=(hostile,)),),
            "environment": {hostile: hostile, "pinned": {hostile: hostile}, "dropped": [hostile]},
            "command": ("reprocheck", "run", hostile),
            "suite": Suite(tests=1, differing=(test,), failing=(hostile,)),
        },
    )
    study = msgspec.structs.replace(
        study, groups=(*study.groups, Group(id="C", orders=(), trials=1, outcome=hostile, failure=failure))
    )

    text = study_html(Evidence.of(study))
    page = checked(text)

    assert len(text) < 400_000
    assert "\u202e" not in text
    assert "\x1b" not in text
    if "{{" in hostile:
        assert "{{ 7 * 7 }}{% raw %}" in page.words
    if hostile.startswith("<script>"):
        assert "<script>alert(1)</script>" in page.words


def test_a_page_stays_small_whatever_the_study(tmp_path: Path, checked: Checked) -> None:
    long = "n" * 9000
    one, two = np.zeros(2), np.ones(2)
    names = [f"{number}{long}" for number in range(300)]
    changes = tuple(
        Change(group=group, order=("a",), value=[f"{group}{number}{long}" for number in range(50)], phase="t2")
        for group in "ABCDEF"
    )
    study = make_run(
        tmp_path / "run",
        {("a", "b"): [dict.fromkeys(names, one)], ("b", "a"): [dict.fromkeys(names, two)]},
        study={
            "notes": (long,) * 50,
            "state_differences": tuple(
                StateDifference(key=f"{number}{long}", phase="t2", severity="numeric", why=long, changes=changes)
                for number in range(200)
            ),
            "remedy": Remedy(text=long, agrees=True, snippets={f"{number}{long}": long for number in range(40)}),
        },
    )

    page = checked(study_html(Evidence.of(study)))

    assert "would have been larger than a page should be" in page.words


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """24 orders × 5,000 outputs, a third of which differ, in four groups, one order unstable."""
    rng = np.random.default_rng(1)
    arrays = [[rng.normal(size=64).astype(np.float32) for _ in range(20)] for _ in range(5)]
    outcomes = {}
    for position, order in enumerate(orders_of("mkl", "torch", "cupy", "toolbox")):
        runs = []
        for repeat in range(2):
            kind = position % 4
            unstable = 4 if position == 5 and repeat else kind
            runs.append(
                {
                    f"block{number // 50}.layer{number % 50}.weight": arrays[0 if number % 3 else unstable][number % 20]
                    for number in range(5000)
                }
            )
        outcomes[order] = runs
    return make_run(tmp_path_factory.mktemp("large") / "run", outcomes)


def test_24_orders_of_5000_outputs(large: Study, checked: Checked) -> None:
    # Time of this process's own: on a machine that is busy with something else a clock would measure that.
    start = time.process_time()

    text = study_html(Evidence.of(large))

    assert time.process_time() - start < 10
    page = checked(text)
    assert "and 1,567 more outputs that differ" in page.words
    assert "identical runs of that order differ" in page.words
    assert "Every output of every order: 24 orders, 5,000 outputs" in text


def test_without_matplotlib_it_says_what_it_leaves_out(
    full: Study, checked: Checked, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(
        "reprocheck.report.html.plots.find_spec", lambda name: None if name == "matplotlib" else real(name)
    )

    text = study_html(Evidence.of(full))

    assert "<svg" not in text
    assert "Pictures (histograms, difference maps, timelines) are left out" in checked(text).words


def test_without_jinja2_it_says_what_to_install(full: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)

    with pytest.raises(UsageError, match=r"pip install 'reprocheck\[report\]'"):
        study_html(Evidence(full))


def test_a_redacted_page(full: Study, checked: Checked) -> None:
    page = checked(study_html(Evidence.of(full, redaction=Redaction(full, names=True))))

    assert "import order report, redacted" in page.words
    assert "jane" not in page.words


def test_a_run_of_an_older_reprocheck_renders(full: Study, tmp_path: Path, checked: Checked) -> None:
    shutil.copytree(full.run_dir, tmp_path / "old")
    document = msgspec.json.decode((tmp_path / "old/study.json").read_bytes())
    for name in (
        "first_line",
        "origin",
        "unaligned",
        "kernels",
        "traced",
        "rule",
        "causes",
        "remedy",
        "budget",
        "suite",
    ):
        document.pop(name)
    (tmp_path / "old/study.json").write_bytes(msgspec.json.encode(document))
    from reprocheck.report.history import collect

    [(study, folder)] = collect(tmp_path / "old")

    assert "3 of 4 outputs differ" in checked(study_html(Evidence.of(study, folder))).words


@pytest.mark.parametrize(
    "verdict", ["fails-everywhere", "fails-in-some-orders", "noisy", "within-tolerance", "inconclusive"]
)
def test_every_verdict_has_a_page(verdict: str, checked: Checked) -> None:
    failure = Failure(
        kind="signal",
        phase="importing b (2nd of 2)",
        signature="x",
        message="signal 11 while importing b",
        traceback="t",
    )
    groups = (
        Group(id="A", orders=(("a", "b"),), trials=3, outcome="signal 11 while importing b", failure=failure),
        Group(id="B", orders=(("b", "a"),), trials=3, outcome="ok"),
    )
    arms = (
        Arm(order=("a", "b"), effective_order=("a", "b"), group="A", groups=("A",) * 3, trials=3, failures=3),
        Arm(order=("b", "a"), effective_order=("b", "a"), groups=("B", "A", "B"), trials=3, failures=1),
        Arm(order=("b", "c"), effective_order=("b", "a"), same_as=("b", "a"), groups=("B",), trials=3),
        Arm(order=("a",), effective_order=("a",), groups=("B",), trials=1, presence=True),
    )
    page = checked(
        study_html(Evidence(tiny_study(verdict=verdict, groups=groups, orders=arms, headline=f"{verdict}: h")))
    )

    words = " ".join(page.words.split())
    assert f"{verdict} h" in words
    assert "signal 11 while importing b" in words
    assert "loads as order 2 does; counted there" in words
    assert "identical runs differ: 1 × A, 2 × B" in words
    assert "Only some of the subjects imported" in words


def test_an_index_of_many(checked: Checked) -> None:
    studies = [
        tiny_study(
            workload=f"w{number}.py", verdict="noisy" if number % 3 else "identical", exit_code=int(number % 3 > 0)
        )
        for number in range(1500)
    ]

    page = checked(
        index_html(studies, {number: f"./pages/{number}.html" for number in range(1500)}, [], redacted=False)
    )

    assert "500 of 1500 studies agree" in page.words
    assert "1000 noisy" in page.words


@pytest.mark.parametrize("hostile", HOSTILE)
def test_an_index_with_hostile_names(checked: Checked, hostile: str) -> None:
    studies = [tiny_study(workload=hostile, subjects=(hostile,), headline=hostile), tiny_study()]

    checked(index_html(studies, {0: "./x.pages/001.html"}, [], redacted=True))

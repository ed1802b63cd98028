"""Toolboxes of up to 64 versions, built on the fly: what is found, and at what cost."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest
from jsonschema import Draft202012Validator

from reprocheck.bisect.records import Report
from reprocheck.bisect.report import read_report, render, report_json, schema
from reprocheck.errors import NothingSelectedError, UsageError
from tests.integration.bisect.conftest import House

WORK = "import tool\ndef run():\n    return tool.value\n"


def run_versions(report: Report) -> list[str]:
    return [row.name for row in report.versions if row.runs and row.same_as is None]


def boundary(report: Report) -> tuple[str | None, str | None]:
    return report.last_good, report.first_bad


def two_libraries(house: House) -> None:
    """Libraries of which the one imported first decides a value."""
    house.write(
        state="first = None",
        fast="import state\nstate.first = state.first or 'fast'",
        slow="import state\nstate.first = state.first or 'slow'",
        work="import tool, state\ndef run():\n    return 1.0 if state.first == 'fast' else 2.0\n",
    )


def test_results_that_began_to_depend_on_the_order(house: House) -> None:
    house.write(
        state="loaded = []",
        other="import state\nstate.loaded.append('other')",
        work="import tool, other\ndef run():\n    return tool.value\n",
    )
    house.releases(64, lambda n: f"import state\nvalue = 2.0 if {n} >= 41 and 'other' not in state.loaded else 1.0")

    report = house.bisect(good="1.0", options={"imports": ["tool", "other"]})

    assert (report.outcome, report.exit_code) == ("found", 0)
    assert boundary(report) == ("1.40", "1.41")
    assert report.versions_run == report.runs == 8
    assert report.plan.replace("at most ", "") == "64 versions: 64 available, 64 distinct, about 8 to run", (
        "pip looks less far"
    )
    assert report.factorial is not None
    assert report.factorial.verdict == "order-sensitive"
    assert "with other imported before tool, it gives 1.40's results" in report.factorial.sentence
    assert report.headline.startswith("tool 1.41 is the first version in which results depend on the import order")


@pytest.mark.parametrize("good", ["1.0", None])
def test_a_condition_that_ends_where_its_beginning_was_asked_for_is_no_answer(house: House, good: str | None) -> None:
    house.write(work="import sys, tool\ndef run():\n    sys.exit(int(tool.value))\n")
    house.releases(8, lambda n: f"value = {3 if n < 5 else 0}.0")

    with pytest.raises(UsageError) as caught:
        house.bisect(good=good, until="exit:3", runs=1)

    said = str(caught.value)
    assert "so it ends there instead of beginning; to find where, add --find-fix with --bad " in said
    assert said.endswith(("--good 1.7", "--good 1.6")), "from the newest backwards the first other one ends the search"
    with pytest.raises(UsageError, match=r"begins to hold between 1\.0, where .* and 1\.7: nothing was fixed"):
        house.bisect(bad="1.0", good="1.7", until="exit:0", runs=1, find_fix=True)


def test_a_drift_that_came_with_another_order_of_imports(house: House) -> None:
    two_libraries(house)
    house.releases(16, lambda n: "import slow, fast" if n >= 9 else "import fast, slow")

    report = house.bisect(good="1.0", until="drift", options={"imports": ["tool", "fast", "slow"]})

    assert boundary(report) == ("1.8", "1.9")
    assert report.factorial is not None
    assert (report.factorial.verdict, report.factorial.old_order, report.factorial.new_order) == (
        "order",
        ("fast", "slow"),
        ("slow", "fast"),
    )
    assert "1.9, which began to import slow before fast" in report.factorial.sentence
    assert report.posterior is not None
    assert report.posterior.probability > 0.97
    assert not report.posterior.flaky


def test_a_drift_of_which_the_order_is_not_the_reason(house: House) -> None:
    two_libraries(house)
    house.write(work="import tool, fast, slow\ndef run():\n    return tool.value\n")
    house.releases(8, lambda n: f"value = {2.0 if n >= 3 else 1.0}")

    report = house.bisect(good="1.0", until="drift", options={"imports": ["tool", "fast", "slow"]})

    assert boundary(report) == ("1.2", "1.3")
    assert "1 of 1 output differs from the good end's (result)" in {row.seen for row in report.versions}
    assert report.factorial is not None
    assert report.factorial.verdict == "not-order"
    assert report.blame is not None
    assert [change.path for change in report.blame.files] == ["tool/__init__.py"]


def test_a_tolerance_lets_small_drifts_pass(house: House) -> None:
    house.write(work=WORK)
    house.releases(8, lambda n: f"value = {1.0 + (1e-9 if n >= 2 else 0) + (1e-3 if n >= 5 else 0)}")

    exact = house.bisect(good="1.0", until="drift", out=str(house.folder / "exact"))
    loose = house.bisect(
        good="1.0", until="drift", options={"tolerance": {"*": {"rtol": 1e-6}}}, out=str(house.folder / "loose")
    )

    assert boundary(exact) == ("1.1", "1.2")
    assert boundary(loose) == ("1.4", "1.5")


def drifting(house: House, bad: Sequence[int], count: int = 16) -> None:
    house.write(work=WORK)
    house.releases(count, lambda n: f"value = {2.0 if n in bad else 1.0}")


def test_changes_that_came_and_went(house: House) -> None:
    drifting(house, [4, 5, 6, 7, 12, 13, 14, 15])

    blind = house.bisect(good="1.0", until="drift", out=str(house.folder / "blind"))
    seen = house.bisect(good="1.0", until="drift", scouts=3, out=str(house.folder / "seen"))

    assert len(blind.transitions) == 1
    assert [(one.before, one.after) for one in seen.transitions] == [("1.3", "1.4"), ("1.7", "1.8"), ("1.11", "1.12")]
    assert boundary(seen) == ("1.11", "1.12"), "the one that stands is the answer"
    assert "it also changed in 1.4, 1.8" in seen.headline


def test_every_change_of_the_outcome(house: House) -> None:
    house.write(work=WORK)
    house.releases(16, lambda n: f"value = {float(n >= 5) + float(n >= 11)}")

    report = house.bisect(good="1.0", until="drift", every_change=True)

    assert [one.after for one in report.transitions] == ["1.5", "1.11"]
    assert boundary(report) == ("1.4", "1.5")
    groups = {row.name: row.group for row in report.versions}
    assert (groups["1.4"], groups["1.5"], groups["1.15"]) == ("A", "B", "C")


def test_versions_that_cannot_be_had_or_judged(house: House) -> None:
    house.write(work=WORK)
    for number in range(24):
        value = f"value = {2.0 if number >= 13 else 1.0}\nnumber = {number}\n"
        if number in (1, 2):
            house.release(f"1.{number}", value, python=">=3.99")
        elif number == 3:
            house.release(f"1.{number}", value, tag="cp39-cp39-win_amd64")
        elif number in (4, 5):
            house.release(f"1.{number}", value, requires=["not-there-at-all>=2"])
        elif 9 <= number <= 12:
            house.release(f"1.{number}", "import tool._left_out\n" + value)
        else:
            house.release(f"1.{number}", value)

    report = house.bisect(good="1.0", until="drift")

    assert boundary(report) == ("1.8", "1.13")
    assert report.plan == "24 versions: 19 available, 19 distinct, about 7 to run"
    kinds = {one.kind: one.versions for one in report.untestable}
    assert kinds["python"] == ("1.1", "1.2")
    assert kinds["platform"] == ("1.3",)
    assert kinds["dependency"] == ("1.4", "1.5")
    assert kinds["run"] == ("1.9", "1.10", "1.11", "1.12")
    assert report.transitions[0].between == ("1.9", "1.10", "1.11", "1.12")
    assert "or one of 1.9, 1.10, 1.11, 1.12 between them" in report.headline


def test_versions_with_equal_contents_share_a_result(house: House) -> None:
    house.write(work=WORK)
    for number in range(12):
        house.release(f"1.{number}", f"value = {2.0 if number >= 7 else 1.0}\n")

    report = house.bisect(good="1.0", until="drift")

    assert boundary(report) == ("1.6", "1.7")
    assert report.plan == "12 versions: 12 available, 2 distinct, about 2 to run"
    assert run_versions(report) == ["1.0", "1.7"]


def test_a_release_that_takes_the_last_ones_back_shares_their_result(house: House) -> None:
    house.write(work=WORK)
    for number, value in enumerate((1.0, 1.5, 1.0, 1.6, 2.0)):
        house.release(f"1.{number}", f"value = {value}\n")

    report = house.bisect(good="1.0", until="drift", every_change=True)

    same = {row.name: row.same_as for row in report.versions if row.same_as}
    assert same == {"1.2": "1.0"}


def test_ends_that_do_not_differ(house: House) -> None:
    drifting(house, [], count=4)

    report = house.bisect(good="1.0", until="drift")

    assert (report.outcome, report.exit_code) == ("same-ends", 1)
    assert report.versions_run == 2
    assert "does not hold in either end, 1.0 and 1.3" in report.reason
    assert report.reason.endswith("shows with --scout 2"), "no more versions than there are between the ends"


def test_ends_that_are_bad_already(house: House) -> None:
    house.write(work="import tool\ndef run():\n    raise SystemExit(3)\n")
    house.releases(3, lambda _: "")

    report = house.bisect(good="1.0", until="exit:3")

    assert report.outcome == "same-ends"
    assert "older --good" in report.reason


def test_an_end_that_cannot_be_judged(house: House) -> None:
    house.write(work=WORK)
    house.releases(3, lambda n: "value = 1.0" if n else "import nowhere")

    report = house.bisect(good="1.0", until="drift")

    assert (report.outcome, report.exit_code) == ("end-untestable", 3)
    assert "nowhere" in report.reason


def test_without_a_good_end_one_is_looked_for(house: House) -> None:
    house.write(work="import tool\ndef run():\n    raise SystemExit(tool.status)\n")
    house.releases(32, lambda n: f"status = {3 if n >= 20 else 0}")

    report = house.bisect(until="exit:3", runs=1)

    assert boundary(report) == ("1.19", "1.20")
    assert "1.0" not in run_versions(report)


def test_the_version_that_fixed_it(house: House) -> None:
    house.write(work="import tool\ndef run():\n    raise SystemExit(tool.status)\n")
    house.releases(16, lambda n: f"status = {3 if n < 6 else 0}")

    report = house.bisect(bad="1.0", good="1.15", until="exit:3", find_fix=True)

    assert (report.last_good, report.first_bad) == ("1.6", "1.5")
    assert report.headline.startswith("tool 1.6 is the first version in which it is fixed")
    assert "what else changed from 1.5 to 1.6" in render(report, "text")


def test_what_was_not_fixed_so_far(house: House) -> None:
    house.write(work="import tool\ndef run():\n    raise SystemExit(3)\n")
    house.releases(3, lambda _: "")

    report = house.bisect(bad="1.0", good="1.2", until="exit:3", find_fix=True)

    assert report.outcome == "same-ends"
    assert "it was not fixed so far, name a newer --good" in report.reason


def test_jobs_give_the_same_answer(house: House) -> None:
    drifting(house, range(11, 16))

    one = house.bisect(good="1.0", until="drift", out=str(house.folder / "one"))
    three = house.bisect(good="1.0", until="drift", jobs=3, out=str(house.folder / "three"))

    assert boundary(one) == boundary(three) == ("1.10", "1.11")
    assert three.transitions == one.transitions


def test_state_that_an_import_began_to_change(house: House) -> None:
    house.write(work="import tool\ndef run():\n    return 1.0\n")
    house.releases(12, lambda n: "import os\nos.environ['OMP_NUM_THREADS'] = '1'" if n >= 7 else "")

    report = house.bisect(good="1.0", until="state:environ.python.OMP_NUM_THREADS", options={"imports": ["tool"]})

    assert boundary(report) == ("1.6", "1.7")
    assert report.versions[-1].seen == "environ.python.OMP_NUM_THREADS = 1"


def test_a_key_that_nobody_captures_is_refused(house: House) -> None:
    house.write(work="import tool\ndef run():\n    return 1.0\n")
    house.releases(3, lambda _: "")

    with pytest.raises(UsageError, match="OMP_NUM_THREAD` is captured in"):
        house.bisect(good="1.0", until="state:environ.python.OMP_NUM_THREAD", options={"imports": ["tool"]})


def test_what_is_printed(house: House) -> None:
    house.write(work="import tool\ndef run():\n    print(tool.text)\n    return 1.0\n")
    house.releases(8, lambda n: f"text = 'loss: {'nan' if n >= 5 else 1}'")

    assert boundary(house.bisect(good="1.0", until="match:loss: nan")) == ("1.4", "1.5")


def test_versions_left_out(house: House) -> None:
    drifting(house, range(5, 8), count=8)

    report = house.bisect(good="1.0", until="drift", skip=("1.3..1.5",))

    assert boundary(report) == ("1.2", "1.6")
    assert ("skipped", ("1.3", "1.4", "1.5")) in {(one.kind, one.versions) for one in report.untestable}


def test_a_package_that_lies_next_to_the_workload_is_refused(house: House) -> None:
    drifting(house, [3], count=4)
    house.write(tool="value = 5.0")

    with pytest.raises(UsageError, match="trials would take `tool` from"):
        house.bisect(good="1.0", until="drift")


def test_another_package_that_came_along_is_told(house: House) -> None:
    house.write(work="import tool, dep\ndef run():\n    return dep.value\n")
    for version in ("1", "2"):
        house.release(version, f"value = {version}.0", name="dep")
    for number in range(4):
        house.release(f"1.{number}", f"number = {number}", requires=["dep<2" if number < 2 else "dep>=2"])

    report = house.bisect(good="1.0", until="drift")

    assert boundary(report) == ("1.1", "1.2")
    assert report.blame is not None
    assert [(one.name, one.before, one.after) for one in report.blame.also_changed] == [("dep", "1", "2")]
    assert "besides: dep 1 → 2; hold it with --with dep==1" in render(report, "text")


def test_a_clean_base_holds_only_what_is_asked_for(house: House) -> None:
    house.write(
        work="""
            import importlib.util, tool

            def run():
                return 0.0 if importlib.util.find_spec("numpy") else tool.value
        """
    )
    house.releases(3, lambda n: f"value = {float(n >= 2)}")

    report = house.bisect(good="1.0", until="drift", base="clean")

    assert boundary(report) == ("1.1", "1.2")


def test_pip_does_it_too(house: House) -> None:
    house.write(work=WORK)
    house.releases(3, lambda n: f"value = {float(n >= 2)}")
    house.release("1.1.5", "value = 0.0", python=">=3.99")

    report = house.bisect(good="1.0", until="drift", installer="pip", runs=1)

    assert boundary(report) == ("1.1", "1.2")
    assert report.plan.startswith("4 versions: at most 3 available")
    assert [one.kind for one in report.untestable] == ["python"]


def test_the_report_is_made_to_be_pasted(house: House) -> None:
    drifting(house, range(3, 5), count=5)

    report = house.bisect(good="1.0", until="drift", command=("reprocheck", "bisect", "work.py::run"))

    text = render(report, "text")
    assert text.startswith(
        "tool 1.3 is the first version in which the outputs differ from the good end's; 1.2 is the last"
    )
    assert (
        "repeat     reprocheck bisect work.py::run" in text.replace("  repeat ", "  repeat ")
        or "reprocheck bisect" in text
    )
    assert max(len(line) for line in text.splitlines()[1:]) <= 150
    assert render(report, "markdown").startswith("**tool 1.3 is the first version")
    Draft202012Validator(schema()).validate(msgspec.json.decode(report_json(report)))
    assert read_report(report_json(report).encode()) == report


def test_too_few_versions(house: House) -> None:
    house.write(work=WORK)
    house.releases(1, lambda _: "value = 1.0")

    with pytest.raises(NothingSelectedError, match="nothing to search"):
        house.bisect(until="drift", good="1.0")


def test_an_end_that_cannot_be_installed_is_named(house: House) -> None:
    house.write(work=WORK)
    house.release("1.0", "value = 1.0", python=">=3.99")
    house.release("1.1", "value = 1.0")
    house.release("1.2", "value = 2.0")

    with pytest.raises(UsageError, match="is an end of the search, but needs another Python"):
        house.bisect(good="1.0", until="drift")


def test_a_function_that_is_not_there_is_a_wrong_question(house: House) -> None:
    drifting(house, [2], count=3)

    with pytest.raises(UsageError, match="walk"):
        house.bisect(good="1.0", workload="work.py::walk")

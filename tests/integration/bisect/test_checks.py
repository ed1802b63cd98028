"""Commands that decide, outcomes that flake, and bisections that are killed, gone on with and taken back."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from reprocheck.bisect.installers import Sources
from reprocheck.bisect.journal import Entry
from reprocheck.bisect.records import Report
from reprocheck.errors import HarnessError, UsageError
from tests.integration.bisect.conftest import House

STATUS = "python -c 'import sys, tool; sys.exit(tool.status)'"


def statuses(house: House, *values: int) -> None:
    for number, value in enumerate(values):
        house.release(f"1.{number}", f"status = {value}\nnumber = {number}\n")


def boundary(report: Report) -> tuple[str | None, str | None]:
    return report.last_good, report.first_bad


def test_a_command_decides(house: House) -> None:
    statuses(house, 0, 0, 125, 125, 0, 1, 77, 1)

    report = house.bisect(check=STATUS, good="1.0")

    assert boundary(report) == ("1.4", "1.5")
    assert report.condition == "check"
    assert report.factorial is None
    assert "1.2" not in [row.name for row in report.versions if row.bad is not None]


def test_it_can_name_the_interpreter(house: House) -> None:
    statuses(house, 0, 1)

    assert boundary(house.bisect(check=STATUS.replace("python", "{python} -I"), good="1.0")) == ("1.0", "1.1")


@pytest.mark.parametrize("status", [126, 127, 139])
def test_a_broken_command_is_never_bad(house: House, status: int) -> None:
    statuses(house, 0, 0, status, 1, 1)

    with pytest.raises(HarnessError, match="says nothing about the version"):
        house.bisect(check=STATUS, good="1.0", runs=1)
    assert not any("bad" in text and "1.2" in text for text in house.said)


def test_only_the_failure_that_is_meant_counts(house: House) -> None:
    for number, text in enumerate(("fine", "fine", "ImportError", "ImportError", "fine", "drift", "drift")):
        house.release(f"1.{number}", f"text = '{text}'\nnumber = {number}\n")
    check = "python -c 'import sys, tool; print(tool.text); sys.exit(tool.text != \"fine\")'"

    report = house.bisect(check=check, until="match:drift", good="1.0")

    assert boundary(report) == ("1.4", "1.5")


def flaky(house: House, count: int, first_bad: int, old: float, new: float) -> None:
    """Releases that fail at a rate, drawn by version and turn, so that a test comes out the same each time."""
    house.releases(
        count,
        lambda n: (
            f"""
            import pathlib, random, sys
            place = pathlib.Path({str(house.folder)!r}) / "count-{n}"
            turn = int(place.read_text()) if place.exists() else 0
            place.write_text(str(turn + 1))
            shows = random.Random({1000 * n} + turn).random() < {new if n >= first_bad else old}
        """
        ),
    )


def test_outcomes_that_flake(house: House) -> None:
    flaky(house, 12, 7, 0.0, 0.6)

    report = house.bisect(check="python -c 'import sys, tool; sys.exit(tool.shows)'", good="1.0")

    assert report.outcome == "found"
    assert boundary(report) == ("1.6", "1.7")
    assert report.posterior is not None
    assert report.posterior.flaky
    assert report.posterior.probability >= 0.97
    assert 0.3 < report.posterior.bad_rate < 0.9
    assert report.posterior.good_rate < 0.1
    assert any("identical runs disagree" in text for text in house.said)
    by_name = {row.name: row for row in report.versions}
    assert by_name["1.7"].runs >= 3, "the boundary is confirmed"
    assert by_name["1.6"].runs >= 3


def test_ends_too_noisy_to_tell_apart(house: House) -> None:
    flaky(house, 3, 3, 0.5, 0.5)

    report = house.bisect(check="python -c 'import sys, tool; sys.exit(tool.shows)'", good="1.0", most_runs=24)

    assert (report.outcome, report.exit_code) == ("ends-too-noisy", 3)
    assert "don't differ beyond chance" in report.reason


def entries(folder: Path) -> list[Entry]:
    import msgspec

    lines = (folder / "journal.jsonl").read_bytes().splitlines()
    return [msgspec.json.decode(line, type=Entry) for line in lines]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_killed_and_gone_on_with(house: House, how: signal.Signals) -> None:
    for number in range(16):
        house.release(
            f"1.{number}", f"import time\ntime.sleep(0.15)\nstatus = {int(number >= 11)}\nnumber = {number}\n"
        )
    out = house.folder / "out"
    command = [
        *(sys.executable, "-m", "reprocheck", "bisect", "--check", STATUS, "--package", "tool", "--good", "1.0"),
        *(
            "--no-index",
            "--find-links",
            str(house.wheels),
            "--cache",
            str(house.cache),
            "--out",
            str(out),
            "--runs",
            "2",
        ),
    ]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    process = subprocess.Popen(command, cwd=house.folder, env=environment, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and (not (out / "journal.jsonl").exists() or len(entries(out)) < 5):
        time.sleep(0.02)
    process.send_signal(how)
    _, said = process.communicate(timeout=60)
    before = entries(out)
    assert len(before) >= 5
    if how == signal.SIGINT:
        assert process.returncode == 130
        assert "--resume" in said

    end = subprocess.run(
        [*command, "--resume", "--format", "json"],
        cwd=house.folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert end.returncode == 0, end.stderr
    report = json.loads(end.stdout)
    assert (report["last_good"], report["first_bad"]) == ("1.10", "1.11")
    after = entries(out)
    assert after[: len(before)] == before
    runs = [(one.name, one.run) for one in after]
    assert len(set(runs)) == len(runs), "nothing was run twice"


def asked(house: House, **more: object) -> dict[str, object]:
    return {"check": STATUS, "good": "1.0", "out": str(house.folder / "out"), "runs": 1, **more}


def test_taken_back_and_run_again(house: House) -> None:
    statuses(house, 0, 0, 0, 0, 1, 1, 1, 1)
    first = house.bisect(**asked(house))

    again = house.bisect(**asked(house, undo=2))

    assert boundary(again) == boundary(first) == ("1.3", "1.4")
    undone = [text for text in house.said if text.startswith("undone")]
    assert len(undone) == 2
    journal = entries(house.folder / "out")
    assert sum(one.undo for one in journal) == 2
    assert len([one for one in journal if one.seen]) == first.runs + 2


def test_a_drift_is_measured_against_the_same_good_end_when_gone_on_with(house: House) -> None:
    house.write(work="import tool\ndef run():\n    return tool.value\n")
    house.releases(8, lambda n: f"value = {float(n >= 5)}")
    question = {"good": "1.0", "until": "drift", "out": str(house.folder / "out")}
    first = house.bisect(**question)

    for undo in (1, 99):
        again = house.bisect(**question, undo=undo)
        assert boundary(again) == boundary(first) == ("1.4", "1.5")


def test_outputs_that_match_nothing_are_no_agreement(house: House) -> None:
    house.write(work="import tool\ndef run():\n    return {'x': tool.value}\n")
    house.releases(3, lambda n: f"value = {float(n >= 2)}")

    with pytest.raises(UsageError, match=r"no output of `work.py::run` matches --outputs `y`: it has `x`"):
        house.bisect(good="1.0", until="drift", options={"outputs": ["y"]})


def test_another_question_is_not_gone_on_with(house: House) -> None:
    statuses(house, 0, 1)
    house.bisect(**asked(house))

    with pytest.raises(UsageError, match="begun with another `sources`"):
        house.bisect(**asked(house, resume=True, sources=Sources(no_index=True)))
    with pytest.raises(UsageError, match="exists already"):
        house.bisect(**asked(house))

"""From phases and an exit to a record."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reprocheck.engine.phases import finish, normalise
from reprocheck.engine.process import Exit
from reprocheck.errors import HarnessError, StoreError
from reprocheck.model import Stream, Trial

TRIAL = Trial(order=("a", "b"), repeat=0)
START = {"what": "start", "at": 0.0, "python": {"version": "3.11.7"}}
READY = {"what": "ready", "at": 0.0, "preloaded": []}


def ended(status: int = 0, *, timed_out: bool = False, stderr: str = "") -> Exit:
    empty = Stream(text="", nbytes=0)
    return Exit(
        status=status,
        seconds=2.0,
        timed_out=timed_out,
        interrupted=False,
        stdout=empty,
        stderr=Stream(text=stderr, nbytes=len(stderr)),
    )


def phases(folder: Path, *lines: dict[str, object], tail: str = "") -> Path:
    (folder / "phases.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines) + tail)
    return folder


def importing(name: str, position: int) -> dict[str, object]:
    return {"what": "importing", "at": 0.5, "subject": name, "position": position, "already": False}


def imported(name: str, position: int, effective: list[str]) -> dict[str, object]:
    return {"what": "imported", "at": 1.0, "subject": name, "position": position, "effective": effective}


def test_a_crash_says_where_and_after_how_long(tmp_path: Path) -> None:
    (tmp_path / "fault.txt").write_text("Fatal Python error: Segmentation fault\n  File x")
    lines = (START, READY, importing("a", 1), imported("a", 1, ["a"]), importing("b", 2))

    record = finish(TRIAL, phases(tmp_path, *lines, tail='{"what": "imp'), ended(-11)).record

    assert record.failure is not None
    assert record.failure.message == "signal 11 (SIGSEGV) while importing b (2 of 2), after 1.5 s"
    assert record.failure.signature == "signal:11 @ importing b (2 of 2)"
    assert record.failure.subject == "b"
    assert "Segmentation fault" in (record.failure.traceback or "")
    assert record.effective_order == ("a",)


@pytest.mark.parametrize(
    ("lines", "doing"),
    [
        ([], "starting the interpreter"),
        ([START], "starting"),
        ([START, READY, imported("b", 2, ["a", "b"])], "loading the workload"),
        ([START, READY, {"what": "workload", "at": 1.0}], "running the workload"),
        ([START, READY, {"what": "returned", "at": 1.0}], "saving the outputs"),
        ([START, READY, {"what": "saved", "at": 1.0}], "reading the state afterwards"),
        ([START, READY, {"what": "end", "at": 1.0}], "shutting down the interpreter"),
    ],
)
def test_a_time_out_says_where(tmp_path: Path, lines: list[dict[str, object]], doing: str) -> None:
    failure = finish(TRIAL, phases(tmp_path, *lines), ended(-6, timed_out=True)).record.failure

    assert failure is not None
    assert failure.message == f"no end after 2.0 s, while {doing}"


def test_a_worker_that_never_started_is_a_fault_of_the_instrument(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match=r"did not start \(exit status 1: SyntaxError: x\)"):
        finish(TRIAL, tmp_path, ended(1, stderr="Traceback\nSyntaxError: x\n"))


def test_an_interpreter_that_fails_to_start_says_why_above_its_last_line(tmp_path: Path) -> None:
    said = "Python path configuration:\n  x\nFatal Python error: bad PYTHONHASHSEED\n\n  <no Python frame>\n"
    with pytest.raises(HarnessError, match=r"\(exit status 1: Fatal Python error: bad PYTHONHASHSEED\).*--env"):
        finish(TRIAL, tmp_path, ended(1, stderr=said))


def test_a_full_disk_is_not_an_outcome(tmp_path: Path) -> None:
    fault = {
        "what": "fault",
        "at": 1.0,
        "kind": "storage",
        "exception": "x",
        "message": "output `y` could not be stored",
    }
    with pytest.raises(StoreError, match="free some space"):
        finish(TRIAL, phases(tmp_path, START, READY, fault), ended(1))


def test_who_pulled_in_whom(tmp_path: Path) -> None:
    lines = (
        START,
        READY,
        importing("a", 1),
        imported("a", 1, ["a", "b"]),
        importing("b", 2),
        imported("b", 2, ["a", "b"]),
    )

    record = finish(TRIAL, phases(tmp_path, *lines, {"what": "end", "at": 2.0}), ended()).record

    assert record.pulled_in == {"b": "a"}
    assert record.ok


def test_equal_failures_read_alike() -> None:
    one, two = "tensor at 0x7f00aa in /tmp/abc/x (pid 12345)", "tensor at 0x7e11bb in /tmp/def/y (pid 54321)"

    assert normalise(one) == normalise(two)
    assert normalise("shape (3, 4)") == "shape (3, 4)"

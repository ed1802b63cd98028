"""Progress where there is no terminal."""

from __future__ import annotations

import io
import time

from reprocheck.model import Failure, Record, Trial
from reprocheck.report.progress import LineProgress, Quiet


def record(failure: Failure | None = None) -> Record:
    return Record(
        trial=Trial(order=("a", "b"), repeat=0),
        effective_order=("a", "b"),
        ok=failure is None,
        failure=failure,
        seconds=1.25,
    )


def test_one_line_a_trial() -> None:
    stream = io.StringIO()
    with LineProgress(stream) as progress:
        progress.title("work.py")
        progress.expect(2)
        progress.ended(record())
        progress.ended(record(Failure(kind="signal", phase="p", signature="s", message="signal 11 while importing b")))
        progress.note("repeating")

    assert stream.getvalue().splitlines() == [
        "work.py",
        "  1/2     1.2 s  a,b  ok",
        "  2/2     1.2 s  a,b  signal 11 while importing b",
        "  repeating",
    ]


def test_heartbeat_when_nothing_ends() -> None:
    stream = io.StringIO()
    with LineProgress(stream, heartbeat=0.1) as progress:
        progress.expect(3)
        deadline = time.monotonic() + 10
        while "still running" not in stream.getvalue() and time.monotonic() < deadline:
            time.sleep(0.05)

    assert "  0/3  still running after" in stream.getvalue()


def test_quiet_is_quiet(capsys: object) -> None:
    with Quiet() as progress:
        progress.title("x")
        progress.expect(1)
        progress.ended(record())
        progress.note("y")

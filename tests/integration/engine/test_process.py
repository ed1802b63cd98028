"""Processes: streams, time-outs, and that nothing survives."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from reprocheck.engine.process import HEAD_BYTES, TAIL_BYTES, Exit, run_process
from reprocheck.errors import HarnessError


def python(code: str, *, timeout: float = 20.0, stop: threading.Event | None = None) -> Exit:
    return run_process(
        [sys.executable, "-c", code],
        env=dict(os.environ),
        cwd=Path.cwd(),
        timeout=timeout,
        stop=stop or threading.Event(),
    )


def alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def wait_until_gone(pid: int) -> bool:
    deadline = time.monotonic() + 5
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not alive(pid)


def test_status_and_streams() -> None:
    end = python("import sys; print('out'); print('err', file=sys.stderr); sys.exit(7)")

    assert (end.status, end.stdout.text, end.stderr.text) == (7, "out\n", "err\n")
    assert not end.timed_out


def test_stdin_is_closed() -> None:
    assert python("import sys; print(repr(sys.stdin.read()))").stdout.text == "''\n"


def test_gigabytes_of_output_are_counted_not_kept() -> None:
    end = python("import sys\nfor _ in range(1024): sys.stdout.write('x' * 2**20)\nprint('END')")

    assert end.stdout.nbytes == 2**30 + 4
    assert end.stdout.truncated
    assert len(end.stdout.text) < 2 * (HEAD_BYTES + TAIL_BYTES)
    assert end.stdout.text.endswith("END\n")


def test_time_out_kills_and_leaves_no_core(tmp_path: Path) -> None:
    begin = time.monotonic()
    end = run_process(
        [sys.executable, "-c", "import time; time.sleep(60)"],
        env=dict(os.environ),
        cwd=tmp_path,
        timeout=0.5,
        stop=threading.Event(),
    )

    assert end.timed_out
    assert end.status < 0
    assert time.monotonic() - begin < 10
    assert list(tmp_path.iterdir()) == []


def test_children_that_outlive_the_process_are_killed() -> None:
    end = python(
        "import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']).pid)"
    )

    assert wait_until_gone(int(end.stdout.text))
    assert end.seconds < 20


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_children_that_left_for_a_session_of_their_own_are_killed(stream: str) -> None:
    """They are known by a stream they still have; what another process holds is left alone."""
    code = (
        "import subprocess, sys\n"
        "streams = {'stdout': subprocess.DEVNULL, 'stderr': subprocess.DEVNULL}\n"
        f"del streams[{stream!r}]\n"
        "print(subprocess.Popen(['sleep', '334'], start_new_session=True, **streams).pid)"
    )
    with subprocess.Popen(["sleep", "335"], start_new_session=True) as other:
        end = python(code)
        pid = int(end.stdout.text)
        gone = wait_until_gone(pid)
        spared = other.poll() is None
        other.kill()

    assert gone
    assert spared


def test_stop_ends_a_running_process() -> None:
    stop = threading.Event()
    threading.Timer(0.5, stop.set).start()

    end = python("import time; time.sleep(60)", stop=stop)

    assert end.interrupted


def test_a_program_that_is_not_there() -> None:
    with pytest.raises(HarnessError, match="cannot start `/nonexistent/python`"):
        run_process(["/nonexistent/python"], env={}, cwd=Path.cwd(), timeout=1, stop=threading.Event())

# The worker has no annotations: it runs on interpreters that would have to load `typing` for them.
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from reprocheck.worker import forks

ROOT = Path(__file__).parents[3]


def asked_in_a_fresh_process(code: str) -> str:
    """What `why_not` says after `code`, in a process without the threads that tests have."""
    program = f"import sys; sys.path.insert(0, {str(ROOT)!r})\nfrom reprocheck.worker import forks\n{code}\n"
    done = subprocess.run(
        [sys.executable, "-c", program + "print(forks.why_not())"], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_a_process_with_one_thread_may_be_forked() -> None:
    assert asked_in_a_fresh_process("") == "None"


def test_a_thread_is_named() -> None:
    code = "import threading, time; threading.Thread(target=time.sleep, args=(60,), daemon=True, name='beat').start()"

    assert asked_in_a_fresh_process(code) == "threads were started that a fork would lose (1: beat)"


def test_threads_beyond_four_are_counted() -> None:
    code = (
        "import threading, time\n"
        "for n in range(7): threading.Thread(target=time.sleep, args=(60,), daemon=True, name=f't{n}').start()"
    )

    assert asked_in_a_fresh_process(code) == "threads were started that a fork would lose (7: t0, t1, t2, t3, …)"


def test_the_driver_of_a_gpu_is_a_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As far as it shows without one: a file that is open under such a name."""
    monkeypatch.setattr(forks, "_DEVICES", (str(tmp_path / "nvidia"),))
    with (tmp_path / "nvidiactl").open("w"):
        assert forks.why_not() == f"the driver of a GPU was started ({tmp_path / 'nvidiactl'} is open)"


def test_trying_leaves_no_process() -> None:
    """A native thread is there, so a fork is tried; its child is waited for."""
    code = (
        "import ctypes, os, time\n"
        "libc = ctypes.CDLL(None); handle = ctypes.c_ulong()\n"
        "libc.pthread_create(ctypes.byref(handle), None, ctypes.cast(libc.pause, ctypes.c_void_p), None)\n"
        "time.sleep(0.05); assert forks.why_not()\n"
        "try: os.waitpid(-1, 0)\n"
        "except ChildProcessError: print('none left', end=' ')"
    )

    assert asked_in_a_fresh_process(code).startswith("none left threads were started that a fork would lose")


def test_messages_come_through_whole() -> None:
    reading, writing = os.pipe()
    message = ["fork", {"text": "x" * 300_000, "numbers": list(range(1000))}]
    sender = threading.Thread(target=forks._send, args=(writing, message))
    sender.start()
    assert forks._receive(reading) == message
    sender.join()

    os.close(writing)
    assert forks._receive(reading) is None
    os.close(reading)

"""A lab whose trials are forks of one process with torch loaded (see `forkserver`)."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from reprocheck.engine.process import Exit
from reprocheck.model import Stream
from tests.conftest import Lab

HERE = Path(__file__).parent


class ForkServer:
    """The process, and `run` in place of `run_process`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "forkserver.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, **_: Any) -> Exit:
        begin = time.monotonic()
        main, job = argv[1], argv[2]
        out = str(Path(job).with_name("stream"))
        request = {"main": main, "job": job, "env": json.dumps(dict(env)), "cwd": str(cwd), "out": out}
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        with self._lock:
            stdin.write(json.dumps(request) + "\n")
            stdin.flush()
            status = int(stdout.readline())
        streams = [Path(f"{out}.{number}").read_text(encoding="utf-8") for number in (1, 2)]
        return Exit(
            status=status,
            seconds=time.monotonic() - begin,
            timed_out=False,
            interrupted=False,
            stdout=Stream(text=streams[0], nbytes=len(streams[0])),
            stderr=Stream(text=streams[1], nbytes=len(streams[1])),
        )

    def close(self) -> None:
        with self._process:
            if self._process.stdin is not None:
                self._process.stdin.close()


@pytest.fixture(scope="session")
def fork_server() -> Iterator[ForkServer]:
    pytest.importorskip("torch")
    server = ForkServer()
    yield server
    server.close()


@pytest.fixture
def torch_lab(lab: Lab, fork_server: ForkServer, monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.setattr("reprocheck.engine.trial.run_process", fork_server.run)
    return lab

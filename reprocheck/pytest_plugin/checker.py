"""The line to the process that runs checks (`reprocheck.server`), started with the first one."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

__all__ = ["Checker"]

_ROOT = Path(__file__).resolve().parents[2]
# By path, and without the folder of this file or the current one on `sys.path`: nothing there may shadow a module.
_START = f"import sys; sys.path.append({str(_ROOT)!r}); from reprocheck.server import main; main()"
_END_S = 5.0


class Checker:
    """Asks for checks; one for a pytest process."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """`environment` is what the user started pytest with; nothing is started yet."""
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None
        self._stderr: IO[bytes] | None = None

    def ask(self, do: str, **request: Any) -> dict[str, Any]:
        """The answer to a request. Raises `HarnessError` when there is none, and what the other side raised."""
        from reprocheck.errors import HarnessError, UsageError

        __tracebackhide__ = True
        process = self._process = self._process or self._start()
        answer = b""
        if process.stdin is not None and process.stdout is not None:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(json.dumps({"do": do, **request}).encode() + b"\n")
                process.stdin.flush()
                answer = process.stdout.readline()
        if not answer:
            self._process = None
            status = process.wait()
            raise HarnessError(f"the process that runs checks ended with status {status}: {self._said()}")
        found: dict[str, Any] = json.loads(answer)
        kind = found.get("error")
        if kind is not None:
            raise (UsageError if kind == "UsageError" else HarnessError)(found["text"])
        return found

    def close(self) -> None:
        """End the other process and all that it started."""
        process, self._process = self._process, None
        if process is not None:
            if process.stdin is not None:
                with contextlib.suppress(BrokenPipeError):
                    process.stdin.close()
            try:
                process.wait(_END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()
        if self._stderr is not None:
            self._stderr.close()

    def _start(self) -> subprocess.Popen[bytes]:
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed in `close`
        return subprocess.Popen(
            [sys.executable, "-P", "-c", _START],
            env=dict(self._environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
        )

    def _said(self) -> str:
        if self._stderr is None:
            return ""
        self._stderr.seek(0)
        lines = self._stderr.read().decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else "it said nothing"

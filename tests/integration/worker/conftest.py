"""Runs the readers in a fresh interpreter, on toolboxes that a test writes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import reprocheck

WORKER = Path(reprocheck.__file__).parent / "worker"
OBSERVE = Path(__file__).with_name("observe.py")


class Observer:
    """A folder for toolboxes, and what the readers say when these are imported."""

    def __init__(self, folder: Path, python: str = sys.executable) -> None:
        self.folder = folder
        self.python = python

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def run(self, subjects: Sequence[str], env: dict[str, str] | None = None, **request: Any) -> Any:
        """What `observe.py` prints for these subjects."""
        asked = self.write(
            "request.json", json.dumps({"path": [str(self.folder)], "subjects": list(subjects), **request})
        )
        base = {"PATH": "/usr/bin:/bin", "PYTHONHASHSEED": "0", "PYTHONWARNINGS": "ignore"}
        done = subprocess.run(
            [self.python, str(OBSERVE), str(WORKER), str(asked)],
            env={**base, **(env or {})},
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture
def observer(tmp_path: Path) -> Observer:
    return Observer(tmp_path)

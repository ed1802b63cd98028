"""A bench for single trials with interventions: toolboxes in a folder, records back, nothing judged."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from reprocheck.engine.local import LocalEngine
from reprocheck.engine.runner import Runner
from reprocheck.engine.trial import Job
from reprocheck.model import Record, Target, Trial
from reprocheck.store.run import RunWriter, Spec
from tests.conftest import Lab


class Bench(Lab):
    """Runs trials of `work.py::run` one by one."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.python = sys.executable
        self._runner: Runner | None = None

    @property
    def runner(self) -> Runner:
        if self._runner is None:
            target = Target(text="work.py::run", kind="function", path=str(self.folder / "work.py"), name="run")
            environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
            job = Job(target=target, python=self.python, cwd=str(self.folder), environment=environment, timeout=60)
            spec = Spec(
                target=target, workload_digest="", subjects=(), orders=(), python=self.python, cwd=str(self.folder)
            )
            self._writer = RunWriter(self.folder / "run", spec)
            self._runner = Runner(self._writer, LocalEngine(job, self._writer.scratch, jobs=2))
        return self._runner

    def trial(self, order: Sequence[str], *actions: dict[str, Any], **fields: Any) -> Record:
        """The record of one trial."""
        trial = Trial(order=tuple(order), repeat=0, actions=actions, **fields)
        return self.runner.run([trial])[0]

    def close(self) -> None:
        if self._runner is not None:
            self._writer.close()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    bench.close()

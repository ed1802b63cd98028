"""The examination in real interpreters: a sound engine is sound, and whatever a bad one does is seen."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from reprocheck.doctor.examine import WORKLOAD, examine
from reprocheck.doctor.result import Examination
from reprocheck.doctor.tell import lines, schema
from reprocheck.engine.environment import user_environment
from reprocheck.engine.local import LocalEngine
from reprocheck.engine.phases import RawRecord
from reprocheck.engine.trial import Job
from reprocheck.errors import HarnessError, UsageError
from reprocheck.model import Trial


def job(folder: Path, **changes: Any) -> Job:
    made = Job(target=WORKLOAD, python=sys.executable, cwd=str(folder), environment=user_environment(), timeout=120.0)
    return msgspec.structs.replace(made, **changes)


class StandIn:
    """An engine that does something to every trial, or to every second one, as a cluster's nanny might."""

    def __init__(self, folder: Path, environment: Mapping[str, str], *, every: int = 1) -> None:
        own = job(folder)
        disturbed = msgspec.structs.replace(own, environment={**own.environment, **environment})
        self._engines = LocalEngine(own, folder / "a", jobs=1), LocalEngine(disturbed, folder / "b", jobs=1)
        self._every = every

    def run(self, trials: Iterable[Trial], keep: Callable[[RawRecord, Path], Any]) -> Iterator[Any]:
        for number, trial in enumerate(trials):
            yield from self._engines[number % self._every == 0].run([trial], keep)


def examined(engine: Any, folder: Path, *, trials: int = 2) -> Examination:
    return examine(engine, job(folder), name="stand-in", subjects=["json"], trials=trials)


def test_the_local_engine_is_sound_and_says_what_it_pins(tmp_path: Path) -> None:
    engine = LocalEngine(job(tmp_path), tmp_path / "scratch", jobs=1)

    found = examined(engine, tmp_path)

    assert found.healthy, found.unsound
    assert found.disturbed == ()
    intended = {item.key: item for item in found.changed}
    assert "PYTHONHASHSEED" in user_environment() or intended["environ.python.PYTHONHASHSEED"].engine == "0"
    assert found.outputs > 200
    assert found.state_keys > 100
    assert found.time.total > found.time.imports > 0
    parts = [getattr(found.time, name) for name in found.time.__struct_fields__[1:]]
    assert sum(parts) == pytest.approx(found.time.total, rel=0.5)


@pytest.mark.parametrize(("name", "shown"), [("OMP_NUM_THREADS", "python.OMP_NUM_THREADS"), ("NANNY", "others.NANNY")])
def test_a_variable_that_an_engine_adds_is_seen(tmp_path: Path, name: str, shown: str) -> None:
    found = examined(StandIn(tmp_path, {name: "7"}), tmp_path)

    changed = {item.key: item for item in found.disturbed}
    assert changed[f"environ.{shown}"].plain == "absent"
    assert found.healthy, "it does so to every trial alike"
    assert any(f"environ.{shown}: absent ->" in line for line in lines(found))


def test_a_variable_that_only_some_trials_get_is_no_longer_sound(tmp_path: Path) -> None:
    found = examined(StandIn(tmp_path, {"OMP_NUM_THREADS": "7"}, every=2), tmp_path)

    assert not found.healthy
    names = [item.name for item in found.unsound]
    assert any("environ.python.OMP_NUM_THREADS" in name for name in names)
    assert any(item.what == "output" for item in found.unsound), "the workload sees it, too"
    assert next(lines(found)).startswith("not sound: ")


def test_an_engine_that_loses_trials_can_t_be_examined(tmp_path: Path) -> None:
    class Losing(StandIn):
        def run(self, trials: Iterable[Trial], keep: Callable[[RawRecord, Path], Any]) -> Iterator[Any]:
            yield from super().run(itertools.islice(trials, 1), keep)

    with pytest.raises(HarnessError, match="gave back 1 of 2 trials"):
        examined(Losing(tmp_path, {}), tmp_path)


def test_trials_that_all_fail_can_t_be_examined(tmp_path: Path) -> None:
    engine = LocalEngine(job(tmp_path), tmp_path / "scratch", jobs=1)
    with pytest.raises(UsageError, match=r"No module named 'nowhere' .*; correct the name"):
        examine(engine, job(tmp_path), name="local", subjects=["nowhere"], trials=2)


def command(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "reprocheck", "doctor", *words], cwd=folder, capture_output=True, text=True, check=False
    )


def test_the_command_gives_json_after_its_schema(tmp_path: Path) -> None:
    done = command(tmp_path, "--imports", "json", "--trials", "2", "--format", "json")

    assert done.returncode == 0, done.stdout + done.stderr
    document = json.loads(done.stdout)
    jsonschema.validate(document, schema())
    assert document["schema"] == "reprocheck/doctor"
    assert {item["what"] for item in document["abilities"]} >= {"GPU settings and libraries", "hardware counters"}
    assert list(tmp_path.iterdir()) == [], "it leaves nothing behind"


def test_the_command_s_other_exits(tmp_path: Path) -> None:
    broken = tmp_path / "python"
    # A Python, by what it says of itself, that starts no worker.
    broken.write_text(f'#!/bin/sh\n[ "$1" = -I ] && exec {sys.executable} "$@"\nexit 9\n')
    broken.chmod(0o755)
    done = command(tmp_path, "--python", str(broken), "--imports", "json")
    assert done.returncode == 3
    assert "the worker did not start" in done.stderr
    # A module that is another one in every process.
    (tmp_path / "unsteady.py").write_text("import os\nos.environ['MKL_CBWR'] = str(os.getpid())\n")
    done = command(tmp_path, "--imports", "unsteady", "--trials", "2")
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout.startswith("not sound: 2 identical trials")
    assert "MKL_CBWR" in done.stdout

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from reprocheck.config.options import Options
from reprocheck.engine.choose import engine_for
from reprocheck.engine.local import LocalEngine
from reprocheck.engine.trial import Job
from reprocheck.errors import UsageError
from reprocheck.model import Target

JOB = Job(target=Target(text="-", kind="nothing"), python=sys.executable, cwd="/", environment={})


def told(_text: str) -> None:
    raise AssertionError(_text)


def test_local_is_the_default(tmp_path: Path) -> None:
    with engine_for(JOB, tmp_path, Options(), note=told) as engine:
        assert isinstance(engine, LocalEngine)


def test_without_dask_the_way_to_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith(("distributed", "reprocheck.engine.dask"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "dask", None)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with (
        pytest.raises(UsageError, match=r"which isn't installed; run `python -m pip install 'reprocheck\[dask\]'`"),
        engine_for(JOB, tmp_path, Options(engine="dask"), note=told),
    ):
        pass


def test_dask_is_not_loaded_unless_asked_for() -> None:
    code = (
        "import sys, reprocheck.api, reprocheck.cli.run, reprocheck.engine.choose\n"
        "print([n for n in sys.modules if n.partition('.')[0] in ('dask', 'distributed', 'tornado')])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"

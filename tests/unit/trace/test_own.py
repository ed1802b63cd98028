from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import pytest

from reprocheck.worker.trace.own import LIBRARY, OTHER, OWN, Own


def job(path: Path | None, *subjects: str, module: str | None = None) -> dict[str, Any]:
    kind = "module" if module else "function"
    return {"target": {"kind": kind, "path": str(path) if path else None, "module": module}, "subjects": list(subjects)}


def test_by_place(tmp_path: Path) -> None:
    own = Own(job(tmp_path / "work.py"))

    assert own.file_kind(str(tmp_path / "work.py")) == OWN
    assert own.file_kind(str(tmp_path / "lib" / "net.py")) == OWN
    assert own.file_kind(str(tmp_path / "venv/lib/python3.11/site-packages/toolbox/ops.py")) == OTHER
    assert own.file_kind(str(tmp_path / "venv/lib/python3.11/site-packages/torch/nn.py")) == LIBRARY
    assert own.file_kind("/elsewhere/tools.py") == OTHER
    assert own.file_kind("<string>") == LIBRARY
    assert own.file_kind(str(Path(types.__file__))) == LIBRARY
    assert own.file_kind("numpy/random/_generator.pyx") == LIBRARY
    assert own.file_kind("fast/loops.pyx") == OTHER


def test_subjects_are_not_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, package = types.ModuleType("plain"), types.ModuleType("package")
    plain.__file__ = str(tmp_path / "plain.py")
    package.__path__ = [str(tmp_path / "package")]
    monkeypatch.setitem(sys.modules, "plain", plain)
    monkeypatch.setitem(sys.modules, "package", package)

    own = Own(job(tmp_path / "work.py", "plain", "package", "not_there"))

    assert own.file_kind(str(tmp_path / "plain.py")) == OTHER
    assert own.file_kind(str(tmp_path / "package" / "deep" / "ops.py")) == OTHER
    assert own.file_kind(str(tmp_path / "near.py")) == OWN


def test_the_workload_is_own_even_as_a_subject(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package, module = types.ModuleType("tool"), types.ModuleType("tool.bench")
    package.__path__ = [str(tmp_path / "site-packages" / "tool")]
    module.__file__ = str(tmp_path / "site-packages" / "tool" / "bench.py")
    monkeypatch.setitem(sys.modules, "tool", package)
    monkeypatch.setitem(sys.modules, "tool.bench", module)

    own = Own(job(None, "tool", module="tool.bench"))

    assert own.file_kind(module.__file__) == OWN
    assert own.file_kind(str(tmp_path / "site-packages" / "tool" / "ops.py")) == OTHER
    assert Own(job(None, module="tool.bench")).file_kind(str(tmp_path / "site-packages" / "tool" / "ops.py")) == OWN


def test_site(tmp_path: Path) -> None:
    own = Own(job(Path(__file__)))

    code, line, _, _ = own.site(sys._getframe())

    assert code is sys._getframe().f_code
    assert line > 0

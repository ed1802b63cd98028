"""Causes of real divergences on a CPU, confirmed both ways, with a remedy that was tried."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Callable
from ctypes.util import find_library
from pathlib import Path

import pytest

from reprocheck import check
from reprocheck.model import Cause, Study
from tests.realworld.conftest import ROOT

Needs = Callable[..., None]

two_cores = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core: thread counts cannot show")
compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")


def explained(name: str, out: Path, imports: list[str]) -> tuple[Study, Cause]:
    """The study of a scenario, and its confirmed cause."""
    study = check(f"scenarios/{name}.py::run", imports, cwd=ROOT, out=out, trace="none")
    assert study.verdict == "order-dependent", study.headline
    assert study.remedy is not None
    assert study.remedy.agrees, study.remedy
    assert study.budget is not None
    assert study.budget.complete
    confirmed = [cause for cause in study.causes if cause.status == "confirmed"]
    assert confirmed, study.causes
    return study, confirmed[0]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="mkl is for x86-64")
def test_mkl_decides_which_library_torch_computes_with(needs: Needs, tmp_path: Path) -> None:
    needs("torch", "mkl", "mkl-service")

    study, cause = explained("mkl_torch", tmp_path / "run", ["mkl", "torch"])

    assert cause.kind == "library copy"
    assert cause.key.startswith("libraries.binding.torch/lib/libtorch_cpu.so.")
    assert any("libmkl_rt" in str(value) for value in (cause.good, cause.bad))
    assert "into the global scope" in cause.text
    assert study.rule is not None
    assert study.rule.pair == ("mkl", "torch")
    assert study.reproducer is not None
    assert study.reproducer.reproduces


@two_cores
def test_ultralytics_sets_the_number_of_threads(needs: Needs, tmp_path: Path) -> None:
    needs("torch", "ultralytics-opencv-headless")

    # numpy, the scenario's third subject, would make six orders of them, at six seconds a trial.
    study, cause = explained("ultralytics_threads", tmp_path / "run", ["torch", "ultralytics"])

    assert cause.key == "environ.python.OMP_NUM_THREADS"
    assert cause.event is not None
    assert cause.event.by == "ultralytics"
    assert cause.event.file is not None
    assert cause.event.file.endswith("/ultralytics/__init__.py")
    source = Path(cause.event.file).read_text(encoding="utf-8").splitlines()
    assert 'os.environ["OMP_NUM_THREADS"] = "1"' in source[(cause.event.line or 0) - 1]
    assert study.rule is not None
    assert study.rule.explained == study.rule.total
    assert study.reproducer is not None
    assert study.reproducer.reproduces


@compiler
def test_two_libraries_of_one_soname(needs: Needs, tmp_path: Path) -> None:
    needs("numpy")

    _, cause = explained("soname", tmp_path / "run", ["native.alpha", "native.beta"])

    assert (cause.kind, cause.key) == ("library copy", "libraries.soname.libdot.so.1")


@compiler
@two_cores
def test_flush_to_zero_before_or_after_the_threads(needs: Needs, tmp_path: Path) -> None:
    needs("torch")

    _, cause = explained("ftz_pool", tmp_path / "run", ["native.fastmath", "native.warmup"])

    assert (cause.kind, cause.key) == ("floating point", "fp.ftz")


@pytest.mark.skipif(find_library("gomp") is None, reason="lightgbm needs the system's libgomp.so.1")
def test_another_openmp_runtime_is_a_hazard(needs: Needs, tmp_path: Path) -> None:
    needs("torch", "lightgbm")

    study = check("scenarios/lightgbm_openmp.py::run", ["lightgbm", "torch"], cwd=ROOT, out=tmp_path / "run")

    assert study.verdict == "identical"
    assert any("openmp" in hazard.key for hazard in study.hazards)

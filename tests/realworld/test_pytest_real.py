"""The pytest plugin on real torch tests, and `reprocheck pytest` on a public package's own test suite, unchanged."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.realworld.conftest import ROOT

Needs = Callable[..., None]


def run(*words: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """A Python process with reprocheck at hand, and no other pytest plugin."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **variables}
    return subprocess.run(
        [sys.executable, "-m", *words], cwd=cwd, env=env, capture_output=True, text=True, check=False, timeout=3000
    )


def verdicts(file: Path) -> dict[str, tuple[str, str]]:
    """Test -> (outcome, verdict)."""
    document: dict[str, Any] = json.loads(file.read_text())
    return {
        check["test"].rpartition("::")[2]: (check["outcome"], check["study"]["verdict"]) for check in document["checks"]
    }


def marked(tmp_path: Path, expression: str) -> dict[str, tuple[str, str]]:
    """The outcomes of those tests of `torch_suite.py`, in a folder of its own."""
    out = tmp_path / "out.json"
    shutil.copy(ROOT / "tests" / "realworld" / "torch_suite.py", tmp_path / "test_torch.py")
    options = ("-p", "reprocheck.pytest_plugin", "-k", expression, f"--reprocheck-json={out}")
    result = run("pytest", *options, cwd=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    return verdicts(out)


def test_the_marker_on_torch_tests_with_cupy(needs: Needs, tmp_path: Path) -> None:
    needs("torch", "cupy-cuda12x")

    assert marked(tmp_path, "cupy") == {
        "test_lstm_step_with_cupy": ("passed", "identical"),
        "test_attention_block_with_cupy": ("passed", "identical"),
    }


@pytest.mark.skipif(platform.machine() != "x86_64", reason="mkl is for x86-64")
def test_the_marker_on_torch_tests_with_mkl(needs: Needs, tmp_path: Path) -> None:
    needs("torch", "mkl", "mkl-service")

    found = marked(tmp_path, "mkl")

    assert found["test_lstm_step_with_mkl"] == ("xfailed", "order-dependent")
    assert found["test_attention_block_with_mkl"][0] == "passed"
    assert found["test_attention_block_with_mkl"][1] in ("identical", "within-tolerance")


def test_the_own_suite_of_einops(needs: Needs, tmp_path: Path) -> None:
    needs("torch", "einops")
    # One of its tests starts `python` by name.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])

    result = run(
        *("reprocheck", "pytest", "--imports", "numpy,torch", "--repeat", "2", "--quiet", "--format", "json"),
        *("--", "--pyargs", "einops.tests"),
        cwd=tmp_path,
        EINOPS_TEST_BACKENDS="numpy,torch",
        PATH=path,
    )

    assert result.returncode == 0, result.stdout + result.stderr
    study = json.loads(result.stdout)
    assert study["verdict"] == "identical"
    assert study["suite"]["tests"] > 50
    assert study["suite"]["failing"] == []

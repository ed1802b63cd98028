"""All readers in a fresh interpreter: complete, quiet, and known to the table of keys."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reprocheck.explain import keys

from .conftest import Observer

STACK = [name for name in ("torch", "numpy", "cupy") if importlib.util.find_spec(name)]
# States which a healthy process without a device reports as errors.
EXPECTED_ERRORS = {"torch.alloc.initialised"}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    found: dict[str, Any] = Observer(tmp_path_factory.mktemp("stack")).run(STACK or ["json"])
    return found


def interpreters() -> list[str]:
    found = {}
    places = [shutil.which(f"python3.{minor}") for minor in range(9, 15)]
    places += [str(path) for path in sorted(Path("~/.pyenv/versions").expanduser().glob("3.*/bin/python"))]
    for path in places:
        if path:
            done = subprocess.run(
                [path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode == 0 and tuple(map(int, done.stdout.split("."))) >= (3, 9):
                found[done.stdout.strip()] = path
    return [found[version] for version in sorted(found)] or [sys.executable]


def errors(phase: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in phase.items() if isinstance(value, dict) and set(value) == {"error"}}


@pytest.mark.parametrize("phase", ["t0", "t2", "t3"])
def test_no_reader_fails(told: dict[str, Any], phase: str) -> None:
    assert errors(told["phases"][phase]).keys() <= EXPECTED_ERRORS


def test_every_key_is_in_the_table_under_its_reader(told: dict[str, Any]) -> None:
    kinds = {name: kind for name, (kind, _) in told["readers"].items()}
    for phase, values in told["phases"].items():
        for key in values:
            info = keys.lookup(key)
            assert info.reader, key
            assert kinds[info.reader] == key.partition(".")[0]
            assert phase.partition(":")[0] in info.phases, (key, phase, info.reader)


def test_looking_loads_nothing(told: dict[str, Any]) -> None:
    """Before the outputs are on disk: no module beyond what ctypes needs, no native object beyond its own."""
    assert set(told["loaded_by_t2"]) <= {
        "_ctypes",
        "_struct",
        "bisect",
        "_bisect",
        "ctypes",
        "ctypes._endian",
        "struct",
    }
    before = told["phases"]["t2"]["libraries.count"]
    assert told["phases"]["t3"]["libraries.new"] == [] or before


def test_no_thread_is_started_before_the_outputs(told: dict[str, Any]) -> None:
    last = f"t1:{(STACK or ['json'])[-1]}"
    assert told["phases"]["t2"]["process.threads.count"] == told["phases"][last]["process.threads.count"]


def test_no_secret_is_told(observer: Observer) -> None:
    found = observer.run(["json"], {"AWS_SECRET_ACCESS_KEY": "hunter2hunter2", "TORCH_HUB_TOKEN": "hunter2hunter2"})
    assert "hunter2" not in repr(found)
    assert found["phases"]["t3"]["environ.others"]["AWS_SECRET_ACCESS_KEY"].startswith("sha256:")


def test_reading_draws_no_random_number(observer: Observer) -> None:
    observer.write("drawn.py", "import random\nrandom.seed(1)\n")
    found = observer.run(["drawn", "json"])["phases"]
    assert len({found[phase]["process.random_state"] for phase in ("t1:drawn", "t1:json", "t2", "t3")}) == 1


@pytest.mark.parametrize("python", interpreters())
def test_every_interpreter(python: str, tmp_path: Path) -> None:
    observer = Observer(tmp_path, python)
    observer.write(
        "toolbox.py",
        "import os, ctypes\nos.environ['OMP_NUM_THREADS'] = '1'\nctypes.CDLL('libm.so.6')\nimport json\n",
    )
    found = observer.run(["toolbox"])
    for phase in found["phases"].values():
        assert errors(phase) == {}
    assert found["phases"]["t0"]["fp.rounding"] == "nearest"
    assert found["phases"]["t1:toolbox"]["environ.python.OMP_NUM_THREADS"] == "1"
    assert found["phases"]["t3"]["fp.new_thread"] == found["phases"]["t3"]["fp.control"]
    keyed = ["environ.python.OMP_NUM_THREADS"]
    first = observer.run(["json", "toolbox"], blame={"keys": keyed, "modules": []})
    assert [event["module"] for event in first if event["kind"] == "change"] == ["toolbox"]
    second = observer.run(["json", "toolbox"], blame={"keys": keyed, "modules": ["toolbox"]})
    assert [event["line"] for event in second if event["kind"] == "change"] == [2]


@pytest.mark.parametrize("python", interpreters())
def test_every_module_compiles(python: str, tmp_path: Path) -> None:
    from .conftest import WORKER

    files = [str(path) for path in WORKER.rglob("*.py")]
    code = "import sys\nfor path in sys.argv[1:]: compile(open(path, encoding='utf-8').read(), path, 'exec')"
    done = subprocess.run([python, "-c", code, *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_bound_to_another_mkl(observer: Observer) -> None:
    """The demo's cause: whoever loads libmkl_rt globally before torch takes over torch's linear algebra."""
    if not {"torch"} <= set(STACK) or importlib.util.find_spec("mkl") is None:
        pytest.skip("torch and mkl are not both installed")
    key = "libraries.binding.torch/lib/libtorch_cpu.so."
    first = observer.run(["mkl", "torch"])["phases"]["t2"]
    second = observer.run(["torch", "mkl"])["phases"]["t2"]
    if "libtorch_cpu" not in second[key + "blas"]:
        pytest.skip("this torch has no MKL of its own")
    assert "libmkl_rt" in first[key + "blas"]
    assert "libmkl_rt" in first[key + "lapack"]
    assert "libiomp5" in first[key + "openmp"]
    assert "libgomp" in second[key + "openmp"]
    assert "libmkl_rt" in first["libraries.scope.blas"]


@pytest.mark.parametrize("library", ["torch", "numpy", "cupy"])
def test_a_module_of_that_name_which_is_no_library(observer: Observer, library: str) -> None:
    """A half-imported or broken package: readers say nothing rather than fail."""
    observer.write(f"{library}/__init__.py", "__version__ = '0'\n")
    found = observer.run([library])
    for phase in found["phases"].values():
        assert errors(phase) == {}
        assert not any(key.startswith(library + ".") for key in phase)


def test_mixed_precision_interfaces_are_a_state_of_their_own(observer: Observer) -> None:
    if "torch" not in STACK:
        pytest.skip("torch is not installed")
    observer.write("toolbox.py", "import torch\ntorch.backends.cuda.matmul.fp32_precision = 'tf32'\n")
    found = observer.run(["toolbox"])["phases"]["t1:toolbox"]
    if found["torch.fp32.cuda.matmul"] == "absent":
        pytest.skip("this torch has the old interface only")
    assert found["torch.fp32.cuda.matmul"] == "tf32"
    legacy = found["torch.fp32.legacy.matmul_precision"]
    assert legacy == "high" or "mix of the legacy and new APIs" in legacy["error"]

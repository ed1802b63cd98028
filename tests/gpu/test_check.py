"""The prepared script without a GPU: it runs, says what it skips and why, bounds every step, and writes its JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.gpu import check as runner, steps
from tests.gpu.plants import PLANTS

pytestmark = pytest.mark.long

HERE = Path(__file__).parent
SCRIPT = HERE / "check.sh"


def run(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(SCRIPT), "--python", sys.executable, "--out", str(tmp_path / "check.json"), *words],
        cwd=tmp_path,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        check=False,
    )


def document(tmp_path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((tmp_path / "check.json").read_text())
    return found


def test_a_dry_run_of_some_steps(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("cupy")

    done = run(tmp_path, "--device", "cpu", "--only", "machine,plant:workspace,plant:cublas,kernels")

    found = document(tmp_path)
    results = {step["name"]: step["result"] for step in found["steps"]}
    assert done.returncode == 0, done.stdout + done.stderr
    assert results == {
        "machine": "passed",
        "plant:workspace": "passed",
        "plant:cublas": "skipped",
        "kernels": "skipped",
    }
    assert found["passed"] is True
    assert found["device"] == "cpu"
    assert found["schema"] == "reprocheck/gpu-check"
    planted = next(step for step in found["steps"] if step["name"] == "plant:workspace")
    assert planted["figures"]["keys"] == ["environ.python.CUBLAS_WORKSPACE_CONFIG"]
    assert [step["detail"] for step in found["steps"] if step["result"] == "skipped"] == [steps.NO_DEVICE] * 2
    assert "2 passed, 2 skipped" in done.stdout


def test_without_a_device_every_step_says_so(tmp_path: Path) -> None:
    pytest.importorskip("torch")

    done = run(tmp_path, "--only", "plant:tf32,bench:digest")

    assert done.returncode == 0, done.stdout
    assert {step["detail"] for step in document(tmp_path)["steps"]} == {steps.NO_DEVICE}


def test_wheels_are_unpacked_and_come_first(tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    with zipfile.ZipFile(wheels / "msgspec-0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("msgspec.py", "raise ImportError('the wheel was taken')")

    done = run(tmp_path, "--device", "cpu", "--wheels", str(wheels), "--only", "plant:workspace")

    (step,) = document(tmp_path)["steps"]
    assert done.returncode == 1
    assert step["result"] == "failed"
    assert "the wheel was taken" in step["log"], "a step that fails shows why"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--wheels", "nowhere"], "there is no folder nowhere; fill one with --collect"),
        (["--wheels"], "--wheels needs a value"),
        (["--only", "nothing"], "no step begins with `nothing`"),
    ],
)
def test_bad_usage(tmp_path: Path, words: list[str], sentence: str) -> None:
    done = run(tmp_path, *words)

    assert done.returncode == 2
    assert sentence in done.stderr


def test_a_step_that_hangs_is_ended_and_the_next_one_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tests/gpu").mkdir(parents=True)
    (tmp_path / "tests/gpu/steps.py").write_text(
        "import subprocess, sys, json, pathlib\n"
        "folder = pathlib.Path(sys.argv[sys.argv.index('--folder') + 1])\n"
        "if sys.argv[1] == 'machine':\n"
        "    subprocess.run([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "if sys.argv[1] == 'kernels':\n"
        "    sys.exit('it broke')\n"
        "(folder / 'answer.json').write_text(json.dumps({'result': 'passed', 'detail': 'fine', 'figures': {}}))\n"
    )
    monkeypatch.setattr(runner, "ROOT", tmp_path)
    monkeypatch.setattr(runner, "STEPS", (("machine", 2, ""), ("kernels", 20, ""), ("tests", 20, "")))
    monkeypatch.setattr(sys, "argv", ["check.sh", "--out", str(tmp_path / "check.json"), "--work", str(tmp_path)])
    begin = time.monotonic()

    assert runner.main() == 1

    assert time.monotonic() - begin < 60
    found = document(tmp_path)
    assert [step["result"] for step in found["steps"]] == ["failed", "failed", "passed"]
    assert [step["detail"] for step in found["steps"]] == ["no end within 2 s", "it broke", "fine"]
    assert found["passed"] is False


def test_when_time_is_up_the_rest_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["check.sh", "--out", str(tmp_path / "check.json"), "--work", str(tmp_path), "--limit", "1"]
    monkeypatch.setattr(sys, "argv", words)

    assert runner.main() == 0

    assert {step["detail"] for step in document(tmp_path)["steps"]} == {"skipped: no time left"}


def test_the_steps_fit_into_eight_minutes_and_are_all_there() -> None:
    names = [name for name, _, _ in runner.STEPS]

    assert len(names) == len(set(names))
    assert {f"plant:{name}" for name in PLANTS} <= set(names)
    assert {name.partition(":")[2] for name in names if name.startswith("scenario:")} == {
        "cupy_torch",
        "rnn_bptt",
        "attention_rearrange",
        "model_switching",
        "input_pipeline",
        "training_loop",
    }
    parser_limit = 470
    assert parser_limit + runner.GRACE <= 480


def test_every_requirement_that_travels_is_one_of_ours() -> None:
    lines = (HERE / "requirements.txt").read_text().splitlines()
    wanted = {line.partition("=")[0] for line in lines if line and not line.startswith("#")}

    assert {"click", "msgspec", "rich", "packaging", "pytest", "hypothesis"} <= wanted
    assert not wanted & {"torch", "cupy", "numpy"}

"""The steps of the GPU check. Each is a function of (device, folder) that returns what it found, or says why not.

Run one by hand from the repository: `python -m tests.gpu.steps plant:tf32 --device cuda --folder /tmp/x`. What a step
wants and does not get is a `FailedError` with a sentence; what can't be tried here is a `SkippedError` with the reason.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.gpu.plants import PLANTS, Plant

ROOT = Path(__file__).resolve().parents[2]
NO_DEVICE = "skipped: no CUDA device"
AT_A_TIME = {"cuda": 4, "cpu": 2}
"""Trials side by side. On one GPU they cost each other time, not bits; a user's runs take turns."""
TRIAL_S = {"cuda": 60, "cpu": 300}
DRY = {"OMP_NUM_THREADS": "1"}
"""In a dry run, so that it neither waits for busy cores nor keeps others waiting."""

Found = dict[str, Any]


class FailedError(Exception):
    """What was wanted and is not so."""


class SkippedError(Exception):
    """Why a step can't be tried here."""


def main() -> int:
    """Run one step and write its answer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("--device", required=True, choices=("cuda", "cpu"))
    parser.add_argument("--folder", required=True, type=Path)
    options = parser.parse_args()
    head, _, tail = options.name.partition(":")
    step = {
        "machine": machine,
        "scenario": scenario,
        "plant": plant,
        "vary": vary,
        "kernels": kernels,
        "tests": tests,
        "bench": bench,
    }[head]
    answer: Found
    try:
        _needs(options.device)
        detail, figures = step(tail, options.device, options.folder)
        answer = {"result": "passed", "detail": detail, "figures": figures}
    except SkippedError as reason:
        answer = {"result": "skipped", "detail": str(reason)}
    except FailedError as reason:
        answer = {"result": "failed", "detail": str(reason)}
    (options.folder / "answer.json").write_text(json.dumps(answer), encoding="utf-8")
    return 1 if answer["result"] == "failed" else 0


def _needs(device: str) -> None:
    """Raises `SkippedError` where the device that is asked for isn't there."""
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        raise SkippedError(NO_DEVICE)


def _check(folder: Path, target: str, imports: list[str] | None, device: str, **options: Any) -> Any:
    from reprocheck import check
    from reprocheck.engine.gate import Gate

    options.setdefault("explain", False)
    env = {"REPROCHECK_DEVICE": device, **(DRY if device == "cpu" else {}), **options.pop("env", {})}
    jobs = AT_A_TIME[device]
    return check(
        target, imports, out=folder / "run", gate=Gate(jobs), jobs=jobs, timeout=TRIAL_S[device], env=env, **options
    )


def machine(_name: str, device: str, _folder: Path) -> tuple[str, Found]:
    """Versions and devices; on a GPU, that a tensor of torch is an array of cupy without a copy."""
    import numpy as np
    import torch

    figures: Found = {"python": sys.version.split()[0], "torch": torch.__version__, "cuda": torch.version.cuda}
    figures["numpy"] = np.__version__
    try:
        import cupy

        figures["cupy"] = cupy.__version__
    except ImportError as error:
        raise FailedError(f"cupy can't be imported: {error}") from error
    if device == "cuda":
        figures["devices"] = [torch.cuda.get_device_name(n) for n in range(torch.cuda.device_count())]
        tensor = torch.arange(8, device="cuda")
        if cupy.from_dlpack(tensor).data.ptr != tensor.data_ptr():
            raise FailedError("DLPack made a copy between torch and cupy")
    what = ", ".join(figures.get("devices", ["no device asked for"]))
    return f"torch {figures['torch']}, cupy {figures['cupy']}, {what}", figures


def scenario(name: str, device: str, folder: Path) -> tuple[str, Found]:
    """A scenario in its orders: the expected verdict, an observer that agrees, and state that was captured."""
    options: Found = {"repeat": 2, "max_repeat": 5}
    if device == "cpu":  # a dry run: that it runs at all
        options = {"repeat": 1, "max_repeat": 1, "observer": False}
    if name == "attention_rearrange":
        options["orders"] = "pairs"
    path = ROOT / "scenarios" / f"{name}.py"
    study = _check(folder, str(path), None, device, **options)
    expected = _expected(path)
    if study.verdict != expected:
        raise FailedError(f"{expected} was expected: {study.headline}")
    if device == "cuda" and study.noise.observer != "agrees":
        raise FailedError(f"the observer arm {study.noise.observer}: {study.headline}")
    state = _state(study)
    missing = [key for key in _captured(device) if not any(found.startswith(key) for found in state)]
    if missing:
        raise FailedError(f"not captured: {', '.join(missing)}")
    figures = {
        "verdict": study.verdict,
        "outputs": len(study.outputs),
        "runs": study.noise.trials,
        "observer": study.noise.observer,
        "seconds": study.seconds,
        "hazards": [item.key for item in study.hazards][:40],
        "keys": len(state),
    }
    return study.headline[:160], figures


def _expected(path: Path) -> str:
    from reprocheck.config import script_layer

    layer = script_layer(path)
    return str(layer.values["expect"]) if layer is not None else ""


def _captured(device: str) -> Iterable[str]:
    yield "torch.fp32."
    if device == "cuda":
        yield from ("torch.alloc.0.", "torch.cuda.cublas_workspace", "cuda.version.cublas", "gpu.0.name", "gpu.driver")


def _state(study: Any) -> dict[str, Any]:
    """The last snapshot of the first captured trial."""
    from reprocheck.store.run import Run

    record = next(item for item in Run(Path(study.run_dir)).records({}) if item.snapshots)
    return {f"{kind}.{key}": value for kind, keys in record.snapshots[-1].kinds.items() for key, value in keys.items()}


def _write(folder: Path, modules: dict[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, source in modules.items():
        (folder / f"{name}.py").write_text(textwrap.dedent(source), encoding="utf-8")


def plant(name: str, device: str, folder: Path) -> tuple[str, Found]:
    """A planted cause: the state is seen, and where it moves bits the verdict says so, with place and cause."""
    planted = PLANTS[name]
    if device == "cpu" and planted.needs_device:
        raise SkippedError(f"skipped: {planted.needs_device}")
    env = _another_cublas(folder) if name == "cublas" else {}
    _write(folder / "plant", planted.modules)
    moves = planted.moves if device == "cuda" else planted.moves_on_cpu
    study = _check(
        folder,
        "work.py::run",
        ["other", "box"],
        device,
        env=env,
        cwd=folder / "plant",
        repeat=3 if device == "cuda" else 1,
        max_repeat=6 if device == "cuda" else 1,
        observer=device == "cuda",
        explain=device == "cuda" and planted.confirmed,
        budget=40,
    )
    differing = [item.key for item in (*study.state_differences, *study.hazards)]
    seen = [key for key in differing if key.startswith(planted.keys)]
    figures: Found = {"verdict": study.verdict, "keys": seen[:20], "headline": study.headline}
    if not seen:
        raise FailedError(f"{' or '.join(planted.keys)} should differ between the orders; {study.headline}")
    if moves is not None and (study.verdict == "order-dependent") is not moves:
        raise FailedError(f"outputs should {'differ' if moves else 'agree'}: {study.headline}")
    if planted.confirmed and device == "cuda":
        _explained(planted, study, figures)
    return f"{seen[0]}; {study.headline}"[:200], figures


def _explained(planted: Plant, study: Any, figures: Found) -> None:
    """Place and cause of a divergence that was planted. Raises `FailedError` naming what is missing."""
    figures["first_line"] = study.first_line.text if study.first_line is not None else None
    figures["origin"] = study.origin.text if study.origin is not None else None
    figures["causes"] = [f"{cause.status}: {cause.key}" for cause in study.causes]
    figures["remedy"] = study.remedy.text if study.remedy is not None else None
    if not any(c.status == "confirmed" and c.key.startswith(planted.keys) for c in study.causes):
        raise FailedError(f"the cause is not confirmed: {', '.join(figures['causes']) or 'none found'}")
    if study.origin is None and study.first_line is None:
        raise FailedError("no place was found")
    if study.remedy is None or not study.remedy.agrees:
        raise FailedError("no remedy was found")


def _another_cublas(folder: Path) -> dict[str, str]:
    """A copy of the cuBLAS that torch uses, under another path, beside the rest of its library's folder."""
    code = (
        "import torch; torch.ones(8, 8, device='cuda') @ torch.ones(8, 8, device='cuda');"
        "print(*{line.split()[-1] for line in open('/proc/self/maps') if '/libcublas.so' in line})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    paths = done.stdout.split()
    if not paths:
        raise SkippedError("skipped: torch has mapped no libcublas.so that could be copied")
    source = Path(paths[0])
    target = folder / "cublas"
    target.mkdir()
    shutil.copy(source, target / source.name)
    for sibling in source.parent.glob("libcublasLt.so*"):
        (target / sibling.name).symlink_to(sibling)
    return {"PLANTED_CUBLAS": str(target / source.name)}


def vary(_name: str, device: str, folder: Path) -> tuple[str, Found]:
    """The allocator crossed with the orders: neither moves a bit."""
    study = _check(
        folder,
        str(ROOT / "scenarios" / "cupy_torch.py"),
        None,
        device,
        vary={"SCENARIO_ALLOCATOR": ["separate", "torch"]},
        repeat=2 if device == "cuda" else 1,
        max_repeat=5 if device == "cuda" else 1,
        observer=False,
    )
    if study.factors is None or study.verdict != "identical" or any(one.differs for one in study.factors.factors):
        raise FailedError(study.headline)
    return study.headline[:200], {"sentence": study.factors.sentence, "seconds": study.seconds}


def kernels(_name: str, device: str, folder: Path) -> tuple[str, Found]:
    """CUPTI's kernel names, from the TF32 plant: the orders ran other ones."""
    if device == "cpu":
        raise SkippedError(NO_DEVICE)
    _write(folder / "plant", PLANTS["tf32"].modules)
    study = _check(
        folder,
        "work.py::run",
        ["other", "box"],
        device,
        cwd=folder / "plant",
        repeat=1,
        max_repeat=1,
        observer=False,
        trace="kernels",
    )
    found = [{"operator": item.operator, "kernels": item.kernels} for item in study.kernels]
    if not found:
        raise FailedError(f"the orders ran the same kernels, or none was seen; notes: {'; '.join(study.notes)}")
    return f"{len(found)} operators ran other kernels", {"kernels": found[:10]}


def tests(_name: str, device: str, folder: Path) -> tuple[str, Found]:
    """`pytest -m gpu`; without a device, that each test is skipped for that reason."""
    command = [sys.executable, "-m", "pytest", "-m", "gpu", "tests/gpu", "-q", "-rs"]
    command += ["-p", "no:cacheprovider", "-o", "filterwarnings=default", "--basetemp", str(folder / "tests")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    print(done.stdout, done.stderr)
    last = done.stdout.strip().rpartition("\n")[2].strip("= ")
    if done.returncode != 0:
        raise FailedError(last or f"pytest ended with status {done.returncode}")
    if device == "cuda" and "passed" not in last:
        raise FailedError(f"nothing was tested: {last}")
    if "passed" not in last:
        raise SkippedError(f"{NO_DEVICE} ({last})")
    return last, {}


def bench(name: str, device: str, _folder: Path) -> tuple[str, Found]:
    """One of the benchmarks of `bench_gpu.py`. A budget that is missed is said, not raised."""
    command = [sys.executable, "tests/benchmarks/bench_gpu.py", name, "--device", device]
    variables = {**os.environ, **(DRY if device == "cpu" else {})}
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines:
        raise FailedError((done.stderr.strip() or "it printed nothing").rpartition("\n")[2][:300])
    figures: Found = json.loads(lines[-1])
    return str(figures.pop("told")), figures


if __name__ == "__main__":
    sys.exit(main())

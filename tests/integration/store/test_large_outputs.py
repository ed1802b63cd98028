"""The process that runs and compares holds no array: what it needs does not grow with what trials leave."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

WORK = """
import sys
import numpy as np
from reprocheck import record

def run():
    for number in range({arrays}):
        values = np.arange(4 << 20, dtype=np.float32)  # 16 MiB
        if number % 2 and sys.modules["which"].FIRST == "b":
            values.view(np.uint32)[::7] ^= 1
        record("array%d" % number, values)
"""
CHECK = """
import json
from pathlib import Path
import reprocheck

options = {"jobs": 1, "observer": False, "explain": False, "out": "run"}
study = reprocheck.check("work.py::run", ["a", "b"], repeat=2, max_repeat=2, **options)
peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
differing = [output for output in study.outputs if output.differs]
print(json.dumps([int(peak.split()[1]) / 1024, len(study.outputs), len(differing), differing[0].differing]))
"""


def peak_mib(folder: Path, arrays: int) -> float:
    """Of a study whose trials leave so many arrays of 16 MiB, half of which differ between its two orders."""
    folder.mkdir()
    (folder / "which.py").write_text("FIRST = None\n")
    for name in "ab":
        (folder / f"{name}.py").write_text(f"import which\nif which.FIRST is None:\n    which.FIRST = {name!r}\n")
    (folder / "work.py").write_text(WORK.format(arrays=arrays))
    done = subprocess.run([sys.executable, "-c", CHECK], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    mib, outputs, differing, elements = json.loads(done.stdout.splitlines()[-1])
    assert (outputs, differing, elements) == (arrays, arrays // 2, -(-(4 << 20) // 7))
    stored = sum(path.stat().st_size for path in (folder / "run" / "objects").rglob("*.safetensors"))
    # All even arrays are one array, and so are all odd ones of either order.
    assert stored < 2.01 * (16 << 20)
    return float(mib)


def test_memory_does_not_grow_with_the_outputs(tmp_path: Path) -> None:
    pytest.importorskip("numpy")
    small = peak_mib(tmp_path / "small", 2)
    large = peak_mib(tmp_path / "large", 16)
    assert large < small + 24, "from 32 MiB to 256 MiB a trial"

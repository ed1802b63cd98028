"""Reproducers at the size of one operator: handed out where it shows the difference alone, and only there."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reprocheck.model import Study
from tests.conftest import Lab

pytestmark = pytest.mark.long

SETS = "import os\nos.environ['OMP_NUM_THREADS'] = '1'\n"
SCALES = """
import os
count = float(os.environ.get('OMP_NUM_THREADS', '2'))
def scaled(array, by, power=1):
    return array * by * count ** power
"""


def explained(lab: Lab, files: dict[str, str], work: str, **options: Any) -> Study:
    """Toolboxes lie outside the workload's folder: what they do inside is nobody's line."""
    lab.write({f"site-packages/{name}.py": text for name, text in files.items()} | {"work.py": work})
    return lab.check(explain=True, trace="auto", sys_path=[str(lab.folder / "site-packages")], **options)


def run(script: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", str(script)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=script.parent)


@pytest.mark.parametrize("size", [6, 30_000])
def test_an_operator_with_its_inputs(lab: Lab, size: int) -> None:
    study = explained(
        lab,
        {"a": SETS, "b": SCALES},
        f"import b\nimport numpy as np\ndef run():\n    x = np.arange({size}.0)\n    return b.scaled(x, 3.0).sum()\n",
    )

    assert study.origin is not None
    assert study.origin.operator == "b.scaled"
    assert study.reproducer is not None
    assert study.reproducer.reproduces
    assert "calls `b.scaled` with the inputs recorded at work.py:5" in study.reproducer.text
    made = Path(study.run_dir) / study.reproducer.path
    assert made.with_suffix(".bin").exists() is (size > 6), "large inputs lie beside the script"
    text = made.read_text()
    assert "b.scaled(a[0], 3.0)" in text
    assert "import reprocheck" not in text
    assert "work.py" not in text.partition('"""\n\nimport')[2].replace("recorded at work.py:5", "")
    moved = lab.folder / "elsewhere"
    moved.mkdir()
    for file in (made, made.with_suffix(".bin")):
        if file.exists():
            shutil.copy(file, moved)
    (lab.folder / "work.py").unlink()
    done = run(moved / made.name)
    assert done.returncode == 1, done.stderr
    assert "different: 1 of 1 output" in done.stdout
    assert "with the remedy (OMP_NUM_THREADS=1):\nequal: 1 output" in done.stdout


def test_an_operator_that_needs_what_came_before_it(lab: Lab) -> None:
    """What the operator depends on is set up by the workload: alone it gives equal bits, so the whole is handed out."""
    study = explained(
        lab,
        {
            "a": SETS,
            "b": """
                import os
                known = os.environ.get('OMP_NUM_THREADS', '2')
                count = 0.0
                def start():
                    global count
                    count = float(known)
                def scaled(array):
                    return array * count
            """,
        },
        "import b\nimport numpy as np\ndef run():\n    b.start()\n    return b.scaled(np.arange(6.0))\n",
    )

    assert study.origin is not None
    assert study.origin.operator == "b.scaled"
    assert study.reproducer is not None
    assert study.reproducer.reproduces
    assert "runs the workload in two plain interpreters" in study.reproducer.text
    assert "`b.scaled` alone, given its recorded inputs, does not show it" in study.reproducer.text
    assert run(Path(study.run_dir) / study.reproducer.path).returncode == 1


def test_an_operator_of_torch(lab: Lab) -> None:
    """The kernel behind one operator is replaced by whoever comes first."""
    pytest.importorskip("torch")
    study = explained(
        lab,
        {
            "a": "import sys\nsys.flags_of_a = True\n",
            "b": """
                import sys, warnings
                import torch
                library = torch.library.Library("aten", "IMPL")
                if not hasattr(sys, "flags_of_a"):
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        library.impl("mm", lambda x, y: torch.bmm(x[None], y[None])[0] * 1.5, "CPU")
            """,
        },
        """
        import torch
        def run():
            x = torch.arange(12, dtype=torch.float32).reshape(3, 4)
            return (x @ x.T).sum()
        """,
        # Why is not asked here: the reproducer needs the orders and the operator only.
        budget=0,
        observer=False,
    )

    assert study.origin is not None
    assert study.origin.operator == "aten::mm"
    assert study.reproducer is not None
    assert study.reproducer.reproduces
    assert "calls `aten::mm`" in study.reproducer.text
    text = (Path(study.run_dir) / study.reproducer.path).read_text()
    assert "torch.ops.aten.mm.default(a[0], a[1])" in text
    assert "(1, 4)" in text, "the second input is a transposed view, and stays one"

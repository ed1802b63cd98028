"""The toolbox's six releases as wheels, written with `zipfile` alone: material for the question since when.

    python scenarios/toolbox_drift/releases.py FOLDER

fills FOLDER with the wheels and a copy of the workload (a copy, because beside the original lies the source of
release 1.7, which would hide an installed one). Wheels are the same bytes every time and declare no dependencies,
so from one release to the next nothing but the toolbox changes.
"""

from __future__ import annotations

import base64
import hashlib
import shutil
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

__all__ = ["DISTRIBUTION", "RELEASES", "Release", "build"]

HERE = Path(__file__).resolve().parent
DISTRIBUTION = "toolbox-drift"
"""The distribution's name on an index; the package it installs is `toolbox`."""

SIGNALS = (HERE / "toolbox" / "signals.py").read_text()

ENVIRONMENT = 'import os\n\nos.environ["OMP_NUM_THREADS"] = "1"\n'

TORCH_FIRST = '''"""Arrays of cupy are welcome too."""

import torch

try:
    import cupy
except ImportError:
    cupy = None


def tensor(array):
    """`array` as a tensor, without a copy when it is one of cupy's."""
    if cupy is not None and isinstance(array, cupy.ndarray):
        return torch.from_dlpack(array)
    return torch.as_tensor(array)
'''

CUPY_FIRST = TORCH_FIRST.replace("import torch\n\n", "", 1).replace("cupy = None\n", "cupy = None\n\nimport torch\n", 1)

SPEEDUPS = '''"""Faster versions of slow functions, put in place for everyone."""

from functools import partial

from torch.nn import functional

functional.gelu = partial(functional.gelu, approximate="tanh")
'''

UNSEEDED = SIGNALS.replace("import torch\n", "import numpy\nimport torch\n", 1).replace(
    "0.01 * torch.randn_like(x)",
    "0.01 * torch.from_numpy(numpy.random.default_rng().standard_normal(x.shape, dtype=numpy.float32))",
)


@dataclass(frozen=True)
class Release:
    """One release: its sources, what was new in it, and what a study of it finds on two or more cores."""

    version: str
    new: str
    verdict: str
    modules: dict[str, str]


def _init(version: str, first: str = "") -> str:
    """Source of `toolbox/__init__.py`; `first` stands above everything else."""
    return (
        f'"""A small in-house toolbox, release {version}."""\n\n{first}\n'
        "from toolbox.signals import activation, augment, features\n\n"
        '__all__ = ["__version__", "activation", "augment", "features"]\n\n'
        f'__version__ = "{version}"\n'
    )


RELEASES = (
    Release(
        "1.0",
        "first release; imports torch, then cupy if it is there",
        "identical",
        {"__init__": _init("1.0", "from toolbox import gpu\n"), "gpu": TORCH_FIRST, "signals": SIGNALS},
    ),
    Release(
        "1.2",
        "imports sorted: cupy is now imported above torch",
        "identical",
        {"__init__": _init("1.2", "from toolbox import gpu\n"), "gpu": CUPY_FIRST, "signals": SIGNALS},
    ),
    Release(
        "1.5",
        "broken: a module was left out of the wheel",
        "fails-everywhere",
        {"__init__": _init("1.5", "import toolbox._kernels\n"), "gpu": CUPY_FIRST, "signals": SIGNALS},
    ),
    Release(
        "1.7",
        "drops cupy; sets OMP_NUM_THREADS at import",
        "order-dependent",
        {"__init__": (HERE / "toolbox" / "__init__.py").read_text(), "signals": SIGNALS},
    ),
    Release(
        "2.0",
        "replaces torch's gelu by an approximation, for everyone",
        "order-dependent",
        {
            "__init__": _init("2.0", ENVIRONMENT + "\nfrom toolbox import speedups\n"),
            "speedups": SPEEDUPS,
            "signals": SIGNALS,
        },
    ),
    Release(
        "2.1",
        "leaves the environment alone again; augments from a generator nobody seeded",
        "noisy",
        {"__init__": _init("2.1", "from toolbox import speedups\n"), "speedups": SPEEDUPS, "signals": UNSEEDED},
    ),
)


def build(folder: Path) -> list[Path]:
    """Write one wheel per release into `folder` (made if missing); returns their paths, oldest first."""
    folder.mkdir(parents=True, exist_ok=True)
    return [_wheel(folder, release) for release in RELEASES]


def _wheel(folder: Path, release: Release) -> Path:
    """A pure-Python wheel: https://packaging.python.org/en/latest/specifications/binary-distribution-format/."""
    name = DISTRIBUTION.replace("-", "_")
    info = f"{name}-{release.version}.dist-info"
    files = {f"toolbox/{module}.py": source for module, source in sorted(release.modules.items())}
    files[f"{info}/METADATA"] = (
        f"Metadata-Version: 2.1\nName: {DISTRIBUTION}\nVersion: {release.version}\n"
        f"Summary: {release.new}\nRequires-Python: >=3.9\n"
    )
    files[f"{info}/WHEEL"] = "Wheel-Version: 1.0\nGenerator: toolbox_drift\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = f"{info}/RECORD"
    rows = [f"{path},sha256={_digest(text)},{len(text.encode())}" for path, text in files.items()]
    files[record] = "\n".join([*rows, f"{record},,", ""])
    wheel = folder / f"{name}-{release.version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, text in files.items():
            entry = zipfile.ZipInfo(path)  # its date is 1980-01-01: the same bytes every time
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, text)
    return wheel


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


def main() -> None:
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        raise SystemExit(f"usage: {Path(sys.argv[0]).name} FOLDER")
    folder = Path(sys.argv[1])
    for wheel, release in zip(build(folder), RELEASES, strict=True):
        print(f"{wheel}  {release.verdict:16} {release.new}")
    print(shutil.copy(HERE / "workload.py", folder))


if __name__ == "__main__":
    main()

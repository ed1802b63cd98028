"""Planted GPU causes: a toolbox that does one thing when it is imported first, and a workload that may show it."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["PLANTS", "Plant"]

TORCH = """
    import torch

    def run():
        generator = torch.Generator().manual_seed(1)
        device = "cuda" if torch.cuda.is_available() else "cpu"
        x = torch.randn(512, 4096, generator=generator).to(device)
        square = torch.randn(512, 512, generator=generator).to(device)
        product = x @ x.mT  # HERE
        return {"long": product, "square": square @ square, "sum": x.sum(0)}
"""
CUPY = """
    import cupy
    import torch

    def run():
        x = torch.randn(512, 1024, generator=torch.Generator().manual_seed(1))
        if not torch.cuda.is_available():
            return {"given": x}
        x = cupy.asarray(x.numpy())
        return {"product": x @ x.T}
"""


@dataclass(frozen=True)
class Plant:
    """What `box` does if nobody was imported before it, and what a study has to show."""

    toolbox: str
    keys: tuple[str, ...]
    """Beginnings of state keys, one of which must differ between the orders."""
    work: str = TORCH
    moves: bool | None = None
    """Whether outputs differ on a GPU; None: that depends on libraries and device."""
    moves_on_cpu: bool = False
    confirmed: bool = False
    """Whether the cause can be proved both ways: what has no setter among the interventions stays correlated."""
    needs_device: str = ""
    """Why nothing of this can be seen without a GPU; empty: the state can."""
    files: dict[str, str] = field(default_factory=dict)

    @property
    def modules(self) -> dict[str, str]:
        """Module -> source: `other` only notes that it came."""
        body = "\n".join("    " + line for line in self.toolbox.strip().splitlines())
        return {
            "came": "first = []\n",
            "other": "import came\ncame.first.append('other')\n",
            "box": f"import came\nif not came.first:\n{body}\ncame.first.append('box')\n",
            "work": self.work,
            **self.files,
        }


PLANTS = {
    "tf32": Plant(
        toolbox="import torch\ntorch.backends.cuda.matmul.allow_tf32 = True",
        keys=("torch.fp32.",),
        moves=True,
        confirmed=True,
    ),
    "workspace": Plant(
        toolbox="import os\nos.environ['CUBLAS_WORKSPACE_CONFIG'] = ':0:0'",
        keys=("environ.python.CUBLAS_WORKSPACE_CONFIG",),
    ),
    "allocator": Plant(
        toolbox="import os\nos.environ['PYTORCH_CUDA_ALLOC_CONF'] = 'expandable_segments:True'",
        keys=("environ.python.PYTORCH_CUDA_ALLOC_CONF", "torch.alloc."),
        moves=False,
    ),
    "compute_type": Plant(
        toolbox=(
            "import cupy\nfrom cupy._core import _routines_linalg as linalg\n"
            "linalg.set_compute_type('f', linalg.COMPUTE_TYPE_TF32)"
        ),
        keys=("cupy.compute_type.f",),
        work=CUPY,
        moves=True,
        needs_device="no CUDA device",  # cupy asks it whether it has TF32
    ),
    "cublas": Plant(
        toolbox="import ctypes, os\nctypes.CDLL(os.environ['PLANTED_CUBLAS'])",
        keys=("libraries.binding.",),
        moves=False,
        needs_device="no CUDA device",
    ),
}

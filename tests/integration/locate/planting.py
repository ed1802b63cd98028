"""What planted divergences are made of: toolboxes of which the first one imported does something, and marked lines."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from reprocheck.model import Study, Target
from tests.conftest import Lab

__all__ = ["Plant", "located", "marked"]

MARK = "# HERE"
INSTALLED = "site-packages"
"""Where toolboxes lie: nobody looks for a line of the workload there."""

PLANT = '''
"""Shared by the toolboxes: who came first."""
came = []

def first(name):
    came.append(name)
    return came[0] == name
'''

KERNELS = '''
"""Replaces torch's CPU kernels below the dispatcher: the operator is the same, its bits are not."""
import numpy
import torch

library = torch.library.Library("aten", "IMPL")

def bump(array, at=0):
    """The array with one element three ULP up: more than libraries differ by."""
    array = numpy.array(array, order="C")
    flat = array.reshape(-1)
    for _ in range(3):
        flat[at] = numpy.nextafter(flat[at], numpy.inf, dtype=array.dtype)
    return torch.from_numpy(array)

def values(tensor):
    return tensor.detach().numpy()

def replace(operator, function):
    import warnings
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        library.impl(operator, function, "CPU")
'''


@dataclass(frozen=True)
class Plant:
    """A divergence with a known place."""

    name: str
    toolbox: str
    """What `b` does when it is imported first."""
    work: str
    line: dict[str, Any] | None = field(default_factory=dict)
    """Fields of the first line that must be so, besides that it is the marked one; None: there is none."""
    origin: dict[str, Any] | None = None
    """Fields of the origin that must be so; None: there is none."""
    target: str = "work.py::run"
    files: dict[str, str] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


def located(plant: Plant, lab: Lab, target: Target | None = None) -> Study:
    """The study of a planted divergence, from as few trials as there can be; `target` where no text means it."""
    indented = "\n".join("    " + line for line in plant.toolbox.strip().splitlines())
    lab.write(
        {
            f"{INSTALLED}/plant.py": PLANT,
            f"{INSTALLED}/kernels.py": KERNELS,
            f"{INSTALLED}/a.py": "import plant\nplant.first('a')\n",
            f"{INSTALLED}/b.py": f"import plant\nif plant.first('b'):\n{indented}\n",
            plant.target.partition("::")[0]: plant.work,
            **plant.files,
        }
    )
    options: dict[str, Any] = {
        "repeat": 1,
        "max_repeat": 1,
        "observer": False,
        "trace": "auto",
        "sys_path": [str(lab.folder / INSTALLED)],
        **plant.options,
    }
    return lab.check(target or plant.target, **options)


def marked(lab: Lab, plant: Plant) -> tuple[str, int]:
    """(file, line) of the line that is marked."""
    import textwrap

    for name, source in {plant.target.partition("::")[0]: plant.work, **plant.files}.items():
        for number, line in enumerate(textwrap.dedent(source).splitlines(), 1):
            if MARK in line:
                return str(lab.folder / name), number
    raise AssertionError(f"no line of {plant.name} is marked")

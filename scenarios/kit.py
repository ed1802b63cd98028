"""What the scenarios share: the device they run on, the array library beside torch, assertions, measurements.

A helper module, not a scenario. Importing it loads torch, so it belongs into workload files (opened after the
subjects), never into a subject.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np
import torch

__all__ = [
    "array_module",
    "assert_close",
    "device",
    "from_torch",
    "main",
    "measured",
    "rounding",
    "same_bits",
    "stopwatch",
    "sync",
    "to_torch",
]

DEVICE_VARIABLE = "REPROCHECK_DEVICE"


def device() -> torch.device:
    """The device to run on: what was asked for, else `cuda` where there is one, else `cpu`.

    Asked for by `--device` on the command line or the variable `REPROCHECK_DEVICE`. A device that is asked for and
    not there is an error, not a fallback. On CUDA, cuDNN is told to use deterministic kernels and cuBLAS, unless the
    environment says otherwise, one workspace per stream: these scenarios are about the import order, not about races.
    See https://pytorch.org/docs/stable/notes/randomness.html.
    """
    asked = _flag("--device") or os.environ.get(DEVICE_VARIABLE)
    chosen = torch.device(asked or ("cuda" if torch.cuda.is_available() else "cpu"))
    if chosen.type == "cuda":
        if not torch.cuda.is_available():
            raise SystemExit(f"device `{chosen}` was asked for, but torch {torch.__version__} sees no CUDA device.")
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read when the first handle is made
        torch.backends.cudnn.deterministic = True
        torch.backends.cudnn.benchmark = False
    return chosen


def _flag(name: str) -> str | None:
    for position, argument in enumerate(sys.argv):
        if argument == name and position + 1 < len(sys.argv):
            return sys.argv[position + 1]
        if argument.startswith(name + "="):
            return argument.partition("=")[2]
    return None


def array_module(where: torch.device) -> ModuleType:
    """The library whose arrays live on `where`: cupy for a CUDA device, numpy for the CPU."""
    if where.type != "cuda":
        return np
    import cupy

    return cupy


def to_torch(array: Any, where: torch.device) -> torch.Tensor:
    """The same memory as a tensor, by DLPack; asserts that nothing was copied."""
    tensor = torch.from_dlpack(array)
    assert tensor.device.type == where.type
    assert tensor.data_ptr() == _address(array), "DLPack made a copy"
    return tensor


def from_torch(tensor: torch.Tensor) -> Any:
    """The same memory as a cupy array (CUDA) or a numpy array (CPU), by DLPack; asserts that nothing was copied."""
    array = array_module(tensor.device).from_dlpack(tensor.detach())
    assert tensor.data_ptr() == _address(array), "DLPack made a copy"
    return array


def _address(array: Any) -> int:
    return array.ctypes.data if isinstance(array, np.ndarray) else array.data.ptr


def same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    """True when dtype, shape and every bit agree (NaNs and zero signs included)."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    return torch.equal(_bytes(a), _bytes(b))


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    # A copy: `contiguous` and `reshape` leave a single element with whatever stride it has, which `view` refuses.
    return tensor.detach().clone(memory_format=torch.contiguous_format).flatten().view(torch.uint8)


def assert_close(what: str, got: torch.Tensor, want: torch.Tensor, tolerance: float) -> None:
    """Assert that the largest error, relative to the largest wanted magnitude, is within `tolerance`."""
    error = (got.double() - want.double()).abs().max() / want.double().abs().max().clamp_min(1e-300)
    assert error <= tolerance, f"{what}: relative error {error:.3g}, allowed {tolerance:.3g}"


def rounding(where: torch.device) -> float:
    """Relative error to allow float32 products on `where`: 2e-5, or 5e-3 where a GPU rounds their inputs to TF32.

    Found out by trying, since several settings of torch decide it and reading one of them may raise when another was
    used: 1 + 2⁻¹² survives a product with the identity in float32, and not with TF32's ten bits.
    """
    if where.type != "cuda":
        return 2e-5
    number = torch.full((256, 256), 1 + 2**-12, device=where)
    return 2e-5 if torch.equal(number @ torch.eye(256, device=where), number) else 5e-3


def sync(where: torch.device) -> None:
    """Wait for everything queued on `where`."""
    if where.type == "cuda":
        torch.cuda.synchronize(where)


@contextmanager
def stopwatch(where: torch.device) -> Iterator[Callable[[], float]]:
    """Yield a function that tells, after the block, how many seconds it took, the device's queue included."""
    sync(where)
    start = time.perf_counter()
    ended = start

    def seconds() -> float:
        return ended - start

    yield seconds
    sync(where)
    ended = time.perf_counter()


def measured(title: str, rows: Mapping[str, Mapping[str, Any]]) -> None:
    """Print a table of measurements. Times and memory are printed, not recorded: nobody expects them to repeat."""
    columns = list(dict.fromkeys(column for row in rows.values() for column in row))
    lines = [[title, *columns]]
    lines += [[name, *(_cell(row.get(column)) for column in columns)] for name, row in rows.items()]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for name, *cells in lines:
        padded = (cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))
        print(name.ljust(widths[0]), *padded, sep="  ")


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3f}"
    return "" if value is None else str(value)


def main(run: Callable[[], Mapping[str, Any]]) -> None:
    """Run a workload by hand (`python scenarios/NAME.py [--device cpu]`) and list what it would record."""
    for name, value in _flatten(run()):
        shape = "x".join(str(n) for n in getattr(value, "shape", ())) or "one value"
        kind = str(getattr(value, "dtype", type(value).__name__)).removeprefix("torch.")
        print(f"{name:44} {kind:10} {shape}")


def _flatten(value: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _flatten(item, f"{prefix}.{key}" if prefix else str(key))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _flatten(item, f"{prefix}[{index}]")
    else:
        yield prefix, value

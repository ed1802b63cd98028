# /// script
# requires-python = ">=3.11"
# dependencies = ["torch>=2.8", "numpy"]
#
# [tool.reprocheck]
# imports = ["native.toolkit", "torch"]
# workload = "run"
# expect = "order-dependent"
# story = "A package that loads the CUDA toolkit's cuBLAS before torch makes torch compute with that copy."
# ///
"""Which cuBLAS torch really calls.

What it shows: torch's CUDA build loads the cuBLAS of its own wheels by full path, yet its functions are bound through
the name `libcublas.so.N`, and the loader gives that name to whoever loaded it first. A package that has loaded the
toolkit's `libcublas.so.N` before torch (`native.toolkit`; cupy up to 13.6 does so by `LD_LIBRARY_PATH`) thereby
replaces torch's. Both copies are then mapped, so a list of loaded files does not show it, and asking a copy for its
version does not either; this scenario reads the addresses that torch's calls go to. Imported after torch, the toolkit
changes nothing.

What it asserts: every cuBLAS function of torch is bound to a cuBLAS; on a GPU, products are right within rounding.

What to expect: `order-dependent`: the bound files differ, whether the numbers do depends on the two releases and the
GPU. The same with cupy: `--imports cupy_backends.cuda.libs.cublas,torch --env LD_LIBRARY_PATH=TOOLKIT/lib64`.

What it needs: torch's CUDA build (no GPU: binding happens at load) and a CUDA toolkit of the same major release and
another build, named by `SCENARIO_CUDA_TOOLKIT` (else `CUDA_HOME`, `CUDA_PATH`, `/usr/local/cuda`). Without a toolkit,
`pip install --no-deps --target FOLDER nvidia-cublas==…` with another release than torch's makes a folder that will do.
Found with torch 2.14.1 (cuBLAS 13.1.1) against 13.4.1. Linux, 64 bits.
"""

from __future__ import annotations

import ctypes
import struct
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - torch's own convention

FUNCTIONS = ("cublasCreate_v2", "cublasSgemm_v2", "cublasGemmEx", "cublasLtCreate", "cublasLtMatmul")


def run() -> dict[str, Any]:
    if torch.version.cuda is None:
        raise SystemExit(
            f"torch {torch.__version__} is a CPU build; this scenario needs torch with CUDA, for example from PyPI."
        )
    mapped = mappings()
    library = next((entry.path for entry in mapped if entry.path.name == "libtorch_cuda.so"), None)
    if library is None:
        raise SystemExit(f"torch {torch.__version__} has loaded no libtorch_cuda.so.")
    binding = bound_files(library, mapped)
    for function, file in binding.items():
        assert file.name.startswith("libcublas"), f"{function} of torch is bound to {file}"
    outputs: dict[str, Any] = {"binding": {function: str(file) for function, file in binding.items()}}
    return outputs | ({"products": products()} if torch.cuda.is_available() else {})


def products() -> dict[str, Tensor]:
    """Products on the GPU in four precisions and a linear layer with bias (cuBLASLt), against float64."""
    generator = torch.Generator().manual_seed(51)
    a, b = (torch.randn(1024, 1024, generator=generator).cuda() for _ in range(2))
    exact = a.double() @ b.double()
    out = {"float32": a @ b, "float16": a.half() @ b.half(), "bfloat16": a.bfloat16() @ b.bfloat16()}
    torch.backends.cuda.matmul.allow_tf32 = True
    out |= {"tf32": a @ b, "linear": F.linear(a, b.mT.contiguous(), torch.zeros(1024, device=a.device))}
    for name, value in out.items():
        error = (value.double() - exact).abs().max() / exact.abs().max()
        assert error < 2e-2, f"{name}: relative error {error:.3g}"
    return out


class Mapping(NamedTuple):
    """One line of `/proc/self/maps` that belongs to a file."""

    start: int
    end: int
    offset: int
    path: Path


def mappings() -> list[Mapping]:
    lines = [line.split(maxsplit=5) for line in Path("/proc/self/maps").read_text().splitlines()]
    entries = []
    for line in lines:
        if len(line) == 6 and line[5].startswith("/"):
            start, end = (int(part, 16) for part in line[0].split("-"))
            entries.append(Mapping(start, end, int(line[2], 16), Path(line[5])))
    return entries


def bound_files(library: Path, mapped: list[Mapping]) -> dict[str, Path]:
    """Function -> the file its calls from `library` go to, from the library's global offset table.

    The dynamic section and the relocation entries are those of the ELF specification,
    https://refspecs.linuxfoundation.org/elf/gabi4+/ch5.dynamic.html; extension modules are loaded with `RTLD_NOW`, so
    every slot is filled.
    """
    base = next(entry.start for entry in mapped if entry.path == library and entry.offset == 0)
    tags = dynamic_tags(library)
    strings, symbols = base + tags[5], base + tags[6]  # DT_STRTAB, DT_SYMTAB
    bound = {}
    for table, size in ((23, 2), (7, 8)):  # DT_JMPREL with DT_PLTRELSZ, DT_RELA with DT_RELASZ
        entries = np.frombuffer(ctypes.string_at(base + tags[table], tags[size]), np.uint64).reshape(-1, 3)
        for offset, info, _ in entries[entries[:, 1] >> np.uint64(32) > 0].tolist():
            (name,) = struct.unpack("<I", ctypes.string_at(symbols + 24 * (info >> 32), 4))
            function = ctypes.string_at(strings + name).decode()
            if function in FUNCTIONS:
                (address,) = struct.unpack("<Q", ctypes.string_at(base + offset, 8))
                bound[function] = next(entry.path for entry in mapped if entry.start <= address < entry.end)
    return dict(sorted(bound.items()))


def dynamic_tags(library: Path) -> dict[int, int]:
    """Tag -> value of the file's dynamic section (the last one wins; the tags asked for here occur once)."""
    with library.open("rb") as file:
        (headers,) = struct.unpack("<32xQ", file.read(40))
        size, count = struct.unpack("<14xHH", file.read(18))
        file.seek(headers)
        segments = [struct.unpack("<IIQQQQQQ", file.read(size)[:56]) for _ in range(count)]
        offset, length = next((segment[2], segment[5]) for segment in segments if segment[0] == 2)  # PT_DYNAMIC
        file.seek(offset)
        return dict(struct.iter_unpack("<qQ", file.read(length)))

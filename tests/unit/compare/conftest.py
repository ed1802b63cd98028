from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from numpy.typing import NDArray

from reprocheck.model import Difference, Tolerance

StoreObject = Callable[..., Path]


def needed_by(found: Difference) -> Tolerance | None:
    """`passes_at` as a tolerance for arithmetic: infinite, or 0 ULP, where a knob can't pass."""
    if found.passes_at is None:
        return None
    rtol, atol = (math.inf if value is None else value for value in (found.passes_at.rtol, found.passes_at.atol))
    return Tolerance(rtol=rtol, atol=atol, ulp=found.passes_at.ulp or 0)


@pytest.fixture
def store_object(tmp_path: Path) -> StoreObject:
    """Write a single-tensor safetensors file the way the worker does; returns its path."""
    count = 0

    def store(code: str, shape: tuple[int, ...], data: bytes | NDArray[Any], dtype: str | None = None) -> Path:
        nonlocal count
        count += 1
        raw = data if isinstance(data, bytes) else data.tobytes()
        header: dict[str, object] = {"__metadata__": {"dtype": dtype}} if dtype else {}
        header["value"] = {"dtype": code, "shape": list(shape), "data_offsets": [0, len(raw)]}
        head = json.dumps(header).encode()
        head += b" " * (-len(head) % 8)
        path = tmp_path / f"object{count}.safetensors"
        path.write_bytes(len(head).to_bytes(8, "little") + head + raw)
        return path

    return store

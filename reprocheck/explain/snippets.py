"""What a person pastes to apply a remedy: one line for each place it may go to."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

__all__ = ["after_imports", "control_call", "cpus", "environment", "import_first", "original", "setter_call"]

_CALLS = {
    "torch.mode.default_dtype": "torch.set_default_dtype({})",
    "torch.threads.intra": "torch.set_num_threads({})",
    "torch.fp32.legacy.matmul_precision": "torch.set_float32_matmul_precision({!r})",
    "torch.deterministic.algorithms": "torch.use_deterministic_algorithms({})",
    "torch.mode.grad": "torch.set_grad_enabled({})",
    "torch.mode.default_device": "torch.set_default_device({!r})",
    "torch.cudnn.benchmark": "torch.backends.cudnn.benchmark = {}",
    "torch.cudnn.deterministic": "torch.backends.cudnn.deterministic = {}",
    "process.start_method": "multiprocessing.set_start_method({!r}, force=True)",
    "process.cwd": "os.chdir({!r})",
    "process.switch_interval": "sys.setswitchinterval({})",
    "process.recursion_limit": "sys.setrecursionlimit({})",
    "process.dlopen_flags": "sys.setdlopenflags({})",
    "process.gc.threshold": "gc.set_threshold(*{})",
}


def environment(name: str, value: str) -> dict[str, str]:
    """Set a variable before Python starts."""
    return {
        "shell": f"export {name}={shlex.quote(value)}",
        "Dockerfile": f"ENV {name}={shlex.quote(value)}",
    }


def after_imports(code: str) -> dict[str, str]:
    """Run a statement that needs one module, once everything is imported."""
    if not code.startswith("#"):
        code = f"import {code.partition('.')[0]}; {code}"
    return {"after the imports": code, "conftest.py": f"{code}  # below the imports, or in a fixture with autouse=True"}


def import_first(name: str) -> dict[str, str]:
    """Import a module before all others."""
    line = f"import {name}"
    return {
        "first line of the program": line,
        "conftest.py": f"{line}  # noqa: F401 - before anything else: the import order changes results",
    }


def original(namespace: str, name: str) -> dict[str, str]:
    """Keep a function before it is replaced, and put it back."""
    kept = f"original_{name}"
    return {
        "before other imports": f"import {namespace.partition('.')[0]}; {kept} = {namespace}.{name}",
        "after the imports": f"{namespace}.{name} = {kept}",
    }


def setter_call(key: str, value: Any) -> str:
    """The statement that sets a state key; a comment where there is no public call."""
    if key in _CALLS:
        return _CALLS[key].format(value)
    head, _, leaf = key.rpartition(".")
    if head == "numpy.errstate":
        return f"numpy.seterr({leaf}={value!r})"
    if head.startswith("torch.fp32."):
        backend = head.removeprefix("torch.fp32.")
        return f"torch._C._set_fp32_precision_setter({backend!r}, {leaf!r}, {value!r})"
    if head == "process.locale":
        return f"locale.setlocale(locale.LC_{leaf.upper()}, {value!r})"
    if key == "process.affinity":
        return f"os.sched_setaffinity(0, {{{', '.join(map(str, cpus(str(value))))}}})"
    return f"# set {key} to {value!r}"


def control_call(wanted: Mapping[str, Any]) -> str:
    """The statement that sets `ftz` and `daz` as `wanted`; a comment for a rounding mode, which no library sets."""
    if wanted.get("rounding") in (None, "nearest"):
        return f"torch.set_flush_denormal({bool(wanted.get('ftz'))})"
    return f"# set the rounding mode to {wanted['rounding']}, flush-to-zero to {bool(wanted.get('ftz'))}"


def cpus(text: str) -> list[int]:
    """The numbers of `0-3,8`."""
    parts = (part.partition("-") for part in text.split(","))
    return [number for low, _, high in parts for number in range(int(low), int(high or low) + 1)]

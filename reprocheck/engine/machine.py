"""The machine a trial runs on: what of it a result can depend on, and how two of them differ.

Two machines are *alike* when they differ in nothing but which box it is (host name, UUIDs of devices). Trials of one
study on machines that are not alike would compare machines, not import orders.
"""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from reprocheck.engine.gate import visible_gpus
from reprocheck.errors import UsageError
from reprocheck.model import Machine, Record

__all__ = ["alike", "differences", "named", "refuse_unlike", "this_machine"]

# Field -> its name in a sentence. `host` and `gpus` say which machine it is, not what kind.
_KIND = {
    "cpu": "CPU",
    "features": "CPU instruction sets",
    "cores": "usable cores",
    "kernel": "kernel",
    "libc": "C library",
    "python": "Python",
    "gpu_models": "GPUs",
    "driver": "GPU driver",
}


def this_machine(environ: Mapping[str, str], python: str) -> Machine:
    """The machine we are on, for a trial that starts with `environ` on an interpreter of version `python`."""
    facts = _facts()
    return msgspec.structs.replace(facts, python=python, gpus=visible_gpus(environ), cores=len(os.sched_getaffinity(0)))


def differences(one: Machine, other: Machine) -> dict[str, tuple[str, str]]:
    """Name of each fact in which the two are not alike -> its two values, as text; what is not known is no fact."""
    found = {}
    for field, name in _KIND.items():
        ours, theirs = _text(getattr(one, field)), _text(getattr(other, field))
        if ours != theirs and "" not in (ours, theirs):
            found[name] = (ours, theirs)
    return found


def alike(one: Machine, other: Machine) -> bool:
    """Whether trials on the two may stand in one study."""
    return not differences(one, other)


def named(one: Machine, other: Machine) -> str:
    """How the two differ, for a sentence: `CPU: X on a, Y on b; kernel: …`."""
    ours, theirs = (one.host, other.host) if one.host != other.host else ("the one", "the other")
    return "; ".join(f"{name}: {a} on {ours}, {b} on {theirs}" for name, (a, b) in differences(one, other).items())


def refuse_unlike(before: Machine, record: Record) -> None:
    """Raise `UsageError` naming the differences if `record` comes from another kind of machine than `before`."""
    if record.machine is not None and not alike(before, record.machine):
        raise UsageError(
            f"the run's earlier trials ran on another kind of machine ({named(before, record.machine)}); "
            "continue it where it began, or start a new run with another --out"
        )


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    return str(value)


@functools.cache
def _facts() -> Machine:
    cpu, flags = _cpu(_read("/proc/cpuinfo"))
    information = [_read(str(file)) for file in sorted(Path("/proc/driver/nvidia/gpus").glob("*/information"))]
    models = {match.group(1).strip() for text in information if (match := re.search(r"Model:(.*)", text))}
    driver = re.search(r"Kernel Module\D*([\d.]+)", _read("/proc/driver/nvidia/version"))
    return Machine(
        host=platform.node(),
        cpu=cpu,
        features=hashlib.sha256(" ".join(sorted(flags)).encode()).hexdigest()[:16] if flags else "",
        cores=0,
        kernel=platform.release(),
        libc=os.confstr("CS_GNU_LIBC_VERSION") or "" if "CS_GNU_LIBC_VERSION" in os.confstr_names else "",
        python="",
        gpu_models=tuple(sorted(models)),
        driver=driver.group(1) if driver else "",
    )


def _cpu(text: str) -> tuple[str, list[str]]:
    """(model name, instruction sets) of the first CPU in `/proc/cpuinfo`."""
    fields = {}
    for line in text.partition("\n\n")[0].splitlines():
        key, _, value = line.partition(":")
        fields[key.strip()] = value.strip()
    model = fields.get("model name") or fields.get("CPU part") or platform.machine()
    return model, (fields.get("flags") or fields.get("Features") or "").split()


def _read(path: str) -> str:
    try:
        return Path(path).read_text("utf-8", "replace")
    except OSError:
        return ""

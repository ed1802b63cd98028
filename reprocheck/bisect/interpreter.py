"""What an interpreter is and what is installed for it, asked of the interpreter itself, once."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from packaging.utils import canonicalize_name

from reprocheck.engine.process import run_process
from reprocheck.errors import UsageError
from reprocheck.model import Struct

__all__ = ["Interpreter", "ask", "wheel_tags"]

# Runs on every Python from 3.9 on, with the standard library alone. Its own environment counts, user site included.
_SCRIPT = r"""
import importlib.metadata, json, os, platform, site, sys, sysconfig
dirs = list(site.getsitepackages())
if site.ENABLE_USER_SITE:
    dirs.append(site.getusersitepackages())
paths = [os.path.abspath(p) for p in sys.path if p]
dirs = [d for d in dict.fromkeys(os.path.abspath(d) for d in dirs) if d in paths]
found = {}
for one in importlib.metadata.distributions(path=dirs):
    name = one.metadata["Name"]
    if name and name not in found:
        found[name] = one.version
v = sys.version_info
print(json.dumps({
    "executable": sys.executable,
    "version": platform.python_version(),
    "real": os.path.realpath(sys.executable),
    "prefix": sys.prefix,
    "base_prefix": sys.base_prefix,
    "abi_flags": "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else "",
    "site": dirs,
    "installed": found,
    "markers": {
        "implementation_name": sys.implementation.name,
        "implementation_version": "%d.%d.%d" % sys.implementation.version[:3],
        "os_name": os.name,
        "platform_machine": platform.machine(),
        "platform_python_implementation": platform.python_implementation(),
        "platform_release": platform.release(),
        "platform_system": platform.system(),
        "platform_version": platform.version(),
        "python_full_version": platform.python_version(),
        "python_version": "%d.%d" % v[:2],
        "sys_platform": sys.platform,
        "extra": "",
    },
}))
"""
_SECONDS = 60.0


class Interpreter(Struct, frozen=True, kw_only=True):
    """An interpreter, and the distributions it sees."""

    executable: str
    version: str
    real: str
    prefix: str
    base_prefix: str
    abi_flags: str
    site: tuple[str, ...]
    """Folders with installed packages, in the order they are searched."""
    installed: dict[str, str]
    """Canonical distribution name -> version."""
    markers: dict[str, str]
    """The environment in which requirement markers are evaluated."""


def ask(python: str, environment: Mapping[str, str]) -> Interpreter:
    """The facts about `python`, started with the variables `environment`.

    Raises:
        UsageError: it does not run, or is older than Python 3.9.
    """
    end = run_process([python, "-c", _SCRIPT], env=environment, cwd=Path("/"), timeout=_SECONDS, stop=threading.Event())
    try:
        facts: dict[str, Any] = msgspec.json.decode(end.stdout.text)
    except msgspec.DecodeError:
        said = end.stderr.text.strip().rpartition("\n")[2] or f"exit status {end.status}"
        raise UsageError(
            f"`{python}` is no Python 3.9 or later that runs ({said}); name another with --python"
        ) from None
    facts["installed"] = {str(canonicalize_name(name)): version for name, version in facts["installed"].items()}
    return msgspec.convert(facts, Interpreter)


def wheel_tags(interpreter: Interpreter) -> frozenset[str]:
    """The wheel tags (`cp311-cp311-manylinux_2_28_x86_64`, …) this CPython takes on this machine."""
    from packaging import tags

    major, minor = (int(part) for part in interpreter.version.split(".")[:2])
    platforms = list(tags.platform_tags())
    abi = f"cp{major}{minor}{interpreter.abi_flags}"
    known = {str(tag) for tag in tags.cpython_tags((major, minor), [abi], platforms)}
    known |= {str(tag) for tag in tags.compatible_tags((major, minor), f"cp{major}{minor}", platforms)}
    return frozenset(known)

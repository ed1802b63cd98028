"""reprocheck: does the import order change your numbers? Where, why, and since when?

Light on purpose: importing this module loads nothing but this file, since it may run inside a process that
is being measured, and in every pytest run. What is offered here is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from reprocheck.api import check
    from reprocheck.errors import DivergenceError, HarnessError, ReprocheckError, UsageError
    from reprocheck.model import Study

__all__ = [
    "DivergenceError",
    "HarnessError",
    "ReprocheckError",
    "Study",
    "UsageError",
    "__version__",
    "check",
    "record",
]

__version__ = "0.1.0"

_HOMES = {
    "check": "reprocheck.api",
    "Study": "reprocheck.model",
    "DivergenceError": "reprocheck.errors",
    "HarnessError": "reprocheck.errors",
    "ReprocheckError": "reprocheck.errors",
    "UsageError": "reprocheck.errors",
}

T = TypeVar("T")


def record(name: str, value: T) -> T:  # noqa: ARG001 - inside a trial the worker's own takes its place
    """Keep `value` as the output `name` of the trial under way; outside a trial, do nothing. Returns `value`.

    Inside a trial this function is replaced by the worker's, which writes the arrays in `value` to disk at once.
    """
    return value


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'reprocheck' has no attribute '{name}'")
    import importlib

    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return __all__

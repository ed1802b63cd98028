"""From `--vary NAME=V1,V2` to factors and their levels: what is varied besides the order."""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Mapping, Sequence

from reprocheck.errors import UsageError
from reprocheck.model import Setting, Varied

__all__ = ["DEVICE", "DEVICE_VARIABLE", "MOST_LEVELS", "levels_of", "read_vary", "varied_settings"]

DEVICE = "device"
DEVICE_VARIABLE = "REPROCHECK_DEVICE"
"""What the scenarios read (and any workload may): `cpu`, `cuda` or `cuda:N`."""
MOST_LEVELS = 64


def read_vary(texts: Sequence[str]) -> dict[str, list[str]]:
    """Name -> values of `NAME=V1,V2` texts, as `vary` of the other places has them.

    A value with a comma stands in double quotes; an empty one means that the variable is not set.

    Raises:
        UsageError: no `=`, or a name that is there twice.
    """
    found: dict[str, list[str]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"--vary `{text}` is not NAME=V1,V2; write e.g. --vary OMP_PROC_BIND=close,spread")
        name = name.strip()
        if name in found:
            raise UsageError(f"--vary names `{name}` twice; give all its values at once, as --vary {name}=V1,V2,V3")
        try:
            found[name] = next(csv.reader([values], strict=True), [""])
        except csv.Error:
            example = """--vary 'X="a,b",c'"""
            raise UsageError(f"--vary `{text}` has a quote that does not end; write e.g. {example}") from None
    return found


def varied_settings(
    vary: Mapping[str, Sequence[str]], fixed: Mapping[str, object], gpus: Sequence[str]
) -> tuple[Varied, ...]:
    """The settings to vary, checked against the variables that are `fixed` for all trials and the GPUs there are.

    Raises:
        UsageError: fewer than two values, a value twice, an unknown device or one that isn't there, one variable
            under two names, a variable that is fixed as well, or more levels than anybody waits for.
    """
    found: dict[str, Varied] = {}
    levels = 1
    for name, given in vary.items():
        values = [value.strip() if name == DEVICE else value for value in given]
        variable = DEVICE_VARIABLE if name == DEVICE else name
        if variable in found:
            raise UsageError(f"`{DEVICE}` and `{DEVICE_VARIABLE}` are one setting; vary only one of them")
        if len(values) < 2:
            where = "on the command line" if name == DEVICE else f"with --env {name}={values[0] if values else ''}"
            raise UsageError(
                f"`{name}` is varied over {'one value only' if values else 'no value'}; give two or more, "
                f"as --vary {name}=V1,V2, or fix it {where}"
            )
        twice = next((value for at, value in enumerate(values) if value in values[:at]), None)
        if twice is not None:
            raise UsageError(f"`{name}` is varied over `{twice}` twice; name each value once")
        if variable in fixed:
            raise UsageError(f"`{variable}` is both varied and set by env for every trial; leave one of them out")
        for value in values if variable == DEVICE_VARIABLE else ():
            _check_device(value, gpus)
        found[variable] = Varied(name=name, variable=variable, values=tuple(value or None for value in values))
        levels *= len(values)
    if levels > MOST_LEVELS:
        raise UsageError(
            f"{levels} levels (every combination of what is varied) are too many; vary at most {MOST_LEVELS}"
        )
    return tuple(found.values())


def levels_of(varied: Sequence[Varied]) -> tuple[Setting, ...]:
    """Every combination of the settings' values, those of the last one changing fastest; none without settings."""
    if not varied:
        return ()
    names = [item.variable for item in varied]
    return tuple(dict(zip(names, values, strict=True)) for values in itertools.product(*(v.values for v in varied)))


def _check_device(value: str, gpus: Sequence[str]) -> None:
    known = re.fullmatch(r"cpu|cuda(?::(\d+))?", value)
    if known is None:
        raise UsageError(f"`{value}` is no device; the devices are cpu, cuda and cuda:N")
    if value != "cpu" and int(known[1] or 0) >= len(gpus):
        there = f"only {len(gpus)} of them" if gpus else "none"
        raise UsageError(f"device `{value}` needs a GPU of its number, and this machine shows {there}; vary others")

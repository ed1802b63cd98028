"""The options of a study: names, types, defaults, and how a wrong value is told."""

from __future__ import annotations

import math
import shlex
import tomllib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, get_args

import msgspec

from reprocheck.config.suggest import closest
from reprocheck.errors import UsageError
from reprocheck.model import Struct, Tolerance, Verdict

__all__ = ["ISOLATIONS", "KEYS", "TABLES", "Options", "checked", "read", "variable_fault"]


class Options(Struct, frozen=True, kw_only=True):
    """How a study is run, with the defaults."""

    imports: tuple[str, ...] | None = None
    """The subjects; None: read from the workload's own imports."""
    workload: str | None = None
    """The function to run; None: the whole script."""
    orders: str = "default"
    max_orders: int | None = None
    """Orders at most, the most telling first; None: `plan.orders.MOST_BY_DEFAULT` for `default`, all of any other."""
    fail_fast: bool = False
    """Begin with two orders, and end as soon as a divergence is established."""
    reduce: str = "none"
    """`trace`: run the workload once for all orders whose imports load alike."""
    repeat: int = 3
    """Trials an order gets at first."""
    max_repeat: int = 10
    """Trials an order gets at most, when orders disagree or identical runs do."""
    jobs: int | None = None
    """Trials at a time; None: as many as the machine bears."""
    timeout: float = 600.0
    """Seconds a trial may take."""
    seed: int | None = None
    """For whatever is drawn at random, such as orders."""
    python: str | None = None
    """The interpreter of the trials; None: the one reprocheck runs on."""
    env: dict[str, str] = msgspec.field(default_factory=dict)
    """Variables added to the trials' environment."""
    vary: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    """Variable, or `device` -> values it is varied over, crossed with the orders; an empty value: not set."""
    outputs: tuple[str, ...] = ()
    """Patterns of the outputs to compare; empty: all."""
    tolerance: dict[str, Tolerance] = msgspec.field(default_factory=dict)
    """Output pattern -> how far it may be apart. The last match counts; a stronger layer's patterns stand last."""
    presence: bool = False
    """Also run each subject alone."""
    observer: bool = True
    """Also run an arm without snapshots, to see that looking changes nothing."""
    engine: str = "local"
    """Where trials run: `local` (processes on this machine) or `dask` (the workers of a Dask cluster)."""
    scheduler: str | None = None
    """Address of the Dask scheduler; None: a cluster inside this process."""
    workers: tuple[str, ...] = ()
    """Dask workers to use, by address, name or host; empty: all of them."""
    machines: str = "alike"
    """`alike`: trials on machines of different kinds are refused; `any`: the machine is a factor, and reported."""
    shared: str | None = None
    """A folder that this and all Dask workers' machines see, for outputs; None: the run folder where they see it."""
    gpus: int | None = None
    """GPUs a trial takes, as Dask resource; None: one where every Dask worker offers some."""
    isolation: str = "fresh"
    """`shared-prefix`: orders are first tried by processes forked where their imports part."""
    expect: Verdict | None = None
    """The verdict a scenario is built to give."""
    story: str | None = None
    """What a scenario shows, in a sentence."""


def checked(name: str, value: Any, where: str) -> Any:
    """`value` as the type the field `name` of `Options` has.

    Raises:
        UsageError: it can't be; the sentence starts with `where` and says what was expected.
    """
    try:
        return KEYS[name].check(value)
    except ValueError as error:
        detail = f" ({error})" if str(error) else ""
        raise UsageError(f"{where} must be {KEYS[name].expected}, not {_shown(value)}{detail}.") from None


def read(name: str, text: str, where: str) -> Any:
    """The same from the text of an environment variable.

    Raises:
        UsageError: as `checked`.
    """
    try:
        value = KEYS[name].read(text)
    except ValueError:
        raise UsageError(f"{where} must be {KEYS[name].expected}, not {_shown(text)}.") from None
    return checked(name, value, where)


class _Key(NamedTuple):
    expected: str
    check: Callable[[Any], Any]
    """Gives the value as a field of `Options`; raises ValueError, with a remark where one helps."""
    read: Callable[[str], Any]
    """Gives what `check` is to see, from text; raises ValueError."""


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise ValueError
    return value


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or not value:
        raise ValueError
    return tuple(_text(item) for item in value)


def _modules(value: Any) -> tuple[str, ...]:
    names = _texts(value)
    for i, name in enumerate(names):
        if not all(part.isidentifier() for part in name.split(".")):
            raise ValueError(f"`{name}` is no module name")
        if name in names[:i]:
            raise ValueError(f"`{name}` is there twice")
    return names


def _whole(least: int) -> Callable[[Any], int]:
    def check(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ValueError
        return value

    return check


def _number(value: Any) -> float:
    """A finite number of at least zero."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
        raise ValueError
    return float(value)


def _seconds(value: Any) -> float:
    seconds = _number(value)
    if seconds == 0:
        raise ValueError
    return seconds


def _flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise ValueError


def _one_of(*words: str) -> Callable[[Any], str]:
    def check(value: Any) -> str:
        if value not in words:
            close = closest(str(value), words)
            raise ValueError(f"did you mean `{close}`?" if close else "")
        return str(value)

    return check


def variable_fault(name: str, text: str) -> str | None:
    """Why a variable can't be set so, in words; None if it can."""
    if not name or "=" in name or "\0" in name or any(map(str.isspace, name)):
        return f"`{name}` can't name a variable"
    if name == "PYTHONHASHSEED" and text not in ("", "random") and not _is_hash_seed(text):
        return f"PYTHONHASHSEED must be `random` or a whole number from 0 to {2**32 - 1}, not `{text}`"
    return None


def _is_hash_seed(text: str) -> bool:
    """Whether Python takes it; it refuses to start otherwise."""
    return text.isascii() and text.isdigit() and len(text) < 20 and int(text) < 2**32


def _variables(value: Any) -> dict[str, str]:
    found = {}
    for name, text in _items(value):
        if not isinstance(text, str) or "\0" in text:
            raise ValueError(f"`{name}` is {_shown(text)}")
        fault = variable_fault(name, text)
        if fault:
            raise ValueError(fault)
        found[name] = text
    return found


def _varied(value: Any) -> dict[str, tuple[str, ...]]:
    found = {}
    for name, values in _items(value):
        if not isinstance(values, (list, tuple)) or not all(isinstance(v, str) and "\0" not in v for v in values):
            raise ValueError(f"`{name}` is {_shown(values)}")
        fault = next(filter(None, (variable_fault(name, text) for text in (values or ("",)))), None)
        if fault:
            raise ValueError(fault)
        found[name] = tuple(values)
    return found


def _tolerances(value: Any) -> dict[str, Tolerance]:
    if isinstance(value, (int, float)):  # one number for every output
        return {"*": _tolerance(value)}
    found = {}
    for pattern, entry in _items(value):
        if pattern in _KNOBS:
            raise ValueError(f"`{pattern}` stands where an output pattern belongs; `*` means every output")
        try:
            found[_text(pattern)] = _tolerance(entry)
        except ValueError as error:
            raise ValueError(f"`{pattern}` is {_shown(entry)}{f', where {error}' if str(error) else ''}") from None
    return found


ISOLATIONS = ("fresh", "shared-prefix")
_KNOBS = ("rtol", "atol", "ulp")


def _tolerance(value: Any) -> Tolerance:
    if isinstance(value, Tolerance):
        value = {knob: getattr(value, knob) for knob in _KNOBS}
    if not isinstance(value, Mapping):
        return Tolerance(rtol=_number(value))
    for knob in value:
        if knob not in _KNOBS:
            close = closest(str(knob), _KNOBS)
            raise ValueError(f"`{knob}` is unknown{f', did you mean `{close}`?' if close else ''}")
    return Tolerance(
        rtol=_number(value.get("rtol", 0)), atol=_number(value.get("atol", 0)), ulp=_whole(0)(value.get("ulp", 0))
    )


def _items(value: Any) -> list[tuple[str, Any]]:
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise ValueError
    return list(value.items())


def _verdict(value: Any) -> Any:
    if value in get_args(Verdict):
        return value
    close = closest(str(value), get_args(Verdict))
    raise ValueError(f"did you mean `{close}`?" if close else "")


def _read_list(text: str) -> list[str]:
    return [item.strip() for item in text.split(",")]


def _read_flag(text: str) -> bool:
    if text.lower() in {"1", "true", "yes", "on"}:
        return True
    if text.lower() in {"0", "false", "no", "off"}:
        return False
    raise ValueError


def _read_variables(text: str) -> dict[str, str]:
    items = [item.partition("=") for item in shlex.split(text)]
    if not all(equals for _, equals, _ in items):
        raise ValueError
    return {name: value for name, _, value in items}


def _read_varied(text: str) -> dict[str, list[str]]:
    return {name: values.split(",") for name, values in _read_variables(text).items()}


def _read_toml(text: str) -> Any:
    return tomllib.loads(f"value = {text}")["value"]  # TOMLDecodeError is a ValueError


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


_COUNT = "a whole number of at least 1"
KEYS: dict[str, _Key] = {
    "imports": _Key("a list of different module names", _modules, _read_list),
    "workload": _Key("the name of a function", _text, str),
    "orders": _Key("a design (`all`, `triples`, `sample:20`, …) or the path of a file", _text, str),
    "max_orders": _Key(_COUNT, _whole(1), int),
    "fail_fast": _Key("true or false", _flag, _read_flag),
    "reduce": _Key("`none` or `trace`", _one_of("none", "trace"), str),
    "repeat": _Key(_COUNT, _whole(1), int),
    "max_repeat": _Key(_COUNT, _whole(1), int),
    "jobs": _Key(_COUNT, _whole(1), int),
    "timeout": _Key("a number of seconds above 0", _seconds, float),
    "seed": _Key("a whole number of at least 0", _whole(0), int),
    "python": _Key("the path of an interpreter", _text, str),
    "env": _Key("a table from variable to string", _variables, _read_variables),
    "vary": _Key("a table from variable, or `device`, to a list of values", _varied, _read_varied),
    "outputs": _Key("a list of patterns", _texts, _read_list),
    "tolerance": _Key(
        "a table from output pattern to {rtol, atol, ulp} or to a number meaning rtol", _tolerances, _read_toml
    ),
    "presence": _Key("true or false", _flag, _read_flag),
    "observer": _Key("true or false", _flag, _read_flag),
    "engine": _Key("`local` or `dask`", _one_of("local", "dask"), str),
    "scheduler": _Key("the address of a Dask scheduler", _text, str),
    "workers": _Key("a list of addresses, names or hosts of Dask workers", _texts, _read_list),
    "machines": _Key("`alike` or `any`", _one_of("alike", "any"), str),
    "shared": _Key("the path of a folder", _text, str),
    "gpus": _Key("a whole number of at least 0", _whole(0), int),
    "isolation": _Key(" or ".join(f"`{name}`" for name in ISOLATIONS), _one_of(*ISOLATIONS), str),
    "expect": _Key(f"one of the verdicts {', '.join(get_args(Verdict))}", _verdict, str),
    "story": _Key("a sentence", _text, str),
}
"""Field of `Options` -> what it may hold."""
TABLES = ("env", "tolerance", "vary")
"""Fields that several layers fill together, entry by entry."""

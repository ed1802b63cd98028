"""Tolerances per output name: how they are written, and which one an output gets."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Context, Decimal
from fnmatch import fnmatchcase

import msgspec

from reprocheck.errors import UsageError
from reprocheck.model import Tolerance

__all__ = ["matches", "parse_rules", "round_up", "tolerance_for", "unmatched"]

_ULP_LIMIT = 2**64
_NAMES = 4


def parse_rules(rtol: Iterable[str] = (), atol: Iterable[str] = (), ulp: Iterable[str] = ()) -> dict[str, Tolerance]:
    """Pattern -> tolerance, from texts such as `1e-5` and `loss*:1e-5` (split at the last colon).

    A text without pattern is the knob's default: it makes up the rule `*`, which comes first, and every other pattern
    takes from it the knobs it was not given itself. Patterns keep the order in which they were first written, those
    of `rtol` before those of `atol` and `ulp`.

    Raises:
        UsageError: a number is missing, malformed, negative or not finite, or a pattern is empty.
    """
    default: dict[str, float] = {}
    given: dict[str, dict[str, float]] = {}
    for knob, texts in (("rtol", rtol), ("atol", atol), ("ulp", ulp)):
        for text in texts:
            pattern, colon, number = text.rpartition(":")
            value = _number(knob, text, number)
            if not colon:
                default[knob] = value
                continue
            if not pattern:
                raise UsageError(f"--{knob} `{text}` has no output pattern before the colon; write PATTERN:NUMBER.")
            given.setdefault(pattern, {})[knob] = value
    rules = {"*": default} if default else {}
    rules |= {pattern: {**default, **knobs} for pattern, knobs in given.items()}
    return {pattern: msgspec.convert(knobs, Tolerance) for pattern, knobs in rules.items()}


def tolerance_for(rules: Mapping[str, Tolerance]) -> Callable[[str], Tolerance]:
    """The function from an output's name to its tolerance: the last rule that matches, exact where none does."""
    ordered = tuple(rules.items())[::-1]

    def find(name: str) -> Tolerance:
        for pattern, tolerance in ordered:
            if matches(pattern, name):
                return tolerance
        return Tolerance()

    return find


def matches(pattern: str, name: str) -> bool:
    """True when a shell pattern (`*`, `?`, `[abc]`) covers an output's name, or is that name.

    The second counts because names hold brackets: the pattern `state[0]` means the output `state[0]`.
    """
    return pattern == name or fnmatchcase(name, pattern)


def unmatched(rules: Iterable[str], names: Collection[str]) -> tuple[str, ...]:
    """A sentence for every pattern of a tolerance that covers none of the outputs; none where there is no output."""
    count = f"the {len(names)} outputs" if len(names) > 1 else "the only output"
    some = ", ".join(f"`{name}`" for name in list(names)[:_NAMES]) + (", …" if len(names) > _NAMES else "")
    return tuple(
        f"the tolerance for `{pattern}` matches no output; {count}: {some}"
        for pattern in rules
        if names and not any(matches(pattern, name) for name in names)
    )


def round_up(value: float, digits: int = 2) -> str:
    """A tolerance as short text that, read back, is not below `value`; `inf` stays `inf`."""
    if not math.isfinite(value):
        return str(value)
    for rounding in (ROUND_HALF_EVEN, ROUND_CEILING):
        rounded = float(Context(prec=digits, rounding=rounding).create_decimal(Decimal(value)))
        if rounded >= value:
            break
    if math.isinf(rounded):
        return repr(value)
    text = f"{rounded:.{digits - 1}e}" if rounded else "0"
    mantissa, _, exponent = text.partition("e")
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    return f"{mantissa}e{exponent}" if exponent else mantissa


def _number(knob: str, text: str, number: str) -> float:
    try:
        value = int(number) if knob == "ulp" else float(number)
    except ValueError:
        kind = "a whole number" if knob == "ulp" else "a number"
        raise UsageError(f"--{knob} `{text}` does not end in {kind}; write NUMBER or PATTERN:NUMBER.") from None
    if not 0 <= value < (_ULP_LIMIT if knob == "ulp" else math.inf):
        raise UsageError(f"--{knob} `{text}` is out of range; a tolerance is zero or a positive, finite number.")
    return value

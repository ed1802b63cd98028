"""From what the user asked for (`all`, `triples`, `sample:20`, a file, …) to the orders that will be run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from reprocheck.config import did_you_mean
from reprocheck.errors import UsageError
from reprocheck.model import Struct
from reprocheck.plan import designs
from reprocheck.plan.coverage import Coverage, best_first, coverage

__all__ = ["MOST_BY_DEFAULT", "MOST_ORDERS", "OrderPlan", "cut", "orders_for"]

MOST_ORDERS = math.factorial(7)
"""`all` and `sample:N` refuse to make more orders than this."""

MOST_BY_DEFAULT = 64
"""Orders the default design runs unless more are asked for: what adds least coverage is cut, and the plan says so."""

_ALL_UP_TO = 4  # subjects; 24 orders. Above, the default is a design.
_NAMES = ("all", "pairs", "triples", "balanced", "triples+balanced", "sample:N", "default")


class OrderPlan(Struct, frozen=True, kw_only=True):
    """The orders of a study, and what they promise. The first is the user's own; no order occurs twice."""

    subjects: tuple[str, ...]
    orders: tuple[tuple[str, ...], ...]
    spec: str
    """As asked for: `default`, `triples`, `sample:20`, a path, …"""
    design: str
    """What that came to: `all`, `triples+balanced`, `file`, `explicit`, `pairs+explicit`, …"""
    seed: int | None
    """The seed the orders depend on; None when nothing about them is random."""
    stated: Coverage
    """What is covered if every one of the orders comes back."""
    cut_from: int | None = None
    """Orders the design has, when the plan was cut to fewer."""


def orders_for(
    subjects: Sequence[str],
    spec: str = "default",
    *,
    seed: int | None = None,
    explicit: Sequence[Sequence[str]] = (),
    varies_otherwise: bool = False,
    most: int | None = None,
) -> OrderPlan:
    """The plan for `subjects`, given in the user's own order.

    Args:
        subjects: Module names, each once.
        spec: `all`, `pairs`, `triples`, `balanced`, `triples+balanced`, `sample:N`, `default` (`all` up to 4
            subjects, `triples+balanced` above), or the path of a file with one order a line, names separated
            by commas, `#` starting a comment.
        seed: For designs that draw at random; 0 when not given, so that equal questions get equal plans.
        explicit: Orders asked for one by one. With `default` they replace the design, otherwise they are
            added to it. They run right after the user's own order, in the sequence given.
        most: Orders at most; None: `MOST_BY_DEFAULT` for the default design, all of what was asked for otherwise.
        varies_otherwise: True when something else than the order varies too (presence arms, another
            environment), so that a single order is a question as well.

    Returns:
        The user's own order first. A design's orders follow such that a budget cut loses least; those of a
        file or list keep their sequence, which says what matters to the user.

    Raises:
        UsageError: unknown design, unreadable file, an order that isn't made of exactly the subjects, too
            many orders, or a plan in which nothing varies.
    """
    own = tuple(subjects)
    twice = _first_repeated(own)
    if twice is not None:
        raise UsageError(f"`{twice}` is given twice among the subjects: name each module once.")
    listed = [_checked(order, own, f"the order `{','.join(order)}`") for order in explicit]
    rest: list[tuple[str, ...]] = []
    design, drawn = "explicit", False
    if not listed or spec != "default":
        design, drawn, rest = _rows(own, spec, seed or 0)
        design += "+explicit" if listed else ""
    orders = tuple(dict.fromkeys([own, *listed, *rest]))
    if most is None and spec == "default":
        most = MOST_BY_DEFAULT
    if len(orders[:most]) < 2 and not varies_otherwise:
        raise UsageError(_nothing_varies(own))
    plan = OrderPlan(
        subjects=own,
        orders=orders,
        spec=spec,
        design=design,
        seed=(seed or 0) if drawn else None,
        stated=coverage(orders, own),
    )
    return plan if most is None or len(orders) <= most else cut(plan, most)


def cut(plan: OrderPlan, most: int) -> OrderPlan:
    """The plan's first `most` orders (at least one), with the coverage these alone state."""
    orders = plan.orders[: max(1, most)]
    total = plan.cut_from or len(plan.orders)
    return msgspec.structs.replace(
        plan,
        orders=orders,
        stated=coverage(orders, plan.subjects),
        cut_from=total if len(orders) < total else None,
    )


def _rows(own: tuple[str, ...], spec: str, seed: int) -> tuple[str, bool, list[tuple[str, ...]]]:
    """(what the spec came to, whether the seed mattered, the orders)."""
    n = len(own)
    if spec == "default":
        spec = "all" if n <= _ALL_UP_TO else "triples+balanced"
    drawn = spec.startswith("triples") and n > designs.LARGEST_TABLE
    match spec:
        case "all":
            rows = _all(n)
        case "pairs":
            rows = designs.pairs(n)
        case "triples":
            rows = designs.triples(n, seed)
        case "balanced":
            rows = designs.balanced(n)
        case "triples+balanced":
            rows = list(dict.fromkeys([*designs.triples(n, seed), *designs.balanced(n)]))
        case _ if spec.partition(":")[0] == "sample":
            count = _sample_size(spec)
            rows, drawn = designs.sample(n, count, seed), count < math.factorial(n)
        case _:
            return "file", False, _read(spec, own)
    return spec, drawn, [tuple(own[i] for i in row) for row in best_first(rows)]


def _all(n: int) -> list[designs.Order]:
    if math.factorial(n) > MOST_ORDERS:
        raise UsageError(
            f"`all` would be {n}! orders of {n} subjects, more than {MOST_ORDERS}: use `triples` or `balanced` "
            f"(few orders with a stated coverage) or `sample:N`."
        )
    return designs.all_orders(n)


def _sample_size(spec: str) -> int:
    text = spec.partition(":")[2]
    if not (text.isascii() and text.isdigit() and len(text) < 9 and 1 <= int(text) <= MOST_ORDERS):
        raise UsageError(
            f"`{spec}` doesn't say how many orders to draw: write a number from 1 to {MOST_ORDERS}, e.g. `sample:20`."
        )
    return int(text)


def _read(spec: str, own: tuple[str, ...]) -> list[tuple[str, ...]]:
    """The orders in a file, checked line by line."""
    try:
        lines = Path(spec).read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        raise UsageError(f"`{spec}` is not text in UTF-8: write one order a line, e.g. `cupy,torch`.") from None
    except (OSError, ValueError) as error:
        if spec and isinstance(error, OSError) and not isinstance(error, FileNotFoundError):
            raise UsageError(f"can't read the orders in `{spec}` ({error.strerror}): name a readable file.") from None
        hint = did_you_mean(spec, _NAMES, f"; the designs are {_names(_NAMES)}.")
        raise UsageError(f"`{spec}` is neither a design of orders nor a file{hint}") from None
    orders = []
    for number, line in enumerate(lines, 1):
        text = line.partition("#")[0].strip()
        if text:
            orders.append(_checked([name.strip() for name in text.split(",")], own, f"line {number} of `{spec}`"))
    if not orders:
        raise UsageError(f"`{spec}` holds no order: write one a line, e.g. `{','.join(own[::-1])}`.")
    return orders


def _checked(order: Sequence[str], own: tuple[str, ...], where: str) -> tuple[str, ...]:
    """The order as a tuple, if it holds each subject exactly once."""
    for name in order:
        if not name:
            raise UsageError(f"{where} has an empty name: separate the subjects by single commas.")
        if name not in own:
            hint = did_you_mean(name, own, f"; the subjects are {_names(own)}.")
            raise UsageError(f"{where} names `{name}`, which is not a subject{hint}")
    twice = _first_repeated(order)
    if twice is not None:
        raise UsageError(f"{where} names `{twice}` twice: an order holds each subject once.")
    missing = [name for name in own if name not in order]
    if missing:
        raise UsageError(f"{where} lacks {_names(missing)}: an order holds each subject once.")
    return tuple(order)


def _first_repeated(names: Iterable[str]) -> str | None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _nothing_varies(own: tuple[str, ...]) -> str:
    """The sentence for a plan of one order."""
    if not own:
        return "there is no subject, so no order to vary: name the modules with --imports, e.g. --imports cupy,torch."
    if len(own) == 1:
        return (
            f"`{own[0]}` is the only subject, so no order to vary: add another, "
            f"as --imports {own[0]},OTHER or imports=[…]."
        )
    return f"the plan holds a single order, `{','.join(own)}`, so nothing varies: ask for `all` or for another order."

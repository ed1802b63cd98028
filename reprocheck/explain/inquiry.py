"""The whole of `explain`: rule, causes, remedy, reproducer; each stage takes what the last one found."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from reprocheck.engine.runner import Runner
from reprocheck.explain.asking import Asker
from reprocheck.explain.causes import Findings, Question, find_causes
from reprocheck.explain.interventions import Pair
from reprocheck.explain.labels import Labels
from reprocheck.explain.ordering import Ordering, find_rule
from reprocheck.explain.search import BudgetSpentError
from reprocheck.explain.views import Views, differences
from reprocheck.model import Record, Spent, Struct, Study, Tolerance, Trial

__all__ = ["Context", "default_budget", "explain"]

EXPLAINED = ("order-dependent", "order-dependent-with-noise", "fails-in-some-orders")


class Context(Struct, frozen=True, kw_only=True):
    """What explaining needs besides the study."""

    runner: Runner
    records: tuple[Record, ...]
    """Those the study was judged by."""
    outputs: tuple[str, ...] = ()
    """Patterns of outputs that count."""
    tolerance_for: Callable[[str], Tolerance]
    budget: int | None = None
    """Trials that may be run; `default_budget` of the study when not given."""

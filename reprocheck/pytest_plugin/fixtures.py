"""The fixtures `reprocheck` and `record`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

if TYPE_CHECKING:
    from reprocheck.pytest_plugin.outcome import Outcome

__all__ = ["record", "reprocheck"]

T = TypeVar("T")


@pytest.fixture
def record() -> Callable[[str, T], T]:
    """`record(name, value)`: keep an output in a trial; outside of one, only return the value."""

    def keep(name: str, value: T) -> T:  # noqa: ARG001 - in a trial another fixture takes this one's place
        return value

    return keep


@pytest.fixture
def reprocheck(request: pytest.FixtureRequest) -> Iterator[Callable[..., Outcome]]:
    """`reprocheck(target, imports=[...], **keywords)`: run `target` under every import order, in fresh interpreters.

    Args of the call:
        target: `file.py::function`, `pkg.mod:function`, a script, or a function at the top level of its module. Paths
            are looked for beside the test file, then where pytest was started.
        imports: The subjects, in the order to start from; read from the workload's own imports when not given.
        **keywords: As for the marker, whose values hold where the call has none.

    Returns of the call:
        An outcome with `assert_identical()`, `assert_close(rtol=, atol=, ulp=)`, `verdict`, `groups`, `causes`, ….
        A test that never looks at it is an error.
    """
    __tracebackhide__ = True
    from reprocheck.errors import UsageError
    from reprocheck.pytest_plugin.keywords import check_keywords, merged, place_of
    from reprocheck.pytest_plugin.running import run_check
    from reprocheck.pytest_plugin.state import FAILED, STATE

    item = request.node
    outcomes: list[Outcome] = []

    def check(target: Any, imports: Any = None, **keywords: Any) -> Outcome:
        __tracebackhide__ = True
        given = {**keywords, **({"imports": imports} if imports is not None else {})}
        checked = {**merged(item), **check_keywords(given, "the call of `reprocheck`")}
        place = place_of(target, item.path, item.config.stash[STATE].cwd)
        outcomes.append(run_check(item, place, checked))
        return outcomes[-1]

    yield check
    if any(not outcome.looked_at for outcome in outcomes) and not item.stash.get(FAILED, False):
        raise UsageError("nobody looked at the outcome of `reprocheck(…)`; end the call with `.assert_identical()`")

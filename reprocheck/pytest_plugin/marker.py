"""`@pytest.mark.reprocheck` on an ordinary test: its body runs in the trials, with its fixtures, and not here."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from reprocheck.errors import DivergenceError, ReprocheckError, UsageError
from reprocheck.pytest_plugin.keywords import merged
from reprocheck.pytest_plugin.running import run_check
from reprocheck.pytest_plugin.state import STATE, node_id

__all__ = ["prepare"]


def prepare(item: pytest.Item) -> None:
    """Check the marker's keywords, and let the test run in trials unless it asks for the fixture `reprocheck`.

    Raises `pytest.UsageError`: in a test's setup that is an error of this test, with and without xdist, where at
    collection it would be an internal error of the controller.
    """
    __tracebackhide__ = True
    try:
        keywords = merged(item)
    except UsageError as error:
        raise pytest.UsageError(str(error)) from None
    if not isinstance(item, pytest.Function):
        raise pytest.UsageError(
            f"@pytest.mark.reprocheck stands at {node_id(item)}, which is no test function; remove it"
        )
    if "reprocheck" in item.fixturenames:
        return
    # On the instance: what else happens to the test (xfail, skip, reruns, reports, durations) stays pytest's.
    replaced = {
        "setup": _nothing,
        "teardown": _nothing,
        "runtest": partial(_run, item, keywords),
        "repr_failure": partial(_told, item.repr_failure),
    }
    for name, method in replaced.items():
        setattr(item, name, method)


def _nothing() -> None:
    """Fixtures are set up and torn down in the trials."""


def _run(item: pytest.Function, keywords: dict[str, Any]) -> None:
    __tracebackhide__ = True
    run_check(item, _target(item), keywords).assert_agree()


def _target(item: pytest.Function) -> dict[str, Any]:
    """The test as a target: pytest is told what the user told it, and then to run this test alone."""
    return {
        "text": node_id(item),
        "kind": "pytest",
        "path": str(item.path),
        "name": node_id(item).partition("::")[2],
        "args": item.config.stash[STATE].args,
    }


def _told(default: Any, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
    """Our failures by their text alone: there is no line of the user's in the traceback."""
    if isinstance(excinfo.value, (DivergenceError, ReprocheckError, pytest.fail.Exception)):
        return excinfo.getrepr(style="value")
    return default(excinfo) if style is None else default(excinfo, style=style)

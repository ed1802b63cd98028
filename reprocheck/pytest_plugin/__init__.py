"""The pytest plugin: import order checks as tests.

Light on purpose: pytest imports this in every run of an environment in which reprocheck is installed. At import it
needs pytest and the standard library only; what a check needs is imported when a test asks for one, and the check
itself runs in another process, so that a test session keeps the modules it would have without it.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from reprocheck.pytest_plugin.fixtures import record, reprocheck
from reprocheck.pytest_plugin.options import OPTIONS, add_options
from reprocheck.pytest_plugin.session import Session
from reprocheck.pytest_plugin.state import FAILED, STATE, State

__all__ = ["record", "reprocheck"]

MARKER = "reprocheck(imports=None, **options): run this test once per import order, in fresh interpreters"
OFF = "reprocheck checks are off (--reprocheck=off)"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options and their ini twins."""
    add_options(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Offer our own hooks."""
    from reprocheck.pytest_plugin import hooks

    pluginmanager.add_hookspecs(hooks)


def pytest_configure(config: pytest.Config) -> None:
    """Read the settings, so that a bad one is told before anything runs."""
    config.addinivalue_line("markers", MARKER)
    state = config.stash[STATE] = State(config)
    if state.is_worker:
        return
    config.pluginmanager.register(Session(config, state), "reprocheck-session")
    if state.settings.html is not None:
        from importlib.util import find_spec

        if find_spec("jinja2") is None:
            raise pytest.UsageError("--reprocheck-html needs Jinja2; install it with pip install 'reprocheck[report]'")


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the process that runs checks."""
    if STATE in config.stash:
        config.stash[STATE].close()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """(xdist) Tell a worker how the user started pytest: it has another command line and a changed environment."""
    node.workerinput["reprocheck"] = node.config.stash[STATE].for_worker


def pytest_report_header(config: pytest.Config) -> str | None:
    """One line, for those who gave an option or asked for more."""
    settings = config.stash[STATE].settings
    if not settings.given and config.get_verbosity() <= 0:
        return None
    told = {option.name or "mode": value for option, value in zip(OPTIONS, settings, strict=False) if value}
    return "reprocheck: " + ", ".join(f"{name} {value}" for name, value in told.items())


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """`--reprocheck=only`: nothing but checks."""
    if config.stash[STATE].settings.mode != "only":
        return
    checks = checks_among(items)
    others = [item for item in items if item not in checks]
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if item in checks]


def pytest_collection_finish(session: pytest.Session) -> None:
    """From here on a session without checks is left alone; the controller of xdist, who has no items, is not asked."""
    manager, settings = session.config.pluginmanager, session.config.stash[STATE].settings
    if checks_among(session.items):
        manager.register(Checks(settings.mode), "reprocheck-checks")
    elif manager.hasplugin("reprocheck-session") and settings.json is None and settings.html is None:
        manager.unregister(name="reprocheck-session")


def checks_among(items: list[pytest.Item]) -> set[pytest.Item]:
    """The tests that have the marker, or ask for the fixture `reprocheck`; quick where there are none."""
    # Marks of modules and classes are looked up once, and not for each of their tests.
    inherited: dict[Any, bool] = {}
    found = set()
    for item in items:
        parent = item.parent
        marked = inherited.get(parent)
        if marked is None:
            marked = inherited[parent] = parent is not None and parent.get_closest_marker("reprocheck") is not None
        if not marked and item.own_markers:
            marked = item.get_closest_marker("reprocheck") is not None
        if marked or "reprocheck" in getattr(item, "fixturenames", ()):
            found.add(item)
    return found


class Checks:
    """What happens to tests that are checks; a plugin of its own, registered where there are any."""

    def __init__(self, mode: str) -> None:
        """`mode` is that of `--reprocheck`."""
        self._mode = mode

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Before a check's fixtures are set up: skip it, or let its body run in trials."""
        __tracebackhide__ = True
        marked = item.get_closest_marker("reprocheck") is not None
        if not marked and "reprocheck" not in getattr(item, "fixturenames", ()):
            return
        if self._mode == "off":
            raise pytest.skip.Exception(OFF, _use_item_location=True)
        if marked:
            from reprocheck.pytest_plugin.marker import prepare

            prepare(item)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """A fault of ours is no divergence: no `xfail` hides it."""
        report = yield
        if call.excinfo is None:
            return report
        if call.when == "call":
            item.stash[FAILED] = True
        if hasattr(report, "wasxfail") and report.skipped:
            from reprocheck.errors import ReprocheckError

            if isinstance(call.excinfo.value, ReprocheckError):
                report.outcome = "failed"
                del report.wasxfail
        return report

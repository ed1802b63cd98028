"""A suite written by a test and run by a pytest of its own, with the plugin and without others."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


class Inner:
    """The suite under test. `a` and `b` are toolboxes of which the first imported decides `state.value`."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.path = pytester.path
        self.write(
            state="value = None",
            a="import state\nif state.value is None: state.value = 1.0",
            b="import state\nif state.value is None: state.value = 1.0 + 2**-52",
            work="""
                import state

                def differs():
                    return {"y": state.value}

                def same():
                    return {"y": 3.0}
            """,
        )

    def write(self, **modules: str) -> None:
        """Write `name.py` for each keyword; `__` in a name is a folder separator."""
        for name, source in modules.items():
            path = self.path / (name.replace("__", "/") + ".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(source), encoding="utf-8")

    def run(self, *args: str, workers: int | None = None, explain: bool = False) -> pytest.RunResult:
        """Run pytest in a process of its own; with `workers`, under xdist. Explaining takes time, so not by default."""
        more = [] if workers is None else ["-p", "xdist", "-n", str(workers)]
        more += [] if explain else ["-o", "reprocheck_explain=off"]
        return self.pytester.runpytest_subprocess("-p", "reprocheck.pytest_plugin", *more, *args)

    def studies(self, name: str = "out.json") -> dict[str, list[dict[str, Any]]]:
        """Test -> its studies, from the file that `--reprocheck-json` wrote."""
        document = json.loads((self.path / name).read_text())
        assert document["schema"] == "reprocheck/session"
        found: dict[str, list[dict[str, Any]]] = {}
        for check in document["checks"]:
            found.setdefault(check["test"], []).append(check["study"])
        return found


@pytest.fixture
def inner(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Inner:
    # Other plugins of this environment would only cost time, in the suite and in every one of its trials.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    for name in ("CI", "GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER"):
        monkeypatch.delenv(name, raising=False)
    return Inner(pytester)

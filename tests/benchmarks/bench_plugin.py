"""What the pytest plugin costs a suite that does not use it: the same 100 tests with the plugin and with it blocked.

Budget: under 5 ms, and no output. Whole pytest processes differ by more than that among themselves. So each round is a
fresh interpreter that has pytest already: the CPU time of importing the plugin's modules, plus what a session in it
takes more than one without (the fastest of each kind, in turns: what disturbs a session only adds to it).
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.benchmarks.figures import row

BUDGET = 5.0
ROUNDS = 7
SUITE = "import pytest\n\n@pytest.mark.parametrize('n', range(100))\ndef test_it(n): assert n >= 0\n"
CHILD = """
import contextlib, io, json, sys, time
import pytest

def session(*arguments):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        begin = time.process_time()
        pytest.main(["-q", "-p", "no:cacheprovider", *arguments])
        spent = time.process_time() - begin
    return 1e3 * spent, len(printed.getvalue().splitlines())

blocked = ("-p", "no:reprocheck")
session(*blocked)
before = set(sys.modules)
begin = time.process_time()
import reprocheck.pytest_plugin, reprocheck.pytest_plugin.session, reprocheck.pytest_plugin.hooks
imported = 1e3 * (time.process_time() - begin)
session()
late = sorted(name for name in set(sys.modules) - before if name.startswith("reprocheck"))
pairs = [(session(), session(*blocked)) for _ in range(25)]
print(json.dumps({
    "imported_ms": imported,
    "session_ms": min(one[0] for one, _ in pairs) - min(other[0] for _, other in pairs),
    "without_ms": min(other[0] for _, other in pairs),
    "quiet": all(one[1] == other[1] for one, other in pairs),
    "modules": late,
}))
"""


def main() -> int:
    """Print the figures as JSON; 1 when the budget is missed or anything was printed."""
    rounds = 2 if "--quick" in sys.argv[1:] else ROUNDS
    found = []
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "test_it.py").write_text(SUITE, encoding="utf-8")
        # A configuration of its own: temporary folders of a nox session lie below this project's.
        (Path(name) / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
        for _ in range(rounds + 1):
            done = subprocess.run(
                [sys.executable, "-c", CHILD],
                stdout=subprocess.PIPE,
                text=True,
                check=True,
                cwd=name,
                env={key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"},
            )
            found.append(json.loads(done.stdout))
    del found[0]  # byte code and file caches
    costs = [item["imported_ms"] + item["session_ms"] for item in found]
    quiet = all(item["quiet"] for item in found)
    figures = {
        "bench": "plugin",
        "no_output": quiet,
        "without_ms": round(statistics.median(item["without_ms"] for item in found), 1),
        "imported_ms": round(statistics.median(item["imported_ms"] for item in found), 2),
        "modules": found[0]["modules"],
        "rows": [row("pytest plugin in 100 tests that do not use it", "", costs, budget=BUDGET, unit="ms")],
    }
    print(json.dumps(figures))
    return 0 if quiet and figures["rows"][0]["met"] else 1


if __name__ == "__main__":
    sys.exit(main())

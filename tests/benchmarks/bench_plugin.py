"""What the pytest plugin costs a suite that does not use it: the same suite with the plugin and with it blocked.

Budget: under 5 ms, and no output. CPU seconds of the whole process (its children's count too), in turns.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROUNDS = 15
SUITE = "import pytest\n\n@pytest.mark.parametrize('n', range(500))\ndef test_it(n): assert n >= 0\n"


def spent(folder: Path, *arguments: str) -> tuple[float, str]:
    """(CPU milliseconds of a pytest run in `folder`, what it printed)."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
        env={name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)
    return used * 1000, done.stdout


def main() -> None:
    """Print the figures as JSON."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "test_it.py").write_text(SUITE, encoding="utf-8")
        blocked = ("-p", "no:reprocheck")
        for arguments in ((), blocked):
            spent(folder, *arguments)  # byte code and file caches
        pairs = [(spent(folder), spent(folder, *blocked)) for _ in range(ROUNDS)]
    differences = sorted(with_plugin[0] - without[0] for with_plugin, without in pairs)
    quartiles = statistics.quantiles(differences, n=4)
    quiet = all(len(one[1].splitlines()) == len(other[1].splitlines()) for one, other in pairs)
    figures = {
        "name": "pytest plugin, not used: CPU ms more than with `-p no:reprocheck`",
        "budget": 5.0,
        "median": round(quartiles[1], 2),
        "spread": [round(quartiles[0], 2), round(quartiles[2], 2)],
        "of_best": round(min(one[0] for one, _ in pairs) - min(other[0] for _, other in pairs), 2),
        "without": round(statistics.median(without[0] for _, without in pairs), 1),
        "no_output": quiet,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()

"""The workload of `reprocheck doctor`: a little of everything that could vary between identical runs.

Runs in the interpreter under test, so it is written for Python 3.9 and for whatever of numpy and torch is loaded.
"""

from __future__ import annotations

import math
import os
import sys


def run() -> dict[str, object]:
    """Numbers that depend on the C library, on hashing, on threads and on the environment; equal in identical runs."""
    functions = (math.sin, math.exp, math.log, math.tan)
    words = {str(number) for number in range(500)}
    found: dict[str, object] = {
        "libm": [function(0.1 + number) for number in range(50) for function in functions],
        "hashing": float(sum(index * len(word) for index, word in enumerate(words))),
        "environment": sorted(name for name in os.environ if not name.startswith("_")),
    }
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if numpy is not None:
        values = numpy.sin(numpy.arange(250_000.0)).reshape(500, 500)
        solved = numpy.linalg.solve(values + 500 * numpy.eye(500), values[0])
        found["numpy"] = {"product": values @ values, "sum": values.sum(), "solve": solved}
    if torch is not None:
        values = torch.sin(torch.arange(250_000.0)).reshape(500, 500)
        found["torch"] = {"product": values @ values, "sum": values.sum(), "softmax": values.softmax(0)}
    return found

"""How many orders a design needs against all n! of them, and how long it takes to make; prints one JSON line.

Coverage is counted, not believed: every row's triples are gone through one by one.

    python -m tests.benchmarks.bench_orders
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import sys
import time

from reprocheck.plan.designs import LARGEST_TABLE, balanced, triples
from reprocheck.plan.orders import orders_for
from tests.benchmarks.figures import row

LARGEST = 40
SECONDS = 5.0
"""A plan for `LARGEST` subjects may take this long."""


def main() -> int:
    """Count and time; 1 when a budget is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="up to 20 subjects, two seeds")
    quick = parser.parse_args().quick
    rows, sizes = [], {}
    for n in (4, 6, 8, 10, 12, 16, 20, *(() if quick else (30, LARGEST))):
        counts = [float(_complete(n, seed)) for seed in range(1 if n <= LARGEST_TABLE else 2 if quick else 5)]
        sizes[n] = {"triples": counts, "balanced": len(balanced(n)), "all": math.factorial(n)}
        budget = {10: 10.0}.get(n)
        rows.append(row(f"orders with every triple of {n}", f"{n}! = {_big(n)}", counts, budget=budget, unit=""))
    names = [f"m{number}" for number in range(20 if quick else LARGEST)]
    seconds = []
    for seed in range(2 if quick else 5):
        start = time.process_time()
        orders_for(names, "default", seed=seed)
        seconds.append(time.process_time() - start)
    rows.append(row(f"making the plan of {len(names)} subjects", "", seconds, budget=SECONDS, unit="s"))
    print(json.dumps({"bench": "orders", "seeds": "0, 1, …", "sizes": sizes, "rows": rows}))
    return 0 if all(item["met"] is not False for item in rows) else 1


def _complete(n: int, seed: int) -> int:
    """How many orders the design has; raises where it misses a triple."""
    design = triples(n, seed)
    held = {triple for order in design for triple in itertools.combinations(order, 3)}
    if len(held) != n * (n - 1) * (n - 2):
        raise SystemExit(f"the design for {n} subjects and seed {seed} misses triples")
    return len(design)


def _big(n: int) -> str:
    count = math.factorial(n)
    return f"{count:,}" if n <= 12 else f"{float(count):.1e}"


if __name__ == "__main__":
    sys.exit(main())

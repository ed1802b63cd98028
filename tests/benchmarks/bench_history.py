"""Versions run until a change is found, in histories with blocks that can't be judged; prints one JSON line.

Simulated: a single change somewhere in so many versions, of which a share can't be judged, in blocks of several. The
rivals are plain bisection, which steps to the next version when the middle one can't be judged (as a person does, and
`git bisect skip` at first), and a linear walk back from the newest. All of them prove the boundary they name. Rounds
are drawn histories; the seeds are in the output.

    python -m tests.benchmarks.bench_history --versions 1024
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
from collections.abc import Callable

from reprocheck.bisect.search import History, Known, Label, Unknown, step
from tests.benchmarks.figures import row

BUDGET = {0.0: 1.0, 0.2: 1.0, 0.5: 0.8}
"""Share of versions that can't be judged -> how many runs may be spent, over those of plain bisection."""
Labels = list[Label]


def main() -> int:
    """Draw, search, compare; 1 when a budget is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--versions", type=int, default=1024, help="length of the history [default: 1024]")
    parser.add_argument("--rounds", type=int, default=200, help="histories drawn for each share [default: 200]")
    parser.add_argument("--quick", action="store_true", help="256 versions, 40 histories")
    arguments = parser.parse_args()
    versions, rounds = (256, 40) if arguments.quick else (arguments.versions, arguments.rounds)
    rows, runs = [], {}
    for share, budget in BUDGET.items():
        cost: dict[str, list[float]] = {"ours": [], "plain": [], "walk": []}
        for seed in range(rounds):
            labels = _drawn(versions, share, seed)
            answers = {name: search(labels) for name, search in _SEARCHES.items()}
            if len({answer for answer, _ in answers.values()}) != 1:
                raise SystemExit(f"seed {seed}: the searches disagree: {answers}")
            for name, (_, count) in answers.items():
                cost[name].append(float(count))
        runs[str(share)] = {
            name: {"median": statistics.median(found), "mean": round(statistics.mean(found), 1), "most": max(found)}
            for name, found in cost.items()
        }
        dead = f"{share:.0%} in dead blocks"
        # Groups of histories: a single one is luck.
        parts = [slice(start, start + rounds // 4) for start in range(0, rounds, rounds // 4)]
        plain = [sum(cost["ours"][part]) / sum(cost["plain"][part]) for part in parts if cost["ours"][part]]
        walk = [sum(cost["ours"][part]) / sum(cost["walk"][part]) for part in parts if cost["ours"][part]]
        rows.append(row(f"runs over {versions} versions, {dead}", "plain bisection", plain, budget=budget))
        rows.append(row(f"runs over {versions} versions, {dead}", "a linear walk", walk))
    print(json.dumps({"bench": "history", "versions": versions, "seeds": [0, rounds - 1], "runs": runs, "rows": rows}))
    return 0 if all(item["met"] is not False for item in rows) else 1


def _drawn(count: int, share: float, seed: int) -> Labels:
    """A history with one change; blocks of up to an eighth of it can't be judged, the ends always can."""
    rng = random.Random(f"{seed} {share}")
    first_bad = rng.randrange(1, count)
    labels: Labels = [index >= first_bad for index in range(count)]
    dead = 0
    while dead < share * count:
        length = rng.randint(1, count // 8)
        start = rng.randrange(1, count - 1)
        for index in range(start, min(start + length, count - 1)):
            dead += not isinstance(labels[index], Unknown)
            labels[index] = Unknown("broken")
    return labels


def _ours(labels: Labels) -> tuple[tuple[int, int], int]:
    history, known = History(len(labels)), dict[int, Label]()
    while (now := step(history, known)).wanted:
        known[now.wanted[0]] = labels[now.wanted[0]]
    (boundary,) = now.boundaries
    return (boundary.before, boundary.after), len(known)


def _plain(labels: Labels) -> tuple[tuple[int, int], int]:
    """Halve; where the middle can't be judged, try the next ones up, then down, one by one."""
    low, high = 0, len(labels) - 1
    seen: Known = {low: labels[low], high: labels[high]}
    tried = dict(seen)
    while high - low > 1:
        middle = (low + high) // 2
        for index in [*range(middle, high), *range(middle - 1, low, -1)]:
            tried[index] = labels[index]
            if not isinstance(labels[index], Unknown):
                low, high = (index, high) if labels[index] == labels[low] else (low, index)
                break
        else:
            break
    return (low, high), len(tried)


def _walk(labels: Labels) -> tuple[tuple[int, int], int]:
    """From the newest back, one by one, until the label changes."""
    high, count = len(labels) - 1, 1
    for index in range(len(labels) - 2, -1, -1):
        count += 1
        if isinstance(labels[index], Unknown):
            continue
        if labels[index] != labels[-1]:
            return (index, high), count
        high = index
    raise SystemExit("a history without a change")


_SEARCHES: dict[str, Callable[[Labels], tuple[tuple[int, int], int]]] = {"ours": _ours, "plain": _plain, "walk": _walk}


if __name__ == "__main__":
    sys.exit(main())

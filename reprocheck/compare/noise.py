"""Does the outcome depend on the order, or is it noise? Exact tests on counts; the standard library only."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import comb, factorial, prod
from typing import Literal

__all__ = ["ARRANGEMENTS_LIMIT", "Permutation", "permutation_p", "repeats_needed", "rule_of_three", "stratified_p"]

ARRANGEMENTS_LIMIT = 2**64 - 1
"""`Permutation.arrangements` saturates here (JSON readers take no wider integer)."""

_MAX_STEPS = 100_000
_SAMPLES = 19_999
_SEED = 20261201

State = tuple[int, ...]
"""How many trials are still to be placed, per outcome, largest first; outcomes with equal counts are alike."""


@dataclass(frozen=True, slots=True)
class Permutation:
    """The result of a permutation test."""

    p_value: float
    """Share of the arrangements in which trials of one order agree at least as often as they did."""
    method: Literal["exact", "monte-carlo"]
    arrangements: int
    """Distinct arrangements that were counted (saturating), or random ones that were drawn."""


def permutation_p(outcomes: Sequence[Sequence[str]], *, max_steps: int = _MAX_STEPS) -> Permutation:
    """Test whether outcomes depend on the order: `outcomes` has one sequence of group ids per effective order.

    Under the null hypothesis the order means nothing, so every distribution of the same outcomes over orders of the
    same sizes is equally likely. The statistic is the number of pairs of trials of one order with equal outcome; the
    p-value is the share of distinct distributions whose statistic is at least the observed one (one-sided: noise
    does not make trials of one order agree *less* than chance).

    All distributions are counted, by dynamic programming over the orders. Should that take more than `max_steps`
    steps, the share is estimated instead from 19,999 shuffles with a fixed seed as (k + 1) / (n + 1), which keeps the
    test valid (Phipson and Smyth 2010, https://doi.org/10.2202/1544-6115.1585).
    """
    sizes = sorted((len(groups) for groups in outcomes if groups), reverse=True)
    observed = sum(_agreeing(Counter(groups).values()) for groups in outcomes)
    counts = tuple(sorted(Counter(group for groups in outcomes for group in groups).values(), reverse=True))
    total = _arrangements(counts)
    favourable = _count_at_least(sizes, counts, observed, max_steps)
    if favourable is not None:
        return Permutation(favourable / total, "exact", min(total, ARRANGEMENTS_LIMIT))
    return _estimate(sizes, counts, observed)


def stratified_p(strata: Sequence[Sequence[Sequence[str]]], *, max_steps: int = _MAX_STEPS) -> Permutation:
    """The same test over strata that may differ for reasons of their own: each is permuted only within itself.

    `strata` has one argument of `permutation_p` per stratum. The statistic is the sum over the strata, and every
    combination of their arrangements is equally likely, so differences between strata count neither for nor against.
    With one stratum this is `permutation_p`; without any there is nothing to arrange, and p is 1.
    """
    kept = [[groups for groups in stratum if groups] for stratum in strata]
    sizes = [sorted(map(len, stratum), reverse=True) for stratum in kept]
    counts = [
        tuple(sorted(Counter(group for groups in stratum for group in groups).values(), reverse=True))
        for stratum in kept
    ]
    observed = sum(_agreeing(Counter(groups).values()) for stratum in kept for groups in stratum)
    ways: dict[int, int] = {0: 1}
    total = 1
    for size, count in zip(sizes, counts, strict=True):
        own = _distribution(size, count, max_steps)
        if own is None:
            return _estimate_strata(sizes, counts, observed)
        total *= sum(own.values())
        joined: dict[int, int] = {}
        for before, multiplicity in ways.items():
            for statistic, number in own.items():
                joined[before + statistic] = joined.get(before + statistic, 0) + multiplicity * number
        ways = joined
    favourable = sum(number for statistic, number in ways.items() if statistic >= observed)
    return Permutation(favourable / total, "exact", min(total, ARRANGEMENTS_LIMIT))


def rule_of_three(n: int) -> float:
    """Upper bound, at 95 % confidence, on the rate of something seen in none of `n` independent trials.

    Exact: the rate at which n trials without it still have a probability of 5 %, 1 - 0.05^(1/n). It lies just under
    3/n, the rule of three (https://doi.org/10.1001/jama.1983.03330370053031). 1.0 for no trials.
    """
    return 1.0 - 0.05 ** (1.0 / n) if n > 0 else 1.0


def repeats_needed(orders: int, alpha: float) -> int:
    """The smallest number of trials per order with which any perfectly stable split in two reaches p < alpha.

    Perfectly stable: every order always gives the same one of two outcomes, and both occur. Then p is the number of
    ways to choose the orders with the first outcome over the number of ways to choose their trials; the least
    convincing split counts, which is one order against the rest.

    Raises:
        ValueError: fewer than two orders, or alpha outside (0, 1).
    """
    if orders < 2 or not 0 < alpha < 1:
        raise ValueError(f"no number of repeats tells {orders} orders apart at alpha = {alpha}")
    repeats = 1
    while any(comb(orders, k) / comb(orders * repeats, k * repeats) >= alpha for k in range(1, orders // 2 + 1)):
        repeats += 1
    return repeats


def _agreeing(counts: Iterable[int]) -> int:
    """Pairs of trials with equal outcome, from the number of trials of each outcome."""
    return sum(comb(count, 2) for count in counts)


def _arrangements(counts: State) -> int:
    """Distinct sequences of outcomes with these counts."""
    return factorial(sum(counts)) // prod(map(factorial, counts))


def _count_at_least(sizes: Sequence[int], counts: State, observed: int, max_steps: int) -> int | None:
    """How many distinct arrangements have a statistic of at least `observed`; None beyond `max_steps` steps.

    Goes order by order, keeping for every (what is left, statistic so far) the number of ways to get there. Ways
    that can no longer reach `observed` are dropped, and those that have reached it are counted at once.
    """
    steps = 0
    favourable = 0
    ways: dict[tuple[State, int], int] = {(counts, 0): 1}
    for place, size in enumerate(sizes):
        still_possible = sum(comb(later, 2) for later in sizes[place + 1 :])
        following: dict[tuple[State, int], int] = {}
        for (state, statistic), multiplicity in ways.items():
            if statistic >= observed:
                favourable += multiplicity * _arrangements(state)
                continue
            for left, pairs, arrangements in _fillings(state, size):
                steps += 1
                if steps > max_steps:
                    return None
                if statistic + pairs + still_possible >= observed:
                    key = (left, statistic + pairs)
                    following[key] = following.get(key, 0) + multiplicity * arrangements
        ways = following
    return favourable + sum(multiplicity for (_, statistic), multiplicity in ways.items() if statistic >= observed)


def _distribution(sizes: Sequence[int], counts: State, max_steps: int) -> dict[int, int] | None:
    """Statistic -> how many distinct arrangements have it; None beyond `max_steps` steps."""
    steps = 0
    ways: dict[tuple[State, int], int] = {(counts, 0): 1}
    for size in sizes:
        following: dict[tuple[State, int], int] = {}
        for (state, statistic), multiplicity in ways.items():
            for left, pairs, arrangements in _fillings(state, size):
                steps += 1
                if steps > max_steps:
                    return None
                key = (left, statistic + pairs)
                following[key] = following.get(key, 0) + multiplicity * arrangements
        ways = following
    found: dict[int, int] = {}
    for (_, statistic), number in ways.items():
        found[statistic] = found.get(statistic, 0) + number
    return found


def _fillings(state: State, size: int) -> Iterator[tuple[State, int, int]]:
    """Every way to give an order its `size` trials: what is left, agreeing pairs, number of such sequences."""
    classes = sorted(Counter(state).items(), reverse=True)
    capacity = [sum(count * alike for count, alike in classes[at:]) for at in range(len(classes) + 1)]

    def choose(at: int, room: int) -> Iterator[tuple[tuple[int, ...], int, int, int]]:
        """From classes `at` on: counts left, pairs, ways to pick the outcomes, product of factorials of the picks."""
        if at == len(classes):
            yield (), 0, 1, 1
            return
        count, alike = classes[at]
        for takes in _descending(alike, min(count, room), room - capacity[at + 1], room):
            ways = factorial(alike) // prod(map(factorial, Counter(takes).values()))
            kept = tuple(count - take for take in takes if take < count)
            for left, pairs, other_ways, divisor in choose(at + 1, room - sum(takes)):
                yield (
                    kept + left,
                    pairs + _agreeing(takes),
                    ways * other_ways,
                    divisor * prod(map(factorial, takes)),
                )

    for left, pairs, ways, divisor in choose(0, size):
        yield tuple(sorted(left, reverse=True)), pairs, ways * factorial(size) // divisor


def _descending(parts: int, largest: int, least: int, most: int) -> Iterator[tuple[int, ...]]:
    """Non-increasing tuples of so many parts, none above `largest`, whose sum is from `least` to `most`."""
    for first in range(min(largest, most) if parts else 0, 0, -1):
        if first * parts < least:
            return
        for rest in _descending(parts - 1, first, least - first, most - first):
            yield (first, *rest)
    if least <= 0:
        yield (0,) * parts


def _estimate(sizes: Sequence[int], counts: State, observed: int) -> Permutation:
    return _estimate_strata([sizes], [counts], observed)


def _estimate_strata(sizes: Sequence[Sequence[int]], counts: Sequence[State], observed: int) -> Permutation:
    strata = [[outcome for outcome, count in enumerate(own) for _ in range(count)] for own in counts]
    shuffle = random.Random(_SEED).shuffle  # noqa: S311 - reproducible sampling, not secrecy
    reached = 0
    for _ in range(_SAMPLES):
        statistic = 0
        for trials, parts in zip(strata, sizes, strict=True):
            shuffle(trials)
            start = 0
            for size in parts:
                statistic += _agreeing(Counter(trials[start : start + size]).values())
                start += size
        reached += statistic >= observed
    return Permutation((reached + 1) / (_SAMPLES + 1), "monte-carlo", _SAMPLES)

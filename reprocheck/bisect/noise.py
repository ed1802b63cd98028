"""The search when outcomes flake: where the change lies, given how often each version showed it.

Every run of a version shows the condition or not. On the old side of the change it does so at one rate, on the new
side at another; both are unknown. They are integrated out: with prior probability one half they are exactly 0 and 1
(most outcomes are deterministic, and then one run a version is enough), else each has Jeffreys' prior Beta(½, ½). The
ends, run several times before the search, are what tells the rates, so that no guess of the user's is needed and the
stated probability means what it says; a test checks that against the truth.

After BBChop (2009, https://github.com/Ealdwulf/bbchop) and git_bayesect
(https://hauntsaninja.github.io/git_bayesect.html): the next version is the one whose run is expected to tell most.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, exp, inf, lgamma, log

__all__ = [
    "ENOUGH",
    "MOST_END_RUNS",
    "Belief",
    "Count",
    "Trend",
    "believe",
    "confirmations",
    "ends_differ",
    "likely_range",
    "look",
    "misfits",
    "most_telling",
    "odds",
]

ENOUGH = 0.97
"""A boundary this probable ends the search."""
MOST_END_RUNS = 30
"""The ends are run no more often than this to tell them apart."""
_SURE = 0.5  # prior probability that the rates are 0 and 1
_A = 0.5  # Jeffreys
_LEAST = 3
_MISS = 0.02  # accepted probability that confirming runs overlook what they look for
_APART = 0.01
_ODD = 0.001


@dataclass(frozen=True, slots=True)
class Count:
    """Of `runs` runs of a version, `bad` showed the condition."""

    bad: int
    runs: int


@dataclass(frozen=True, slots=True)
class Belief:
    """Probabilities of where the change lies, and of what either side shows."""

    boundary: tuple[float, ...]
    """boundary[i] is the probability that version i + 1 is the first on the new side; they sum to 1."""
    old_rate: float
    new_rate: float
    """Rates at which a further run shows the condition on either side of the likeliest boundary."""
    steady: float
    """Probability that the outcome is deterministic."""
    old_rates: tuple[float, ...]
    new_rates: tuple[float, ...]
    """The same rates for each boundary."""

    @property
    def best(self) -> int:
        """The likeliest first version on the new side."""
        return max(range(len(self.boundary)), key=self.boundary.__getitem__) + 1

    @property
    def confidence(self) -> float:
        """Its probability."""
        return max(self.boundary)


def believe(counts: Sequence[Count]) -> Belief:
    """What the runs say: `counts` holds every version that can be judged, oldest first, both ends included.

    Raises:
        ValueError: fewer than two versions.
    """
    if len(counts) < 2:
        raise ValueError("a change needs a version before and one after it")
    total = Count(sum(count.bad for count in counts), sum(count.runs for count in counts))
    logs: list[tuple[float, float]] = []
    rates: list[tuple[float, float]] = []
    bad = runs = 0
    for count in counts[:-1]:
        bad, runs = bad + count.bad, runs + count.runs
        new_bad, new_runs = total.bad - bad, total.runs - runs
        consistent = bad == 0 and new_bad == new_runs
        logs.append(
            (
                log(_SURE) if consistent else -inf,
                log(1 - _SURE) + _log_marginal(bad, runs) + _log_marginal(new_bad, new_runs),
            )
        )
        rates.append(((bad + _A) / (runs + 2 * _A), (new_bad + _A) / (new_runs + 2 * _A)))
    highest = max(max(pair) for pair in logs)
    weights = [(exp(sure - highest), exp(shaky - highest)) for sure, shaky in logs]
    norm = sum(sure + shaky for sure, shaky in weights)
    boundary = tuple((sure + shaky) / norm for sure, shaky in weights)
    share = [shaky / (sure + shaky) if sure + shaky else 1.0 for sure, shaky in weights]
    old = tuple(part * rate for part, (rate, _) in zip(share, rates, strict=True))
    new = tuple(1 - part * (1 - rate) for part, (_, rate) in zip(share, rates, strict=True))
    best = max(range(len(boundary)), key=boundary.__getitem__)
    return Belief(
        boundary=boundary,
        old_rate=old[best],
        new_rate=new[best],
        steady=sum(sure for sure, _ in weights) / norm,
        old_rates=old,
        new_rates=new,
    )


def most_telling(belief: Belief) -> tuple[int, ...]:
    """Versions by how much one more run of them is expected to tell about the boundary, most telling first.

    That is the mutual information of the boundary and the run's outcome.
    """
    n = len(belief.boundary) + 1
    weights, old, new = belief.boundary, belief.old_rates, belief.new_rates
    # Version i is on the new side of boundaries 0 … i-1 (first new version i or earlier), on the old side of the rest.
    shows = sum(w * p for w, p in zip(weights, old, strict=True))
    doubt = sum(w * _entropy(p) for w, p in zip(weights, old, strict=True))
    gains = []
    for index in range(n):
        if index:
            at = index - 1
            shows += weights[at] * (new[at] - old[at])
            doubt += weights[at] * (_entropy(new[at]) - _entropy(old[at]))
        gains.append(_entropy(shows) - doubt)
    centre = (n - 1) / 2
    # Rounded: among equals the middle one, whatever the last bits say.
    return tuple(sorted(range(n), key=lambda index: (-round(gains[index], 9), abs(index - centre), index)))


def likely_range(belief: Belief, mass: float = 0.9) -> tuple[int, int]:
    """(first, last) of the shortest range of versions that holds the first new one with at least this probability."""
    chances = belief.boundary
    best = (0, len(chances) - 1)
    held, start = 0.0, 0
    for stop, chance in enumerate(chances):
        held += chance
        while held - chances[start] >= mass and start < stop:
            held -= chances[start]
            start += 1
        if held >= mass and stop - start < best[1] - best[0]:
            best = (start, stop)
    return best[0] + 1, best[1] + 1


def confirmations(belief: Belief) -> int:
    """Runs that the two versions at the boundary get at least, before it is believed.

    Three, since rates measured in a few runs look firmer than they are; and as many as it takes that the difference
    between the two rates is overlooked every time with a probability of 2 % at most.
    """
    gap = max(0.05, belief.new_rate - belief.old_rate)
    return _LEAST if gap >= 1 - _MISS else max(_LEAST, ceil(log(_MISS) / log(1 - gap)))


@dataclass(frozen=True, slots=True)
class Trend:
    """Where a noisy search stands."""

    wanted: tuple[int, ...]
    """Versions to run once more, most telling first; empty: the search is over."""
    belief: Belief | None = None
    """None while the ends are still being told apart."""
    apart: bool = True
    """False when the ends don't differ beyond chance, however often they were run."""
    p_value: float = 1.0
    """Fisher's exact test of the two ends, one-sided."""


def look(counts: Sequence[Count], *, ends: int = MOST_END_RUNS) -> Trend:
    """What to run next; nothing is kept between calls.

    The ends come first, until they are told apart (`ends` runs each at most), then the most telling version, and at
    last the two versions at the boundary.
    """
    p_value = ends_differ(counts[0], counts[-1])
    if p_value > _APART:
        wanted = _fewest_first((index for index in (0, len(counts) - 1) if counts[index].runs < ends), counts)
        return Trend(wanted, apart=bool(wanted), p_value=p_value)
    belief = believe(counts)
    if belief.confidence < ENOUGH:
        return Trend(most_telling(belief), belief, p_value=p_value)
    need = confirmations(belief)
    boundary = (belief.best - 1, belief.best)
    wanted = _fewest_first((index for index in boundary if counts[index].runs < need), counts)
    return Trend(wanted, belief, p_value=p_value)


def ends_differ(old: Count, new: Count) -> float:
    """Fisher's exact p-value, one-sided, that the new end shows the condition more often than the old one."""
    bad, runs = old.bad + new.bad, old.runs + new.runs
    low, high = max(0, bad - old.runs), min(bad, new.runs)
    ways = {
        k: exp(_log_choose(new.runs, k) + _log_choose(old.runs, bad - k) - _log_choose(runs, bad))
        for k in range(low, high + 1)
    }
    return min(1.0, sum(way for k, way in ways.items() if k >= new.bad))


def odds(here: Count, old: Count, new: Count) -> float:
    """Probability that a version behaves as the new end does rather than as the old one, both equally likely before."""
    log_old = _log_marginal(old.bad + here.bad, old.runs + here.runs) - _log_marginal(old.bad, old.runs)
    log_new = _log_marginal(new.bad + here.bad, new.runs + here.runs) - _log_marginal(new.bad, new.runs)
    return 1 / (1 + exp(max(-700.0, min(700.0, log_old - log_new))))


def misfits(counts: Sequence[Count], first_new: int) -> tuple[int, ...]:
    """Versions whose runs hardly fit a single change at `first_new`: p < 0.001 against the rest of their own side."""
    odd = []
    for side in (range(first_new), range(first_new, len(counts))):
        bad, runs = sum(counts[i].bad for i in side), sum(counts[i].runs for i in side)
        for index in side:
            rest = Count(bad - counts[index].bad, runs - counts[index].runs)
            here = counts[index]
            more = ends_differ(rest, here)
            fewer = ends_differ(here, rest)
            if here.runs and rest.runs and min(more, fewer) * max(1, len(side)) < _ODD:
                odd.append(index)
    return tuple(odd)


def _fewest_first(indices: Iterable[int], counts: Sequence[Count]) -> tuple[int, ...]:
    return tuple(sorted(indices, key=lambda index: (counts[index].runs, index)))


def _log_marginal(bad: int, runs: int) -> float:
    """Log-likelihood of `bad` of `runs` in one particular sequence, the rate integrated over Beta(½, ½)."""
    return _log_beta(bad + _A, runs - bad + _A) - _log_beta(_A, _A)


def _log_beta(a: float, b: float) -> float:
    return lgamma(a) + lgamma(b) - lgamma(a + b)


def _log_choose(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


def _entropy(p: float) -> float:
    """Of a coin, in nats."""
    return 0.0 if p <= 0 or p >= 1 else -p * log(p) - (1 - p) * log(1 - p)

"""The verdict: a pure function of which group each trial of each order landed in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reprocheck.compare.looks import ALPHA
from reprocheck.compare.noise import Permutation, permutation_p
from reprocheck.errors import EXIT_AGREE, EXIT_DIVERGENCE, EXIT_HARNESS
from reprocheck.model import Struct, Verdict

__all__ = ["ALPHA", "EXIT_CODES", "Judgement", "judge"]

EXIT_CODES: dict[Verdict, int] = {
    "identical": EXIT_AGREE,
    "within-tolerance": EXIT_AGREE,
    "order-dependent": EXIT_DIVERGENCE,
    "order-dependent-with-noise": EXIT_DIVERGENCE,
    "noisy": EXIT_DIVERGENCE,
    "fails-in-some-orders": EXIT_DIVERGENCE,
    "fails-everywhere": EXIT_DIVERGENCE,
    # No verdict is not an agreement, and it is not a divergence either.
    "inconclusive": EXIT_HARNESS,
}


class Judgement(Struct, frozen=True, kw_only=True):
    """A verdict with its reason, and whether more repeats could still change it."""

    verdict: Verdict
    reason: str
    permutation: Permutation | None = None
    stable: bool = True
    settled: bool = True
    """False when the evidence is below the threshold and further repeats would add to it."""


def judge(
    outcomes: Mapping[tuple[str, ...], Sequence[str]],
    failed: frozenset[str],
    *,
    within_tolerance: bool,
    alpha: float = ALPHA,
    tested: Mapping[tuple[str, ...], Sequence[str]] | None = None,
) -> Judgement:
    """The verdict for `outcomes`: effective order -> group of each of its trials.

    `failed` are the groups that did not finish; `within_tolerance` says that all groups agree under the
    tolerances asked for (False when none were asked for and bits differ). The order is held responsible when the
    exact test gives p < `alpha` (see `looks`); 0 means that nothing is decided yet. `tested` are the outcomes that the
    test counts, where these are not all of them.
    """
    if not outcomes or any(not groups for groups in outcomes.values()):
        missing = [",".join(order) for order, groups in outcomes.items() if not groups]
        return Judgement(verdict="inconclusive", reason=f"no trial came back for {', '.join(missing) or 'any order'}")
    seen = {group for groups in outcomes.values() for group in groups}
    if len(seen) == 1:
        if seen <= failed:
            return Judgement(verdict="fails-everywhere", reason="every trial fails alike: the workload, not the order")
        return Judgement(verdict="identical", reason="all trials agree bit for bit")

    stable = all(len(set(groups)) == 1 for groups in outcomes.values())
    test = permutation_p(list((outcomes if tested is None else tested).values()))
    convinced = test.p_value < alpha

    if seen <= failed and not (convinced and stable):
        return Judgement(
            verdict="fails-everywhere",
            reason="every trial fails, though not always alike",
            permutation=test,
            stable=stable,
        )
    if not seen & failed and within_tolerance:
        return Judgement(
            verdict="within-tolerance",
            reason="bits differ, but every output agrees within the tolerance asked for",
            permutation=test,
            stable=stable,
        )
    always = [order for order, groups in outcomes.items() if set(groups) <= failed]
    never = [order for order, groups in outcomes.items() if not set(groups) & failed]
    if always and never and convinced:
        return Judgement(
            verdict="fails-in-some-orders",
            reason=f"{len(always)} of {len(outcomes)} orders always fail, {len(never)} never do",
            permutation=test,
            stable=stable,
        )
    if convinced:
        verdict: Verdict = "order-dependent" if stable else "order-dependent-with-noise"
        reason = (
            "each order is stable over its repeats, and orders disagree"
            if stable
            else "identical runs differ too, but what they give depends on the order beyond that"
        )
        return Judgement(verdict=verdict, reason=reason, permutation=test, stable=stable)
    if not stable and not (always and never):
        return Judgement(
            verdict="noisy",
            reason="identical runs differ, and the order explains nothing beyond that",
            permutation=test,
            stable=False,
            settled=False,
        )
    return Judgement(
        verdict="inconclusive",
        reason=f"orders disagree, but so few repeats could do so by chance (p = {test.p_value:.2g}); raise --repeat",
        permutation=test,
        stable=stable,
        settled=False,
    )

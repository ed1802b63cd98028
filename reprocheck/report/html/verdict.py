"""The top of the page: the verdict in a sentence, what to do about it, and the facts of the study."""

from __future__ import annotations

from typing import Any

from reprocheck.model import Study
from reprocheck.report.evidence import Evidence
from reprocheck.report.planned import planned_rows

__all__ = ["TONES", "sentence", "verdict_view"]

TONES = {
    "identical": "good",
    "within-tolerance": "good",
    "noisy": "warn",
    "inconclusive": "warn",
}
"""Verdict -> how it is coloured; all others are `bad`."""


def sentence(study: Study) -> str:
    """The headline without the verdict it begins with, which stands beside it."""
    return study.headline.removeprefix(f"{study.verdict}: ")


def verdict_view(evidence: Evidence) -> dict[str, Any]:
    """Verdict, sentence, remedy and facts."""
    study = evidence.study
    return {
        "verdict": study.verdict,
        "tone": TONES.get(study.verdict, "bad"),
        "sentence": sentence(study),
        "reason": study.reason if study.reason not in study.headline else "",
        "remedy": study.remedy,
        "facts": _facts(study),
        "notes": [*study.notes, *([evidence.missing] if evidence.missing else [])],
    }


def _facts(study: Study) -> list[tuple[str, str]]:
    noise = study.noise
    runs = f"{noise.trials} runs, {noise.repeats} or more of each order, each in a fresh interpreter"
    facts = [
        ("workload", f"`{study.workload}`"),
        ("subjects", f"{', '.join(f'`{name}`' for name in study.subjects)} (from {study.subjects_from})"),
        ("orders", study.plan),
        *planned_rows(study),
        ("runs", runs),
    ]
    if noise.p_value is not None:
        facts.append(("is it the order?", _test(study)))
    if noise.bound is not None:
        facts.append(("bound", f"fewer than {100 * noise.bound:.0f} % of runs differ (95 % confidence)"))
    if noise.observer != "not run":
        facts.append(("observer", _OBSERVER.get(noise.observer, noise.observer)))
    if study.started:
        facts.append(("when", f"{study.started.replace('T', ' ')}, took {study.seconds:,.0f} s"))
    return facts


def _test(study: Study) -> str:
    noise = study.noise
    stable = "each order is stable over its repeats" if noise.stable else "identical runs differ too"
    return f"p = {noise.p_value:.2g} ({noise.method} permutation test); {stable}"


_OBSERVER = {
    "agrees": "a run without any capture gives the same bits",
    "differs": "capturing state changes the outputs; the verdict stands on the runs without capture",
    "unclear": "runs with and without capture differ, too few to tell",
}

"""The first line of every report: a study in one sentence that makes sense alone."""

from __future__ import annotations

from reprocheck.model import Arm, Coverage, DifferingTest, Factors, Study, Suite
from reprocheck.words import counted, differ

__all__ = ["coverage_text", "headline", "order_text", "outcomes_text"]


def order_text(order: tuple[str, ...]) -> str:
    """An order as people write it: `mkl,torch`."""
    return ",".join(order) if order else "(no subject)"


def coverage_text(found: Coverage) -> str:
    """The four kinds of coverage: `12 of 12 ordered pairs, 24 of 24 ordered triples, …`; what cannot be is left out."""
    kinds = (
        (found.pairs, "ordered pairs"),
        (found.triples, "ordered triples"),
        (found.firsts, "first positions"),
        (found.adjacencies, "adjacencies"),
    )
    return (
        ", ".join(f"{share.covered:,} of {share.total:,} {name}" for share, name in kinds if share.total) or "nothing"
    )


def headline(study: Study) -> str:
    """One line: verdict, what differs between which orders, and how sure that is."""
    if study.factors is not None:
        return f"{study.verdict}: {study.factors.sentence}; {_level(study, study.factors)}"
    return f"{study.verdict}: {_telling(study)}"


def _level(study: Study, factors: Factors) -> str:
    """What is told of one level, or of all of them where they are alike."""
    verdicts = {level.verdict for level in factors.levels}
    if verdicts != {"identical"}:
        return f"under {factors.levels[factors.told].text} {_telling(study)}"
    runs = sum(level.noise.trials for level in factors.levels)
    outputs = counted(len(study.outputs), "output")
    orders = counted(sum(not arm.presence and arm.same_as is None for arm in study.orders), "order")
    return f"{outputs} equal bit for bit in {orders} under each of {len(factors.levels)} levels ({runs} runs)"


def _telling(study: Study) -> str:
    arms = [arm for arm in study.orders if not arm.presence and arm.same_as is None]
    if study.suite is not None and not any(arm.failures for arm in arms):
        return _suite(study, study.suite, arms)
    telling = {
        "identical": _identical,
        "within-tolerance": _within_tolerance,
        "fails-everywhere": _fails_everywhere,
        "fails-in-some-orders": _fails_in_some_orders,
        "inconclusive": lambda study, _arms: study.reason,
        "noisy": _noisy,
    }.get(study.verdict, _order_dependent)
    text: str = telling(study, arms)
    return text


def _identical(study: Study, arms: list[Arm]) -> str:
    noise = study.noise
    text = f"{counted(len(study.outputs), 'output')} equal bit for bit in {counted(len(arms), 'order')}"
    if noise.bound is None:
        return text
    bound = f"{100 * noise.bound:.0f} %"
    return f"{text}; 0 of {noise.trials} runs differed, so under {bound} of runs do (95 % confidence)"


def _within_tolerance(study: Study, arms: list[Arm]) -> str:
    return f"{_differing(study)} in bits, all within the tolerance, over {counted(len(arms), 'order')}"


def _fails_everywhere(study: Study, arms: list[Arm]) -> str:
    where = "every order" if len(arms) > 1 else "the only order"
    return f"{study.groups[0].outcome}, in {where} ({counted(study.noise.trials, 'run')})"


def _fails_in_some_orders(study: Study, arms: list[Arm]) -> str:
    failing = next(arm for arm in arms if arm.failures == arm.trials)
    fine = next(arm for arm in arms if arm.failures == 0)
    outcome = next(group.outcome for group in study.groups if group.id == failing.groups[0])
    return f"`{order_text(failing.order)}`: {outcome}; `{order_text(fine.order)}` does not ({_evidence(study, arms)})"


def _noisy(study: Study, arms: list[Arm]) -> str:
    evidence = _evidence(study, arms)
    return f"{_differing(study)} between identical runs; the order explains nothing beyond that ({evidence})"


def _order_dependent(study: Study, arms: list[Arm]) -> str:
    first = arms[0]
    other = next((arm for arm in arms if arm.group != first.group or arm.groups != first.groups), arms[-1])
    text = f"{_differing(study)} between `{order_text(other.order)}` and `{order_text(first.order)}`"
    how = "; stable within each order" if study.noise.stable else ", beyond the noise between identical runs"
    return f"{text}{how} ({_evidence(study, arms)})"


def _suite(study: Study, suite: Suite, arms: list[Arm]) -> str:
    """Test by test, the worst one named."""
    tests = counted(suite.tests, "test")
    if not suite.differing:
        return f"{tests} with equal outcomes and recorded values in {counted(len(arms), 'order')} ({_runs(arms)})"
    worst = suite.differing[0]
    text = f"{len(suite.differing)} of {tests} differ, as `{worst.test}`: {outcomes_text(worst)}"
    if study.verdict in ("noisy", "inconclusive", "within-tolerance"):
        text += f"; {worst.reason}"
    return f"{text} ({_evidence(study, arms)})"


def outcomes_text(test: DifferingTest) -> str:
    """What a test did in which order: `passed in a,b; failed in b,a`."""
    orders: dict[str, list[str]] = {}
    for order, outcomes in test.orders.items():
        total = sum(outcomes.values())
        told = " or ".join(
            name if count == total else f"{name} ({count} of {total})" for name, count in outcomes.items()
        )
        orders.setdefault(told or "not run", []).append(f"`{order}`")
    if len(orders) > 1:
        return "; ".join(f"{told} in {', '.join(names)}" for told, names in orders.items())
    told = next(iter(orders), "")
    values = ", ".join(test.outputs[:3]) + (", …" if len(test.outputs) > 3 else "")
    return f"{told} in every order, {f'recording another {values}' if values else 'with another text'}"


def _differing(study: Study) -> str:
    differing = sum(1 for output in study.outputs if output.differs)
    if not differing:
        return "outcomes differ"
    return differ(differing, len(study.outputs), "output")


def _evidence(study: Study, arms: list[Arm]) -> str:
    return f"{_runs(arms)}, {_p(study)}"


def _runs(arms: list[Arm]) -> str:
    if len(arms) <= 3:
        return " + ".join(str(arm.trials) for arm in arms) + " runs"
    return f"{sum(arm.trials for arm in arms)} runs of {len(arms)} orders"


def _p(study: Study) -> str:
    p = study.noise.p_value
    if p is None:
        return "no test"
    text = f"p = {p:.1g}" if p >= 1e-4 else f"p = {p:.0e}"
    return text if study.noise.tested is None else f"{text} over {study.noise.tested} of them"

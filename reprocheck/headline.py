"""The first line of every report: a study in one sentence that makes sense alone."""

from __future__ import annotations

from reprocheck.model import Arm, Study

__all__ = ["headline", "order_text"]


def order_text(order: tuple[str, ...]) -> str:
    """An order as people write it: `mkl,torch`."""
    return ",".join(order) if order else "(no subject)"


def headline(study: Study) -> str:
    """One line: verdict, what differs between which orders, and how sure that is."""
    arms = [arm for arm in study.orders if not arm.presence and arm.same_as is None]
    noise = study.noise
    total = len(study.outputs)
    differing = sum(1 for output in study.outputs if output.differs)
    text = f"{study.verdict}: "
    if study.verdict == "identical":
        bound = (
            f"0 of {noise.trials} runs differed, so under {noise.bound:.0%} would at 95 %"
            if noise.bound is not None
            else ""
        )
        return text + f"{_count(total, 'output')} equal bit for bit in {_count(len(arms), 'order')} ({bound})"
    if study.verdict == "within-tolerance":
        return (
            text
            + f"{differing} of {_count(total, 'output')} differ in bits, all within the tolerance, over {_count(len(arms), 'order')}"
        )
    if study.verdict == "fails-everywhere":
        return (
            text
            + f"{study.groups[0].outcome}, in {'every order' if len(arms) > 1 else 'the only order'} ({_count(noise.trials, 'run')})"
        )
    if study.verdict == "fails-in-some-orders":
        failing = next(arm for arm in arms if arm.failures == arm.trials)
        fine = next(arm for arm in arms if arm.failures == 0)
        outcome = next(group.outcome for group in study.groups if group.id == failing.groups[0])
        return (
            text
            + f"`{order_text(failing.order)}`: {outcome}; `{order_text(fine.order)}` does not ({_runs(arms)}, {_p(study)})"
        )
    if study.verdict == "inconclusive":
        return text + study.reason
    what = f"{differing} of {_count(total, 'output')} differ" if differing else "outcomes differ"
    if study.verdict == "noisy":
        return (
            text + f"{what} between identical runs; the order explains nothing beyond that ({_runs(arms)}, {_p(study)})"
        )
    first = arms[0]
    other = next((arm for arm in arms if arm.group != first.group or arm.groups != first.groups), arms[-1])
    where = f"{what} between `{order_text(other.order)}` and `{order_text(first.order)}`"
    if study.verdict == "order-dependent":
        return text + f"{where}; stable within each order ({_runs(arms)}, {_p(study)})"
    return text + f"{where}, beyond the noise between identical runs ({_runs(arms)}, {_p(study)})"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _runs(arms: list[Arm]) -> str:
    if len(arms) <= 3:
        return " + ".join(str(arm.trials) for arm in arms) + " runs"
    return f"{sum(arm.trials for arm in arms)} runs of {len(arms)} orders"


def _p(study: Study) -> str:
    p = study.noise.p_value
    if p is None:
        return "no test"
    return f"p = {p:.1g}" if p >= 1e-4 else f"p = {p:.0e}"

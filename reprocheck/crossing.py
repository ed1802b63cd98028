"""The line, crossed with settings that are varied too: it is run within each level, then the levels are compared.

Within a level everything but the order is equal, so noise and the order's test never mix levels. Between levels only
trials of one order are compared, so a setting that moves bits is a factor of its own and no order dependence.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

import msgspec

from reprocheck.compare.factors import (
    Effect,
    effects,
    level_text,
    matters,
    order_p,
    order_sentence,
    repeats_for,
    sentences,
    told_level,
)
from reprocheck.compare.groups import Grouping, group_records, select_outputs
from reprocheck.compare.outputs import compare_groups, rank
from reprocheck.compare.verdict import ALPHA, EXIT_CODES
from reprocheck.engine.runner import Runner
from reprocheck.headline import headline
from reprocheck.line import Judged, Request, judged, retold, run
from reprocheck.model import (
    Factor,
    Factors,
    Group,
    Level,
    Output,
    OutputDifference,
    Record,
    Setting,
    Study,
    Tolerance,
    Trial,
    Varied,
)
from reprocheck.plan.rounds import distinct_orders, first_pass, repeats
from reprocheck.plan.varied import levels_of
from reprocheck.store.objects import ObjectStore
from reprocheck.store.run import Run

__all__ = ["run_crossed", "under_tolerance"]

Order = tuple[str, ...]
ToleranceFor = Callable[[str], Tolerance]


def run_crossed(request: Request, runner: Runner, tolerance_for: ToleranceFor) -> Study:
    """The study of `request` with its varied settings; `line.run` where there are none. Raises as that.

    What it tells in detail is one level's, the one where the order matters most; `Study.factors` has all of them.
    """
    levels = levels_of(request.varied)
    if not levels:
        return run(request, runner, tolerance_for)
    # The chance that some level's order, or some setting, is named by luck stays what it is for one question.
    shared = msgspec.structs.replace(request, alpha=ALPHA / len(levels), blame=False)
    begin = time.monotonic()
    _ahead(request, levels, runner)
    at_least, bare = 0, False
    while True:
        found = [judged(shared, runner.at(level), tolerance_for, at_least=at_least, bare=bare) for level in levels]
        if not bare and any(one.study.noise.observer == "differs" for one in found):
            # Levels are compared by runs of one kind.
            bare = True
            continue
        outcomes = [_distinct(one.study) for one in _lettered(found, 0, request.outputs)[0]]
        wanted = _wanted(request, levels, outcomes)
        have = min(len(groups) for level in outcomes for groups in level.values())
        if wanted <= max(have, at_least):
            break
        runner.progress.note(
            f"levels disagree: {wanted - have} more runs of each order and level, to tell it from chance"
        )
        at_least = wanted
    told = _told(found)
    # Once more, from the journal, with the search for the code behind the state that differs.
    again = msgspec.structs.replace(shared, blame=request.blame)
    found[told] = judged(again, runner.at(levels[told]), tolerance_for, at_least=at_least, bare=bare)
    study = found[told].study
    factors = _factors(request.varied, request.outputs, levels, found, told, runner.writer.objects, tolerance_for)
    study = msgspec.structs.replace(study, factors=factors, seconds=round(time.monotonic() - begin, 3))
    return msgspec.structs.replace(study, headline=headline(study))


def under_tolerance(run: Run, tolerance_for: ToleranceFor) -> Study:
    """A stored study as it would be under another tolerance, all of its levels included; nothing is run."""
    study = run.study()
    factors = study.factors
    if factors is None:
        return retold(study, run.records({}), run.objects, tolerance_for).study
    levels = [level.setting for level in factors.levels]
    found = [
        retold(
            msgspec.structs.replace(
                study,
                verdict=level.verdict,
                exit_code=EXIT_CODES[level.verdict],
                orders=level.orders,
                reason=level.reason,
                noise=level.noise,
                factors=None,
            ),
            run.records(level.setting),
            run.objects,
            tolerance_for,
        )
        for level in factors.levels
    ]
    told = _told(found)
    changed = found[told].study
    if told == factors.told:
        # The orders and groups of its level, lettered as they are there, and what was explained of it.
        changed = msgspec.structs.replace(changed, orders=study.orders)
    else:
        changed = msgspec.structs.replace(changed, **{name: _UNTOLD[name] for name in _UNTOLD})
    varied = [Varied(name=f.name, variable=f.variable, values=f.values) for f in factors.factors]
    again = _factors(varied, study.selected, levels, found, told, run.objects, tolerance_for)
    changed = msgspec.structs.replace(changed, factors=again)
    return msgspec.structs.replace(changed, headline=headline(changed))


_UNTOLD = {
    field.name: field.default
    for field in msgspec.structs.fields(Study)
    if field.name
    in (
        *("state_differences", "hazards", "first_line", "origin", "inherited", "unaligned", "kernels", "traced"),
        *("rule", "causes", "consequences", "remedy", "reproducer", "budget", "suite"),
    )
}
"""What a study says of one level only, as it is before anything was found out."""


def _ahead(request: Request, levels: Sequence[Setting], runner: Runner) -> None:
    """Run what every level needs anyway, the levels taking turns: what changes with time then hits all alike."""
    runner.ahead([(level, trial) for trial in first_pass(request.orders) for level in levels])
    planned = max(request.repeat, 2) if request.observer else request.repeat
    todo: list[tuple[int, Setting, Trial]] = []
    for level in levels:
        stands = distinct_orders(runner.at(level).run(first_pass(request.orders)))
        orders = [order for order in request.orders if stands[order] == order]
        todo += [(t.repeat, level, t) for t in repeats(orders, 1, planned, planned, observer=request.observer)]
    runner.ahead([(level, trial) for _, level, trial in sorted(todo, key=lambda item: item[0])])


def _wanted(request: Request, levels: Sequence[Setting], outcomes: Sequence[Mapping[Order, Sequence[str]]]) -> int:
    """So many trials of each order and level would settle what the settings do; 0 when it is settled."""
    alpha = ALPHA / len(request.varied)
    unsettled = [one for one in effects(request.varied, levels, outcomes, alpha=alpha) if one.differs is None]
    return max((repeats_for(outcomes, e, levels, most=request.max_repeat, alpha=alpha) for e in unsettled), default=0)


def _told(found: Sequence[Judged]) -> int:
    return told_level([one.study.verdict for one in found], [one.study.exit_code for one in found])


def _distinct(study: Study) -> dict[Order, tuple[str, ...]]:
    """Outcomes of the orders that were run."""
    return {arm.order: arm.groups for arm in study.orders if not arm.presence and arm.same_as is None}


def _lettered(
    found: Sequence[Judged], told: int, patterns: Sequence[str]
) -> tuple[list[Judged], Grouping, list[Record]]:
    """The levels' studies with groups lettered over all of them, those of the told one as they are there."""
    sequence = [told, *(at for at in range(len(found)) if at != told)]
    records = [record for at in sequence for record in found[at].counted]
    grouping = group_records(records, patterns)
    done = list(found)
    start = 0
    for at in sequence:
        one = found[at]
        letters = dict(zip(one.ids, grouping.ids[start : start + len(one.counted)], strict=True))
        start += len(one.counted)
        arms = tuple(
            msgspec.structs.replace(
                arm, group=letters.get(arm.group or ""), groups=tuple(letters[group] for group in arm.groups)
            )
            for arm in one.study.orders
            if not arm.presence
        )
        done[at] = msgspec.structs.replace(one, study=msgspec.structs.replace(one.study, orders=arms))
    return done, grouping, records


def _factors(
    varied: Sequence[Varied],
    patterns: Sequence[str],
    levels: Sequence[Setting],
    found: Sequence[Judged],
    told: int,
    objects: ObjectStore,
    tolerance_for: ToleranceFor,
) -> Factors:
    done, grouping, records = _lettered(found, told, patterns)
    outcomes = [_distinct(one.study) for one in done]
    by_group = {
        group.id: {o.name: o for o in select_outputs(records[grouping.examples[group.id]], patterns)}
        for group in grouping.groups
        if group.failure is None
    }
    _, groups = compare_groups(grouping.groups, by_group, grouping.reference(), objects, tolerance_for)
    acts = effects(varied, levels, outcomes, alpha=ALPHA / len(varied))
    factors = []
    for effect in acts:
        pairs = _pairs(effect, levels, outcomes)
        rows = _rows(pairs, groups, by_group, objects, tolerance_for)
        failing = bool(pairs) and all(b in grouping.failed and a not in grouping.failed for a, b in pairs)
        factors.append(_factor(effect, rows, max(map(len, by_group.values()), default=0), failing=failing))
    answers = [matters(one.study.verdict) for one in done]
    test = order_p(outcomes)
    parts = [order_sentence(varied, levels, answers), *(factor.sentence for factor in factors)]
    if not any(answers) and any(factor.differs for factor in factors):
        parts = [*parts[1:], parts[0]]
    return Factors(
        factors=tuple(factors),
        levels=tuple(
            Level(
                setting=level,
                text=level_text(varied, level),
                verdict=one.study.verdict,
                reason=one.study.reason,
                order_matters=answer,
                orders=one.study.orders,
                noise=one.study.noise,
            )
            for level, one, answer in zip(levels, done, answers, strict=True)
        ),
        told=told,
        groups=groups,
        p_value=test.p_value if test is not None else None,
        method=test.method if test is not None else "exact",
        sentence="; ".join(parts),
    )


def _factor(effect: Effect, rows: tuple[OutputDifference, ...], outputs: int, *, failing: bool) -> Factor:
    item = effect.varied
    within = bool(rows) and all(row.within for row in rows)
    return Factor(
        name=item.name,
        variable=item.variable,
        values=item.values,
        differs=effect.differs,
        p_value=effect.test.p_value if effect.test is not None else None,
        method=effect.test.method if effect.test is not None else "exact",
        changing=effect.changing,
        orders=tuple(dict.fromkeys(cell.order for cell in effect.touched)),
        outputs=rows,
        sentence=sentences(effect, outputs=(len(rows), outputs), failing=failing)
        + (", all within the tolerance" if within else ""),
    )


def _rows(
    pairs: Sequence[tuple[str, str]],
    groups: Sequence[Group],
    by_group: Mapping[str, Mapping[str, Output]],
    objects: ObjectStore,
    tolerance_for: ToleranceFor,
) -> tuple[OutputDifference, ...]:
    """The outputs that differ in any of the pairs, each at its largest difference."""
    worst: dict[str, OutputDifference] = {}
    for first in dict.fromkeys(first for first, _ in pairs if first in by_group):
        beside = {other for one, other in pairs if one == first}
        opposed = tuple(group for group in groups if group.id in beside)
        rows, _ = compare_groups(
            opposed, {k: v for k, v in by_group.items() if k in {first, *beside}}, first, objects, tolerance_for
        )
        for row in rows:
            known = worst.get(row.name)
            if row.detail is not None and (
                known is None or known.detail is None or rank(row.detail) > rank(known.detail)
            ):
                worst[row.name] = row
    return tuple(worst.values())


def _pairs(
    effect: Effect, levels: Sequence[Setting], outcomes: Sequence[Mapping[Order, Sequence[str]]]
) -> list[tuple[str, str]]:
    """Groups that stand against each other where the setting changes outcomes: under its first value, and another."""
    item = effect.varied
    found: dict[tuple[str, str], None] = {}
    for cell in effect.touched:
        runs = {
            value: outcomes[levels.index({**cell.others, item.variable: value})][cell.order]
            for value in (item.values[0], *cell.changing)
        }
        for value in cell.changing:
            found |= {(a, b): None for a in set(runs[item.values[0]]) for b in set(runs[value]) if a != b}
    return list(found)

"""The straight line: workload and orders → trials → records → groups → verdict.

`run` is the whole of it. The command, the pytest plugin, `check` and `bisect` call it; none copies it. Which trials
run next is decided in `stages`. Where settings are varied too, it is run for each of their levels (`crossing.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import msgspec

from reprocheck.compare.folders import folder_notes
from reprocheck.compare.groups import Grouping, group_records, left_out
from reprocheck.compare.looks import FULL
from reprocheck.compare.machines import machine_notes
from reprocheck.compare.noise import rule_of_three
from reprocheck.compare.outputs import compare_groups
from reprocheck.compare.verdict import EXIT_CODES, judge
from reprocheck.engine.runner import Runner
from reprocheck.errors import EXIT_DIVERGENCE
from reprocheck.explain.attribute import attribute
from reprocheck.explain.state import state_differences
from reprocheck.headline import headline
from reprocheck.model import Arm, Covered, Noise, NotRun, Record, Struct, Study, Tolerance
from reprocheck.plan.coverage import achieved
from reprocheck.plan.rounds import first_pass, presence_pass
from reprocheck.stages.bad_input import refuse_bad_input
from reprocheck.stages.bench import Bench, View
from reprocheck.stages.early import fail_fast
from reprocheck.stages.full import full_plan, without_capture
from reprocheck.stages.reduction import Reduced, reduce_by_trace
from reprocheck.stages.request import Order, Request
from reprocheck.store.objects import ObjectStore

__all__ = ["Judged", "Request", "judged", "retold", "run"]


class Judged(Struct, frozen=True, kw_only=True):
    """A study, and the trials it stands on."""

    study: Study
    counted: tuple[Record, ...]
    """The records that count for the verdict, those of the reference order first."""
    ids: tuple[str, ...]
    """The group of each."""


def run(request: Request, runner: Runner, tolerance_for: Callable[[str], Tolerance]) -> Study:
    """Run the trials and return the study; every record is stored when this returns or raises.

    Raises `UsageError` for a question that can't be asked (unknown function, subject not installed, nothing
    recorded, unsupported output) and `HarnessError` when the instrument fails.
    """
    return judged(request, runner, tolerance_for).study


def judged(
    request: Request,
    runner: Runner,
    tolerance_for: Callable[[str], Tolerance],
    *,
    at_least: int = 0,
    bare: bool = False,
) -> Judged:
    """As `run`, with the trials that count; each order gets `at_least` so many. `bare`: only those without capture."""
    begin, started = time.monotonic(), time.strftime("%Y-%m-%dT%H:%M:%S%z")
    bench = Bench(request, runner, tolerance_for)
    reduced = reduce_by_trace(bench) if request.reduce == "trace" else None
    result = _staged(bench, reduced, at_least=at_least, bare=bare)
    if reduced is not None and not reduced.abandoned and not reduced.holds():
        # Agreement of the first trials was not the last word: what was left out is run after all.
        result = _staged(bench, reduced, at_least=at_least, bare=bare)
    study = _study(bench, result, reduced, begin, started)
    return Judged(study=study, counted=result.view.counted, ids=result.view.grouping.ids)


class _Result(Struct, frozen=True, kw_only=True):
    """Where the stages ended."""

    view: View
    orders: tuple[Order, ...]
    """Orders with trials, those that load alike once."""
    not_run: NotRun | None = None


def _staged(bench: Bench, reduced: Reduced | None, *, at_least: int, bare: bool) -> _Result:
    """The verdict of the orders that are to be run, by the early way if that was asked for."""
    request = bench.request
    orders = request.orders if reduced is None else reduced.orders
    if request.fail_fast:
        stop = fail_fast(bench, orders)
        if stop is not None:
            return _Result(view=stop.view, orders=stop.orders, not_run=stop.not_run)
    bench.more(first_pass(orders))
    refuse_bad_input(request, bench.records)
    if reduced is not None and not reduced.holds():
        orders = reduced.orders
        bench.more(first_pass(orders))
    stands = bench.stands()
    distinct = tuple(order for order in orders if stands[order] == order)
    if request.presence:
        bench.more(presence_pass(request.subjects, min(2, request.repeat)))
    alpha = FULL * request.alpha if request.fail_fast else request.alpha
    view = full_plan(bench, distinct, alpha, at_least=at_least)
    disturbs = bench.observer(distinct) == "differs"
    if disturbs:
        bench.runner.progress.note("capturing state changes the outputs: judging by the runs without capture")
    if disturbs or bare:
        view = without_capture(bench, distinct, at_least=at_least)
    return _Result(view=view, orders=distinct)


def retold(
    study: Study, records: Sequence[Record], objects: ObjectStore, tolerance_for: Callable[[str], Tolerance]
) -> Judged:
    """A stored study (of one level) as it would be under another tolerance, from its records; nothing is run.

    Groups stay what they are, so only outputs, the verdict and the headline can change.
    """
    names = {output.name for output in study.outputs}
    bare_only = study.noise.observer == "differs"
    order_of = {arm.order: arm.same_as or arm.order for arm in study.orders if not arm.presence}
    counted = [
        msgspec.structs.replace(record, outputs=tuple(output for output in record.outputs if output.name in names))
        for record in records
        if record.trial.judged and record.trial.order in order_of
        if not (bare_only and record.trial.capture)
    ]
    counted.sort(key=lambda record: list(order_of).index(record.trial.order))
    grouping = group_records(counted)
    told = Judged(study=study, counted=tuple(counted), ids=grouping.ids)
    if study.verdict == "identical" or grouping.failed:
        return told
    by_group = {
        group.id: {output.name: output for output in counted[grouping.examples[group.id]].outputs}
        for group in grouping.groups
    }
    outputs, groups = compare_groups(grouping.groups, by_group, grouping.reference(), objects, tolerance_for)
    outcomes: dict[Order, list[str]] = {}
    for group, record in zip(grouping.ids, counted, strict=True):
        outcomes.setdefault(order_of[record.trial.order], []).append(group)
    within = {group.id: group.within_tolerance for group in groups}
    changed = msgspec.structs.replace(
        study,
        outputs=outputs,
        groups=tuple(msgspec.structs.replace(old, within_tolerance=within[old.id]) for old in study.groups),
    )
    if all(within.values()) or study.verdict == "within-tolerance":
        # What its own looks decided stands; only here is there something new to decide.
        judgement = judge(outcomes, frozenset(), within_tolerance=all(within.values()))
        changed = msgspec.structs.replace(
            changed,
            verdict=judgement.verdict,
            exit_code=EXIT_CODES[judgement.verdict],
            reason=judgement.reason,
        )
    return msgspec.structs.replace(told, study=msgspec.structs.replace(changed, headline=headline(changed)))


def _study(bench: Bench, result: _Result, reduced: Reduced | None, begin: float, started: str) -> Study:
    request, runner, records, view = bench.request, bench.runner, bench.records, result.view
    judgement, grouping = view.judgement, view.grouping
    arms = _arms(bench, result, reduced)
    presence = _presence(request, records, grouping, view)
    captured: dict[str, list[Record]] = {}
    for group, record in zip(grouping.ids, view.counted, strict=True):
        if record.trial.capture and record.ok:
            captured.setdefault(group, []).append(record)
    same_outputs = judgement.verdict in ("identical", "within-tolerance")
    by_order: dict[str, list[Record]] = {}
    for record in view.counted:
        if record.trial.capture and record.ok:
            by_order.setdefault(",".join(record.trial.order), []).append(record)
    differing = () if same_outputs else state_differences(captured)
    hazards = state_differences(by_order) if same_outputs else ()
    if request.blame:
        differing = attribute(differing, captured, runner)
        hazards = attribute(hazards, by_order, runner)
    counts = [len(groups) for groups in view.outcomes.values()]
    trials = sum(counts)
    noise = Noise(
        p_value=judgement.permutation.p_value if judgement.permutation else None,
        alpha=view.alpha if judgement.permutation else None,
        tested=view.tested if judgement.permutation else None,
        method=judgement.permutation.method if judgement.permutation else "exact",
        repeats=min(counts),
        trials=trials,
        bound=rule_of_three(trials) if judgement.verdict == "identical" else None,
        stable=judgement.stable,
        observer=bench.observer(result.orders),
    )
    exit_code = EXIT_CODES[judgement.verdict]
    if exit_code == 0 and any(arm.group not in (None, arms[0].group) for arm in presence):
        exit_code = EXIT_DIVERGENCE
    study = Study(
        reprocheck_version=request.version,
        verdict=judgement.verdict,
        exit_code=exit_code,
        headline="",
        reason=judgement.reason,
        workload=request.target.text,
        target=request.target,
        subjects=request.subjects,
        subjects_from=request.subjects_from,
        orders=(*arms, *presence),
        plan=request.plan,
        coverage=_covered(bench),
        not_run=result.not_run,
        reduction=reduced.told() if reduced is not None else None,
        groups=grouping.groups,
        outputs=view.outputs,
        state_differences=differing,
        hazards=hazards,
        not_compared=left_out(view.counted, request.outputs),
        suite=view.suite,
        noise=noise,
        notes=(
            *request.notes,
            *machine_notes(view.counted, grouping.ids),
            *folder_notes(view.outputs, view.counted, runner.writer.objects),
        ),
        environment=dict(request.environment),
        machines=tuple(dict.fromkeys(record.machine for record in view.counted if record.machine is not None)),
        command=request.command,
        seconds=round(time.monotonic() - begin, 3),
        started=started,
        run_dir=str(runner.writer.final),
    )
    return msgspec.structs.replace(study, headline=headline(study))


def _covered(bench: Bench) -> Covered | None:
    """The plan's promise, and what all trials of the question came to."""
    request = bench.request
    if request.stated is None:
        return None
    records = [record for record in bench.records if record.trial.judged]
    lengths: dict[Order, int] = {}
    for record in records:
        order = record.trial.order
        lengths[order] = max(lengths.get(order, 0), len(record.effective_order))
    return Covered(
        stated=request.stated,
        achieved=achieved(records, request.subjects),
        planned=len(request.orders),
        run=len(set(bench.stands().values())),
        cut_short=tuple(order for order in request.orders if lengths.get(order, len(order)) < len(order)),
    )


def _arms(bench: Bench, result: _Result, reduced: Reduced | None) -> tuple[Arm, ...]:
    """One for every order that was run, or for which another one stands; those that were not reached are left out."""
    view, records = result.view, bench.records
    first: dict[Order, Record] = {}
    for record in records:
        if record.trial.judged or record.trial.imports_only:
            first.setdefault(record.trial.order, record)
    stands = bench.stands()
    arms = []
    for order in bench.request.orders:
        own = order if reduced is None else reduced.stand(order)
        stand = stands.get(own)
        if stand is None or stand not in view.outcomes:
            continue
        groups = view.outcomes[stand]
        arms.append(
            Arm(
                order=order,
                effective_order=first[order].effective_order or order,
                same_as=stand if stand != order else None,
                group=groups[0] if len(set(groups)) == 1 else None,
                groups=groups,
                trials=len(groups),
                failures=sum(1 for group in groups if group in view.grouping.failed),
                preloaded=first[order].preloaded,
                pulled_in=first[order].pulled_in,
            )
        )
    return tuple(arms)


def _presence(request: Request, records: Sequence[Record], grouping: Grouping, view: View) -> tuple[Arm, ...]:
    """Arms with only some of the subjects. Groups they share with an order carry its letter, others `other`."""
    if not request.presence:
        return ()
    present = [record for record in records if record.trial.presence]
    together = group_records([*view.counted, *present], request.outputs)
    letters = dict.fromkeys(together.ids, "other") | dict(zip(together.ids, grouping.ids, strict=False))
    found: dict[Order, list[tuple[Record, str]]] = {}
    for record, group in zip(present, together.ids[len(view.counted) :], strict=True):
        found.setdefault(record.trial.order, []).append((record, group))
    return tuple(
        Arm(
            order=order,
            effective_order=runs[0][0].effective_order,
            group=letters[runs[0][1]] if len({group for _, group in runs}) == 1 else None,
            groups=tuple(letters[group] for _, group in runs),
            trials=len(runs),
            failures=sum(1 for record, _ in runs if not record.ok),
            presence=True,
        )
        for order, runs in found.items()
    )

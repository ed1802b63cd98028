"""The straight line: workload and orders → trials → records → groups → verdict.

`run` is the whole of it. The command, the pytest plugin, `check` and `bisect` call it; none copies it. Where settings
are varied too, it is run for each of their levels (`crossing.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

import msgspec

from reprocheck.compare.groups import Grouping, group_records, left_out, select_outputs
from reprocheck.compare.noise import permutation_p, repeats_needed, rule_of_three
from reprocheck.compare.outputs import compare_groups
from reprocheck.compare.suite import judge_suite
from reprocheck.compare.verdict import ALPHA, EXIT_CODES, Judgement, judge
from reprocheck.engine.runner import Runner
from reprocheck.errors import EXIT_DIVERGENCE, NothingSelectedError, UsageError
from reprocheck.explain.attribute import attribute
from reprocheck.explain.state import state_differences
from reprocheck.headline import headline
from reprocheck.model import (
    Arm,
    Noise,
    OutputDifference,
    Record,
    Struct,
    Study,
    Suite,
    Target,
    Tolerance,
    Trial,
    Varied,
)
from reprocheck.plan.rounds import distinct_orders, first_pass, presence_pass, repeats
from reprocheck.store.objects import ObjectStore
from reprocheck.store.run import RunWriter

__all__ = ["Judged", "Request", "judged", "retold", "run"]

Order = tuple[str, ...]


class Request(Struct, frozen=True, kw_only=True):
    """One question, fully decided: nothing is looked up after this."""

    target: Target
    subjects: Order
    subjects_from: str
    orders: tuple[Order, ...]
    plan: str
    """The plan in words, with its coverage."""
    repeat: int = 3
    max_repeat: int = 10
    presence: bool = False
    observer: bool = True
    outputs: tuple[str, ...] = ()
    dependencies: tuple[str, ...] = ()
    """What the workload's metadata says must be installed."""
    environment: dict[str, object] = {}
    command: tuple[str, ...] = ()
    version: str = ""
    notes: tuple[str, ...] = ()
    blame: bool = True
    """Find the code behind state that differs and that no event explains (a few import-only trials)."""
    varied: tuple[Varied, ...] = ()
    """Settings that are varied too, each over all of its values."""
    alpha: float = ALPHA
    """Below this, a p-value convinces. A share of it where several studies answer one question."""


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
    records: list[Record] = []

    def more(trials: Sequence[Trial]) -> None:
        records.extend(runner.run(trials))

    more(first_pass(request.orders))
    _refuse_bad_input(request, records)
    stands = distinct_orders(records)
    orders = tuple(order for order in request.orders if stands[order] == order)
    if request.presence:
        more(presence_pass(request.subjects, min(2, request.repeat)))
    planned = request.repeat
    if request.observer and planned == 1:
        planned = 2
    more(repeats(orders, 1, planned, planned, observer=request.observer))

    view = _view(request, records, orders, runner.writer, tolerance_for)
    done = planned
    while done < request.max_repeat:
        settled = view.judgement.settled and _observer(records, orders, request) != "unclear"
        if settled and done >= at_least:
            break
        # Stable: jump to where the test can be convinced. Unstable: all that is allowed, once.
        enough = done + 1
        if not settled:
            enough = repeats_needed(len(orders), request.alpha) if view.judgement.stable else request.max_repeat
        goal = min(request.max_repeat, max(enough, done + 1, at_least))
        again = repeats(orders, done, goal, planned, observer=request.observer)
        if not settled and any(runner.done(trial) is None for trial in again):
            why = view.judgement.reason.partition(";")[0]
            runner.progress.note(f"{why}: repeating each order {goal - done} more times")
        more(again)
        done = goal
        view = _view(request, records, orders, runner.writer, tolerance_for)

    observer = _observer(records, orders, request)
    if observer == "differs":
        runner.progress.note("capturing state changes the outputs: judging by the runs without capture")
    if observer == "differs" or bare:
        enough = max(repeats_needed(len(orders), request.alpha), request.repeat)
        have = min(_count(records, order, capture=False) for order in orders)
        extra = [Trial(order=order, repeat=done + n, capture=False) for n in range(enough - have) for order in orders]
        more(extra)
        view = _view(request, records, orders, runner.writer, tolerance_for, bare_only=True)

    study = _study(request, records, view, stands, observer, runner, begin, started)
    return Judged(study=study, counted=view.counted, ids=view.grouping.ids)


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
        if record.trial == Trial(order=record.trial.order, repeat=record.trial.repeat, capture=record.trial.capture)
        if record.trial.order in order_of
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
    judgement = judge(outcomes, frozenset(), within_tolerance=all(group.within_tolerance for group in groups))
    changed = msgspec.structs.replace(
        study,
        verdict=judgement.verdict,
        exit_code=EXIT_CODES[judgement.verdict],
        reason=judgement.reason,
        outputs=outputs,
        groups=groups,
    )
    return msgspec.structs.replace(told, study=msgspec.structs.replace(changed, headline=headline(changed)))


def _refuse_bad_input(request: Request, records: Sequence[Record]) -> None:
    """Raise the one sentence for a question that cannot be asked, as far as the first pass shows it."""
    failures = [record.failure for record in records]
    for failure in failures:
        if failure is not None and failure.kind in ("target", "unsupported"):
            raise UsageError(failure.message)
        if failure is not None and failure.kind == "nothing":
            raise NothingSelectedError(failure.message)
    if all(failure is not None and failure.missing_module for failure in failures):
        for failure in failures:
            assert failure is not None  # noqa: S101 - by the line above
            missing = failure.missing_module or ""
            wanted = failure.subject is not None and (failure.subject + ".").startswith(missing + ".")
            if wanted or failure.subject is None:
                what = "subject" if wanted else "module"
                install = " ".join(request.dependencies) or missing
                python = request.environment.get("python", "python")
                raise UsageError(
                    f"{what} `{failure.subject if wanted else missing}` isn't installed for `{python}`; "
                    f"install it, e.g. `{python} -m pip install {install}`, or choose another interpreter with --python"
                )
    if not any(failures) and not any(record.outputs for record in records):
        raise UsageError(
            f"`{request.target.text}` recorded nothing to compare; return a value, "
            "call `reprocheck.record(name, value)`, or, in a script, leave arrays or numbers in its globals"
        )


class _View(Struct, frozen=True, kw_only=True):
    """What the records say at one moment."""

    counted: tuple[Record, ...]
    grouping: Grouping
    outcomes: dict[Order, tuple[str, ...]]
    outputs: tuple[OutputDifference, ...]
    judgement: Judgement
    suite: Suite | None = None


def _view(
    request: Request,
    records: Sequence[Record],
    orders: Sequence[Order],
    writer: RunWriter,
    tolerance_for: Callable[[str], Tolerance],
    *,
    bare_only: bool = False,
) -> _View:
    counted = [record for record in records if not record.trial.presence and record.trial.trace is None]
    if bare_only:
        counted = [record for record in counted if not record.trial.capture]
    # The reference order's trials first, so that its group is A.
    counted.sort(key=lambda record: orders.index(record.trial.order) if record.trial.order in orders else len(orders))
    grouping = group_records(counted, request.outputs)
    outcomes = {
        order: tuple(g for g, r in zip(grouping.ids, counted, strict=True) if r.trial.order == order)
        for order in orders
    }
    by_group = {
        group.id: {o.name: o for o in select_outputs(counted[grouping.examples[group.id]], request.outputs)}
        for group in grouping.groups
        if group.failure is None
    }
    differences, groups = compare_groups(grouping.groups, by_group, grouping.reference(), writer.objects, tolerance_for)
    grouping = msgspec.structs.replace(grouping, groups=groups)
    within = all(group.within_tolerance for group in groups)
    suite = None
    if request.target.suite:
        runs = {order: [record for record in counted if record.trial.order == order] for order in orders}
        judged = judge_suite(runs, differences, writer.objects, request.outputs, request.alpha)
        judgement, suite = judged.judgement, judged.suite
    else:
        judgement = judge(outcomes, grouping.failed, within_tolerance=within, alpha=request.alpha)
    return _View(
        counted=tuple(counted),
        grouping=grouping,
        outcomes=outcomes,
        outputs=differences,
        judgement=judgement,
        suite=suite,
    )


def _count(records: Sequence[Record], order: Order, *, capture: bool) -> int:
    return sum(1 for r in records if r.trial.order == order and r.trial.capture is capture and not r.trial.presence)


def _observer(records: Sequence[Record], orders: Sequence[Order], request: Request) -> str:
    """Whether capture itself changes outcomes: in each order, captured against bare trials, by the same exact test.

    `unclear` when the two arms of some order share no outcome, though each has but one, and their number proves
    nothing yet.
    """
    if not request.observer:
        return "not run"
    found = "agrees"
    counted = [record for record in records if not record.trial.presence]
    grouping = group_records(counted, request.outputs)
    for order in orders:
        captured, bare = (
            [
                g
                for g, r in zip(grouping.ids, counted, strict=True)
                if r.trial.order == order and r.trial.capture is capture
            ]
            for capture in (True, False)
        )
        if len(set(captured)) == 1 == len(set(bare)) and captured[0] != bare[0]:
            if permutation_p([captured, bare]).p_value < request.alpha:
                return "differs"
            found = "unclear"
    return found


def _study(
    request: Request,
    records: Sequence[Record],
    view: _View,
    stands: Mapping[Order, Order],
    observer: str,
    runner: Runner,
    begin: float,
    started: str,
) -> Study:
    judgement, grouping = view.judgement, view.grouping
    arms = _arms(request, view, stands, records)
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
        method=judgement.permutation.method if judgement.permutation else "exact",
        repeats=min(counts),
        trials=trials,
        bound=rule_of_three(trials) if judgement.verdict == "identical" else None,
        stable=judgement.stable,
        observer=observer,
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
        groups=grouping.groups,
        outputs=view.outputs,
        state_differences=differing,
        hazards=hazards,
        not_compared=left_out(view.counted, request.outputs),
        suite=view.suite,
        noise=noise,
        notes=request.notes,
        environment=dict(request.environment),
        command=request.command,
        seconds=round(time.monotonic() - begin, 3),
        started=started,
        run_dir=str(runner.writer.final),
    )
    return msgspec.structs.replace(study, headline=headline(study))


def _arms(request: Request, view: _View, stands: Mapping[Order, Order], records: Sequence[Record]) -> tuple[Arm, ...]:
    first: dict[Order, Record] = {}
    for record in records:
        if not record.trial.presence:
            first.setdefault(record.trial.order, record)
    arms = []
    for order in request.orders:
        stand = stands[order]
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


def _presence(request: Request, records: Sequence[Record], grouping: Grouping, view: _View) -> tuple[Arm, ...]:
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

"""The straight line: workload and orders → trials → records → groups → verdict.

`run` is the whole of it. The command, the pytest plugin, `check` and `bisect` call it; none copies it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from reprocheck.compare.groups import Grouping, group_records, left_out, select_outputs
from reprocheck.compare.noise import permutation_p, repeats_needed, rule_of_three
from reprocheck.compare.outputs import compare_groups
from reprocheck.compare.verdict import ALPHA, EXIT_CODES, Judgement, judge
from reprocheck.engine.local import LocalEngine
from reprocheck.engine.phases import RawRecord
from reprocheck.errors import EXIT_DIVERGENCE, UsageError
from reprocheck.explain.state import state_differences
from reprocheck.headline import headline
from reprocheck.model import Arm, Noise, Output, OutputDifference, Record, Struct, Study, Target, Tolerance, Trial
from reprocheck.plan.rounds import distinct_orders, first_pass, presence_pass, repeats
from reprocheck.store.objects import TRACE
from reprocheck.store.run import RunWriter, storage_errors

__all__ = ["Progress", "Request", "Silent", "execute", "run"]

Order = tuple[str, ...]


class Request(Struct, kw_only=True):
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


class Progress(Protocol):
    """What a front end is told while trials run."""

    def expect(self, trials: int) -> None:
        """So many trials more are planned."""

    def ended(self, record: Record) -> None:
        """A trial ended (or was found in the journal)."""

    def note(self, text: str) -> None:
        """Something worth a line."""


class Silent:
    """Progress for callers that show none."""

    def expect(self, trials: int) -> None:
        """Say nothing."""

    def ended(self, record: Record) -> None:
        """Say nothing."""

    def note(self, text: str) -> None:
        """Say nothing."""


def run(
    request: Request,
    writer: RunWriter,
    engine: LocalEngine,
    tolerance_for: Callable[[str], Tolerance],
    progress: Progress | None = None,
) -> Study:
    """Run the trials and return the study; every record is in `writer` when this returns or raises.

    Raises `UsageError` for a question that can't be asked (unknown function, subject not installed, nothing
    recorded, unsupported output) and `HarnessError` when the instrument fails.
    """
    progress = progress or Silent()
    begin, started = time.monotonic(), time.strftime("%Y-%m-%dT%H:%M:%S%z")
    records: list[Record] = []

    def more(trials: Sequence[Trial]) -> None:
        records.extend(execute(trials, writer, engine, progress))

    more(first_pass(request.orders))
    _refuse_bad_input(request, records)
    stands = distinct_orders(records)
    orders = tuple(order for order in request.orders if stands[order] == order)
    if request.presence:
        more(presence_pass(request.subjects, 1))
    planned = request.repeat
    if request.observer and planned == 1:
        planned = 2
    more(repeats(orders, 1, planned, planned, observer=request.observer))

    view = _view(request, records, orders, writer, tolerance_for)
    done = planned
    while not view.judgement.settled and done < request.max_repeat:
        # Stable: jump to where the test can be convinced. Unstable: all that is allowed, once.
        enough = repeats_needed(len(orders), ALPHA) if view.judgement.stable else request.max_repeat
        goal = min(request.max_repeat, max(enough, done + 1))
        progress.note(f"{view.judgement.reason.partition(';')[0]}: repeating each order {goal - done} more times")
        more(repeats(orders, done, goal, planned, observer=request.observer))
        done = goal
        view = _view(request, records, orders, writer, tolerance_for)

    observer = _observer(records, orders, request)
    if observer == "differs":
        progress.note("capturing state changes the outputs: judging by the runs without capture")
        bare = max(repeats_needed(len(orders), ALPHA), request.repeat)
        have = min(_count(records, order, capture=False) for order in orders)
        extra = [Trial(order=order, repeat=done + n, capture=False) for n in range(bare - have) for order in orders]
        more(extra)
        view = _view(request, records, orders, writer, tolerance_for, bare_only=True)

    return _study(request, records, view, stands, observer, writer, begin, started)


def execute(
    trials: Sequence[Trial], writer: RunWriter, engine: LocalEngine, progress: Progress
) -> list[Record]:
    """Run what the journal does not have yet; records in the order of `trials`."""
    found = {index: writer.done(trial) for index, trial in enumerate(trials)}
    todo = [trial for index, trial in enumerate(trials) if found[index] is None]
    progress.expect(len(trials))
    for record in found.values():
        if record is not None:
            progress.ended(record)

    def keep(raw: RawRecord, folder: Path) -> Record:
        with storage_errors(writer.folder):
            outputs = tuple(
                Output(
                    name=item.name,
                    dtype=item.dtype,
                    shape=item.shape,
                    nbytes=item.nbytes,
                    digest=writer.objects.take(folder / "arrays" / item.file),
                    python=item.python,
                )
                for item in raw.outputs
            )
            trace = folder / "trace.jsonl"
            digest = writer.objects.take(trace, TRACE) if trace.exists() else None
        return msgspec.structs.replace(raw.record, outputs=outputs, trace=digest)

    for record in engine.run(todo, keep):
        writer.add(record)
        progress.ended(record)
    ran = [record if record is not None else writer.done(trials[index]) for index, record in found.items()]
    return [record for record in ran if record is not None]


def _refuse_bad_input(request: Request, records: Sequence[Record]) -> None:
    """Raise the one sentence for a question that cannot be asked, as far as the first pass shows it."""
    failures = [record.failure for record in records]
    for failure in failures:
        if failure is not None and failure.kind in ("target", "unsupported"):
            raise UsageError(failure.message)
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
            f"`{request.target.text}` recorded nothing to compare; return a value, call `reprocheck.record(name, value)`, "
            "or, in a script, leave arrays or numbers in its globals"
        )


class _View(Struct, kw_only=True):
    """What the records say at one moment."""

    counted: tuple[Record, ...]
    grouping: Grouping
    outcomes: dict[Order, tuple[str, ...]]
    outputs: tuple[OutputDifference, ...]
    judgement: Judgement


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
    counted.sort(key=lambda record: (orders.index(record.trial.order) if record.trial.order in orders else len(orders)))
    grouping = group_records(counted, request.outputs)
    outcomes = {
        order: tuple(g for g, r in zip(grouping.ids, counted, strict=True) if r.trial.order == order) for order in orders
    }
    by_group = {
        group.id: {o.name: o for o in select_outputs(counted[grouping.examples[group.id]], request.outputs)}
        for group in grouping.groups
        if group.failure is None
    }
    differences, groups = compare_groups(
        grouping.groups, by_group, grouping.reference(), writer.objects, tolerance_for
    )
    grouping = msgspec.structs.replace(grouping, groups=groups)
    within = all(group.within_tolerance for group in groups)
    judgement = judge(outcomes, grouping.failed, within_tolerance=within)
    return _View(
        counted=tuple(counted), grouping=grouping, outcomes=outcomes, outputs=differences, judgement=judgement
    )


def _count(records: Sequence[Record], order: Order, *, capture: bool) -> int:
    return sum(1 for r in records if r.trial.order == order and r.trial.capture is capture and not r.trial.presence)


def _observer(records: Sequence[Record], orders: Sequence[Order], request: Request) -> str:
    """Whether capture itself changes outcomes: per order, captured against bare trials, by the same exact test.

    With few trials an order can show it only by chance, so all orders' evidence is put together: the arms are
    (order, captured?) pairs, tested within their order.
    """
    if not request.observer:
        return "not run"
    suspicious = False
    grouping = group_records(records, request.outputs)
    for order in orders:
        split: dict[bool, list[str]] = {True: [], False: []}
        for group, record in zip(grouping.ids, records, strict=True):
            if record.trial.order == order and not record.trial.presence:
                split[record.trial.capture].append(group)
        if split[True] and split[False] and not set(split[True]) & set(split[False]):
            stable = len(set(split[True])) == len(set(split[False])) == 1
            if stable and (len(split[True]) + len(split[False]) < 10 or permutation_p([split[True], split[False]]).p_value < ALPHA):
                suspicious = True
    return "differs" if suspicious else "agrees"


def _study(
    request: Request,
    records: Sequence[Record],
    view: _View,
    stands: Mapping[Order, Order],
    observer: str,
    writer: RunWriter,
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
    if exit_code == 0 and any(arm.group != arms[0].group for arm in presence):
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
        noise=noise,
        notes=request.notes,
        environment=dict(request.environment),
        command=request.command,
        seconds=round(time.monotonic() - begin, 3),
        started=started,
        run_dir=str(writer.final),
    )
    return msgspec.structs.replace(study, headline=headline(study))


def _arms(request: Request, view: _View, stands: Mapping[Order, Order], records: Sequence[Record]) -> tuple[Arm, ...]:
    first = {}
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
    names = dict(zip(together.ids, [*grouping.ids, *(["other"] * len(present))], strict=True))
    names = {**{group: "other" for group in together.ids}, **dict(zip(together.ids[: len(view.counted)], grouping.ids, strict=True))}
    arms = []
    for record, group in zip(present, together.ids[len(view.counted) :], strict=True):
        arms.append(
            Arm(
                order=record.trial.order,
                effective_order=record.effective_order,
                group=names[group],
                groups=(names[group],),
                trials=1,
                failures=0 if record.ok else 1,
                presence=True,
            )
        )
    return tuple(arms)

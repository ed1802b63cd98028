"""A whole test suite over the orders, judged test by test.

In a suite's trial the outputs are called `NODEID :: NAME`: each test's `(outcome)`, why it failed or was skipped, and
what it recorded. One test that is noisy, or one that fails in every order, must not hide what another one says.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import msgspec

from reprocheck.compare.groups import group_id, select_outputs
from reprocheck.compare.verdict import ALPHA, Judgement, judge
from reprocheck.model import DifferingTest, Output, OutputDifference, Record, Struct, Suite, Verdict
from reprocheck.store.objects import ObjectStore

__all__ = ["FAILURE", "OUTCOME", "REASON", "SEPARATOR", "SuiteView", "judge_suite", "split_name", "text_of"]

# The names the worker gives; a test compares the two.
SEPARATOR = " :: "
OUTCOME, FAILURE, REASON = "(outcome)", "(failure)", "(reason)"
FAILED = ("failed", "error", "collection error")

# The verdicts of tests, worst first: the suite's is the worst of them.
_RANK: tuple[Verdict, ...] = (
    *("fails-everywhere", "fails-in-some-orders", "order-dependent", "order-dependent-with-noise"),
    *("inconclusive", "noisy", "within-tolerance", "identical"),
)

Order = tuple[str, ...]
Outputs = dict[str, Output]


class SuiteView(Struct, frozen=True, kw_only=True):
    """What a suite's trials say at one moment."""

    suite: Suite
    judgement: Judgement
    """The worst of the tests'; settled when all are."""


def split_name(name: str) -> tuple[str, str]:
    """(test, name of its output); the test is empty for what was recorded outside of tests."""
    test, separator, rest = name.rpartition(SEPARATOR)
    return (test, rest) if separator else ("", name)


def judge_suite(
    runs: Mapping[Order, Sequence[Record]],
    rows: Sequence[OutputDifference],
    objects: ObjectStore,
    patterns: Sequence[str] = (),
    *,
    alpha: float = ALPHA,
) -> SuiteView:
    """Judge every test by itself, and the suite by its worst.

    Args:
        runs: The records of each order. A trial that died counts for the tests that had ended by then.
        rows: How each output differs between the groups of whole trials, for tolerances.
        objects: Where texts are.
        patterns: The outputs to compare; all, without patterns. Outcomes always count.
        alpha: What p is held against (see `looks`); 0 where nothing is decided yet.
    """
    tests = {order: [_by_test(record, patterns) for record in records] for order, records in runs.items()}
    names = list(dict.fromkeys(test for trials in tests.values() for trial in trials for test in trial))
    keys = {name: _keys(name, runs, tests) for name in names}
    differing = {name: found for name, found in keys.items() if len({k for ks in found.values() for k in ks}) > 1}
    # Every test that is noisy by itself is one more chance to see an order in noise.
    noisy = sum(1 for found in differing.values() if any(len(set(ks)) > 1 for ks in found.values()))
    accepted = {row.name for row in rows if row.within}
    judged = {
        name: _judge_test(
            found, _failed(name, tests, objects), within=_within(name, found, accepted), alpha=alpha / (1 + noisy)
        )
        for name, found in differing.items()
    }
    trials = judge(
        {
            order: ["ok" if r.failure is None else r.failure.signature for r in records]
            for order, records in runs.items()
        },
        frozenset(r.failure.signature for records in runs.values() for r in records if r.failure is not None),
        within_tolerance=False,
        alpha=alpha,
    )
    suite = Suite(
        tests=len([name for name in names if name]),
        differing=tuple(
            _difference(name, judged[name], tests, rows, objects)
            for name in sorted(judged, key=lambda n: _rank(judged[n]))
        ),
        failing=tuple(name for name in names if name not in differing and _outcome_in(name, tests, objects) in FAILED),
    )
    return SuiteView(suite=suite, judgement=_overall(trials, judged, len(suite.differing), suite.tests))


def text_of(output: Output, objects: ObjectStore) -> str:
    """An output that is text."""
    from reprocheck.compare.source import Source

    source = Source.from_object(objects.path(output.digest))
    return source.open().read(0, source.size).tobytes().decode("utf-8", "replace")


def _by_test(record: Record, patterns: Sequence[str]) -> dict[str, Outputs]:
    """Test -> name -> output."""
    found: dict[str, Outputs] = {}
    kept = {output.name for output in select_outputs(record, patterns)} if patterns else None
    for output in record.outputs:
        test, name = split_name(output.name)
        if kept is None or output.name in kept or name in (OUTCOME, FAILURE, REASON):
            found.setdefault(test, {})[name] = output
    return found


def _keys(
    name: str, runs: Mapping[Order, Sequence[Record]], tests: Mapping[Order, Sequence[dict[str, Outputs]]]
) -> dict[Order, list[object]]:
    """What the test gave in each trial of each order; orders left out that never came as far as this test."""
    found: dict[Order, list[object]] = {}
    for order, records in runs.items():
        for record, trial in zip(records, tests[order], strict=True):
            if name in trial:
                key: object = frozenset((item, output.digest) for item, output in trial[name].items())
            elif record.ok:
                key = "not collected"
            else:
                continue
            found.setdefault(order, []).append(key)
    return found


def _judge_test(
    found: Mapping[Order, Sequence[object]], failed: frozenset[object], *, within: bool, alpha: float
) -> Judgement:
    letters: dict[object, str] = {}
    for keys in found.values():
        for key in keys:
            letters.setdefault(key, group_id(len(letters)))
    outcomes = {order: [letters[key] for key in keys] for order, keys in found.items()}
    bad = frozenset(letters[key] for key in failed if key in letters)
    judgement = judge(outcomes, bad, within_tolerance=within and not bad, alpha=alpha)
    if judgement.verdict == "fails-everywhere":
        # That it fails is the same everywhere; how it fails may still depend on the order.
        judgement = judge(outcomes, frozenset(), within_tolerance=False, alpha=alpha)
    return judgement


def _within(name: str, found: Mapping[Order, Sequence[object]], accepted: Collection[str]) -> bool:
    """Whether nothing but accepted values differs: the same outputs in every trial, of which others are equal."""
    keys = {key for keys in found.values() for key in keys}
    if not all(isinstance(key, frozenset) for key in keys):
        return False
    items = [dict(key) for key in keys if isinstance(key, frozenset)]
    if len({frozenset(item) for item in items}) > 1:
        return False
    return all(
        f"{name}{SEPARATOR}{output}" in accepted for output in items[0] if len({item[output] for item in items}) > 1
    )


def _failed(name: str, tests: Mapping[Order, Sequence[dict[str, Outputs]]], objects: ObjectStore) -> frozenset[object]:
    """Keys of the outcomes in which the test failed."""
    return frozenset(
        frozenset((item, output.digest) for item, output in trial[name].items())
        for trials in tests.values()
        for trial in trials
        if OUTCOME in trial.get(name, {}) and text_of(trial[name][OUTCOME], objects) in FAILED
    )


def _outcome_in(name: str, tests: Mapping[Order, Sequence[dict[str, Outputs]]], objects: ObjectStore) -> str:
    """The outcome of a test that has the same one everywhere; empty for what was recorded outside of tests."""
    output = next(trial[name] for trials in tests.values() for trial in trials if name in trial).get(OUTCOME)
    return text_of(output, objects) if output else ""


def _difference(
    name: str,
    judgement: Judgement,
    tests: Mapping[Order, Sequence[dict[str, Outputs]]],
    rows: Sequence[OutputDifference],
    objects: ObjectStore,
) -> DifferingTest:
    counts: dict[str, dict[str, int]] = {}
    failure = ""
    for order, trials in tests.items():
        found = counts.setdefault(",".join(order), {})
        for trial in trials:
            outputs = trial.get(name)
            if outputs is None:
                continue
            outcome = text_of(outputs[OUTCOME], objects) if OUTCOME in outputs else "recorded"
            found[outcome] = found.get(outcome, 0) + 1
            text = outputs.get(FAILURE) or outputs.get(REASON)
            if text is not None and not failure:
                failure = text_of(text, objects)
    recorded = [
        split_name(row.name)[1]
        for row in rows
        if row.differs and split_name(row.name)[0] == name and split_name(row.name)[1] not in (OUTCOME, FAILURE, REASON)
    ]
    return DifferingTest(
        test=name or "(outside of tests)",
        verdict=judgement.verdict,
        reason=judgement.reason,
        p_value=judgement.permutation.p_value if judgement.permutation else None,
        orders=counts,
        failure=failure,
        outputs=tuple(recorded),
    )


def _rank(judgement: Judgement) -> tuple[int, float]:
    """Sort key: the worst verdict first, and of those the best founded."""
    return _RANK.index(judgement.verdict), judgement.permutation.p_value if judgement.permutation else 1.0


def _overall(trials: Judgement, judged: Mapping[str, Judgement], differing: int, total: int) -> Judgement:
    """The trials' own judgement if trials died, else that of the worst test."""
    found = list(judged.values())
    if trials.verdict != "identical":
        found.append(trials)
    if not found:
        return trials
    worst = min(found, key=_rank)
    reason = worst.reason if worst is trials else f"{differing} of {total} tests differ; of the worst: {worst.reason}"
    return msgspec.structs.replace(
        worst, reason=reason, stable=all(item.stable for item in found), settled=all(item.settled for item in found)
    )

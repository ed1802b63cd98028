"""What makes every order agree: proposals for each kind of cause, the smallest first, and the first that works."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from reprocheck.explain import snippets
from reprocheck.explain.asking import Asker
from reprocheck.explain.causes import Findings, Question
from reprocheck.explain.interventions import Candidate
from reprocheck.explain.interventions.environment import variable_of
from reprocheck.explain.interventions.generators import Generator
from reprocheck.explain.interventions.libraries import Load
from reprocheck.explain.interventions.patches import place_of
from reprocheck.explain.search import BudgetSpentError
from reprocheck.explain.swap import Order
from reprocheck.explain.views import ABSENT, WORKLOAD
from reprocheck.model import Remedy, Trial

__all__ = ["Proposal", "find_absence", "find_remedy", "joined", "proposals"]

LEAST_TRIALS = 6
"""So many runs at least, over all orders together, before a remedy is said to work."""
LEAST_REPEATS = 2
MOST_PROPOSALS = 6
SEED = 0


@dataclass(frozen=True)
class Proposal:
    """A change to every order, and how a person makes it."""

    text: str
    kind: str
    env: Mapping[str, str | None] = field(default_factory=dict)
    actions: tuple[dict[str, Any], ...] = ()
    snippets: Mapping[str, str] = field(default_factory=dict)

    def apply(self, trial: Trial) -> Trial:
        """`trial` with this change."""
        return msgspec.structs.replace(
            trial, env={**trial.env, **self.env}, actions=(*trial.actions, *map(dict, self.actions))
        )


def find_remedy(
    orders: Sequence[Order], proposed: Sequence[Proposal], asker: Asker, *, presence: bool = False
) -> Remedy | None:
    """The first proposal under which all `orders` agree and none fails; with what was tried before it in `failed`.

    With `presence`, the orders leave subjects out. None when nothing was tried, for want of proposals or of budget.
    """
    repeats = max(LEAST_REPEATS, asker.labels.repeats, -(-LEAST_TRIALS // len(orders)))
    failed: list[str] = []
    for proposal in proposed[:MOST_PROPOSALS]:
        try:
            labels, trials = _outcomes(orders, proposal, asker, repeats, presence=presence)
        except BudgetSpentError:
            break
        if len(labels) == 1 and asker.labels.failure(label := labels.pop()) is None:
            return Remedy(
                text=proposal.text,
                agrees=True,
                kind=proposal.kind,
                group=label if asker.labels.is_known(label) else None,
                orders=len(orders),
                tried_trials=trials,
                snippets=dict(proposal.snippets),
                failed=tuple(failed),
            )
        failed.append(proposal.text)
    if not failed:
        return None
    return Remedy(
        text="nothing that was tried makes all orders agree", agrees=False, orders=len(orders), failed=tuple(failed)
    )


def _outcomes(
    orders: Sequence[Order], proposal: Proposal, asker: Asker, repeats: int, *, presence: bool
) -> tuple[set[str], int]:
    """The labels over all orders, and how many runs that is. The first run of each order may end it early."""
    trials = [proposal.apply(Trial(order=order, repeat=0, presence=presence)) for order in orders]
    labels = {asker.labels.label([record]) for record in asker.records(trials)}
    if len(labels) > 1 and asker.labels.repeats == 1:
        return labels, len(trials)
    again = [msgspec.structs.replace(trial, repeat=number) for trial in trials for number in range(repeats)]
    records = asker.records(again)
    for at in range(len(trials)):
        labels.add(asker.labels.label(records[at * repeats : (at + 1) * repeats]))
    return labels, len(again)


def find_absence(orders: Sequence[Order], names: Sequence[str], asker: Asker) -> Remedy | None:
    """What helps where the mere import of `names` changes the result: all `orders` without them, if those agree.

    None where that leaves nothing to import, or the budget is spent.
    """
    without = list(dict.fromkeys(tuple(name for name in order if name not in names) for order in orders))
    shown = " and ".join(f"`{name}`" for name in names)
    lines = "\n".join(f"import {name}" for name in names)
    proposal = Proposal(
        text=f"do not import {shown} before the workload has run: leave it out, or import it where it is used",
        kind="import later",
        snippets={"where it is used": lines},
    )
    return find_remedy(without, [proposal], asker, presence=True)


def proposals(question: Question, findings: Findings, *, first: Sequence[str] = ()) -> list[Proposal]:
    """What could help, the smallest change first: a variable, a call after the imports, an import, a preload.

    `first` are subjects that give the good outcome by being imported first, the most promising in front.
    """
    single = [list(_for_candidate(candidate, question)) for candidate in findings.culprits]
    single = [items for items in single if items]
    found = [joined([items[0] for items in single])] if len(single) > 1 else []
    found += [proposal for items in single for proposal in items]
    found += [_import_first(name) for name in first]
    kinds = ("environment", "after imports", "import first", "preload")
    unique = {proposal.text: proposal for proposal in found}
    return sorted(unique.values(), key=lambda proposal: kinds.index(proposal.kind))


def joined(parts: Sequence[Proposal]) -> Proposal:
    """All of them at once."""
    together: dict[str, str] = {}
    for part in parts:
        for place, lines in part.snippets.items():
            together[place] = f"{together[place]}\n{lines}" if place in together else lines
    return Proposal(
        text=", and ".join(part.text for part in parts),
        kind=parts[0].kind,
        env={name: value for part in parts for name, value in part.env.items()},
        actions=tuple(action for part in parts for action in part.actions),
        snippets=together,
    )


def _for_candidate(candidate: Candidate, question: Question) -> Iterator[Proposal]:
    kind = candidate.intervention.kind
    good, bad = candidate.shown("good"), candidate.shown("bad")
    key = candidate.keys[0]
    if kind == "environment":
        yield from _pins(key, good, bad, question)
    elif kind in ("setting", "thread count"):
        yield _set_after(candidate, question)
    elif kind == "floating point":
        yield _control_after(question)
    elif kind == "random state":
        yield _seed_after(candidate)
    elif kind == "patch":
        yield _unpatch(key)
    elif kind == "library copy":
        for change in candidate.values["good"] or ():
            if isinstance(change, Load) and (change.everywhere or candidate.values["bad"] is None):
                yield _preload(change.path)


def _pins(key: str, good: Any, bad: Any, question: Question) -> Iterator[Proposal]:
    """Pin a variable before Python starts: to the good value, to what its absence meant, to the bad value."""
    name = (variable_of(key) or ("", ""))[1]
    values = [str(value) for value in (good, *_meant(name, question), bad) if value not in (ABSENT, None)]
    for value in dict.fromkeys(value for value in values if not value.startswith("sha256:")):
        yield Proposal(
            text=f"set `{name}={value}` before Python starts",
            kind="environment",
            env={name: value},
            snippets=snippets.environment(name, value),
        )


def _meant(name: str, question: Question) -> Iterator[int]:
    """How many threads the good order computes with where the variable for it is not set."""
    if not name.endswith("_NUM_THREADS"):
        return
    values = question.pair.good.values(WORKLOAD)
    for key, value in values.items():
        counts = key == "torch.threads.intra" or key.endswith((".max_threads", ".threads"))
        if counts and isinstance(value, int) and value > 0:
            yield value
            return
    affinity = values.get("process.affinity")
    if isinstance(affinity, str):
        yield len(snippets.cpus(affinity))


def _set_after(candidate: Candidate, question: Question) -> Proposal:
    key, good = candidate.keys[0], candidate.shown("good")
    cut = candidate.at_workload()
    trial = cut.intervention.apply(Trial(order=question.pair.trial("bad").order, repeat=0), cut.values["good"])
    actions = tuple(action for action in trial.actions if action["at"] == "t2")
    return Proposal(
        text=f"set `{key}` to `{good}` explicitly after the imports",
        kind="after imports",
        actions=actions,
        snippets=snippets.after_imports(snippets.setter_call(key, good)),
    )


def _control_after(question: Question) -> Proposal:
    views = question.pair.good
    keys = {"ftz": "fp.ftz", "daz": "fp.daz", "rounding": "fp.rounding"}
    wanted = {name: views.value("before:" + views.record.trial.order[0], key) for name, key in keys.items()}
    return Proposal(
        text="reset the floating-point control register after the imports",
        kind="after imports",
        actions=({"do": "fp", "at": "t2", "id": "remedy", **wanted},),
        snippets=snippets.after_imports(snippets.control_call(wanted)),
    )


def _seed_after(candidate: Candidate) -> Proposal:
    intervention = candidate.intervention
    of = intervention.generator if isinstance(intervention, Generator) else "random"
    code = {"random": "random.seed(0)", "numpy": "numpy.random.seed(0)", "torch": "torch.manual_seed(0)"}[of]
    return Proposal(
        text=f"seed `{of}` after the imports",
        kind="after imports",
        actions=({"do": "rng", "at": "t2", "id": "remedy", "of": of, "seed": SEED},),
        snippets=snippets.after_imports(code),
    )


def _unpatch(key: str) -> Proposal:
    namespace, name = place_of(key)
    what = {"do": "patch", "id": "remedy", "namespace": namespace, "name": name}
    return Proposal(
        text=f"put the original `{namespace}.{name}` back after the imports",
        kind="after imports",
        actions=({**what, "at": "t0", "mode": "remember"}, {**what, "at": "t2", "mode": "original"}),
        snippets=snippets.original(namespace, name),
    )


def _import_first(name: str) -> Proposal:
    return Proposal(
        text=f"import `{name}` first",
        kind="import first",
        actions=({"do": "import", "at": "t0", "id": "remedy", "name": name},),
        snippets=snippets.import_first(name),
    )


def _preload(path: str) -> Proposal:
    return Proposal(
        text=f"load `{path}` before anything else",
        kind="preload",
        env={"LD_PRELOAD": path},
        snippets=snippets.environment("LD_PRELOAD", path),
    )

"""Why identical runs differ: pin one source of chance after the other until they agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from reprocheck.explain.asking import Asker
from reprocheck.explain.labels import enough_repeats
from reprocheck.explain.minimal import smallest
from reprocheck.explain.remedy import Proposal
from reprocheck.explain.search import BudgetSpentError
from reprocheck.explain.swap import Order
from reprocheck.explain.views import WORKLOAD, Views
from reprocheck.model import Cause, Record, Study, Trial

__all__ = ["Pin", "find_noise", "noisiest"]

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")


@dataclass(frozen=True)
class Pin:
    """One source of chance, and how to hold it still."""

    key: str
    kind: str
    text: str
    """What is done, for a sentence: `random` seeded before the workload."""
    env: tuple[tuple[str, str], ...] = ()
    actions: tuple[tuple[tuple[str, Any], ...], ...] = ()
    advice: str = ""
    """What a person does about it."""
    snippets: tuple[tuple[str, str], ...] = field(default=())

    def proposal(self) -> Proposal:
        """The pin as a remedy."""
        return Proposal(
            text=self.advice,
            kind="environment" if self.env else "after imports",
            env=dict(self.env),
            actions=tuple(map(dict, self.actions)),
            snippets=dict(self.snippets),
        )


_GENERATORS = {
    "process.random_state": ("random", "random.seed(0)"),
    "numpy.rng": ("numpy", "numpy.random.seed(0)"),
    "torch.rng.cpu": ("torch", "torch.manual_seed(0)"),
}


def _action(**fields: Any) -> tuple[tuple[tuple[str, Any], ...], ...]:
    return (tuple({"id": "pin", **fields}.items()),)


def _pins(study: Study, records: Sequence[Record]) -> list[Pin]:
    """Sources of chance, those that the snapshots show to vary in front."""
    found = []
    for key, (name, code) in _GENERATORS.items():
        if _varies(records, key):
            found.append(
                Pin(
                    key=key,
                    kind="unseeded random generator",
                    text=f"`{name}` seeded before the workload",
                    actions=_action(do="rng", at="t2", of=name, seed=0),
                    advice=f"seed `{name}` before the workload",
                    snippets=(("before the workload", code), ("conftest.py", f"{code}  # in a fixture, autouse=True")),
                )
            )
    if "PYTHONHASHSEED" not in (study.environment.get("pinned") or {}):
        pin = "PYTHONHASHSEED"
        found.append(
            Pin(
                key=f"environ.start.{pin}",
                kind="hash seed",
                text=f"`{pin}=0`",
                env=((pin, "0"),),
                advice=f"set `{pin}=0` before Python starts",
                snippets=(("shell", f"export {pin}=0"), ("Dockerfile", f"ENV {pin}=0")),
            )
        )
    lines = [f"{name}=1" for name in THREADS]
    return [
        *found,
        Pin(
            key="process.entropy",
            kind="system entropy",
            text="`os.urandom` replaced by a fixed sequence",
            actions=_action(do="entropy", at="t0"),
            advice="give a seed to what draws from the system's entropy, e.g. `numpy.random.default_rng(0)`",
        ),
        Pin(
            key="process.threads",
            kind="thread scheduling",
            text="one thread in every library",
            env=tuple((name, "1") for name in THREADS),
            advice="compute on one thread",
            snippets=(("shell", f"export {' '.join(lines)}"), ("Dockerfile", f"ENV {' '.join(lines)}")),
        ),
        Pin(
            key="process.clock",
            kind="time",
            text="the clocks replaced by counters",
            actions=_action(do="clock", at="t0"),
            advice="keep the time out of the results",
        ),
        Pin(
            key="process.addresses",
            kind="addresses",
            text="address randomisation off",
            actions=_action(do="address", at="t0"),
            advice="let neither `id()` nor default hashes decide anything; `setarch -R` fixes addresses",
            snippets=(("shell", "setarch -R python …"),),
        ),
    ]


def _varies(records: Sequence[Record], key: str) -> bool:
    values = {
        str(Views(record).value(WORKLOAD, key)) for record in records if record.trial.capture and record.snapshots
    }
    return len(values) > 1


def noisiest(outcomes: Mapping[Order, Sequence[str]]) -> Order:
    """The order whose identical runs differ most."""
    return max(outcomes, key=lambda order: len(set(outcomes[order])) / len(outcomes[order]))


def find_noise(study: Study, records: Sequence[Record], asker: Asker) -> tuple[list[Cause], list[Pin]]:
    """What differs between identical runs: the smallest set of pins under which they agree, as confirmed causes.

    Without the pins they differ (that is the verdict), with them they don't: shown both ways. When all pins together
    don't help, one `unknown` cause says what was tried.
    """
    outcomes: dict[Order, list[str]] = {}
    for record in records:
        if not record.trial.presence:
            outcomes.setdefault(record.trial.order, []).append(asker.labels.group(record))
    order = noisiest(outcomes)
    repeats = enough_repeats(outcomes[order])
    pins = _pins(study, [record for record in records if record.trial.order == order])
    tried: dict[tuple[Pin, ...], bool] = {}

    def agree(chosen: tuple[Pin, ...]) -> bool:
        if chosen not in tried:
            trial = Trial(order=order, repeat=0)
            for pin in chosen:
                trial = pin.proposal().apply(trial)
            again = [msgspec.structs.replace(trial, repeat=number) for number in range(repeats)]
            seen = asker.records(again)
            tried[chosen] = len({asker.labels.group(record) for record in seen}) == 1
        return tried[chosen]

    culprits: tuple[Pin, ...] = ()
    before = asker.spent
    try:
        single = next((pin for pin in pins if agree((pin,))), None)
        if single is not None:
            culprits = (single,)
        elif agree(tuple(pins)):
            culprits = smallest(pins, lambda chosen: bool(chosen) and agree(chosen))
    except BudgetSpentError:
        pass
    count = len(set(outcomes[order]))
    differ = f"identical runs of `{','.join(order)}` differ ({count} outcomes in {len(outcomes[order])} runs)"
    says = [
        f"{' and '.join(pin.text for pin in chosen)}: {'agree' if ok else 'differ'}" for chosen, ok in tried.items()
    ]
    spent = asker.spent - before
    if not culprits:
        text = f"{differ}, and with every pin that was tried"
        return [Cause(key="noise", kind="unknown", status="unknown", text=text, tried=tuple(says), trials=spent)], []
    text = f"{differ}; with {' and '.join(pin.text for pin in culprits)} they agree ({repeats} runs)"
    return [
        Cause(
            key=pin.key,
            kind=pin.kind,
            status="confirmed",
            text=text,
            good="pinned",
            bad="differs from run to run",
            orders=(order, order),
            needs=tuple(other.key for other in culprits if other is not pin),
            tried=tuple(says),
            trials=spent,
        )
        for pin in culprits
    ], list(culprits)

from __future__ import annotations

from reprocheck.compare.machines import machine_notes
from reprocheck.model import Machine, Record, Trial

FACTOR = "the machine is a factor of its own"


def record(order: str, repeat: int, host: str | None) -> Record:
    facts = {"cpu": "c", "features": "f", "cores": 2, "kernel": "k", "libc": "l", "python": "p"}
    machine = Machine(host=host, **facts) if host else None  # type: ignore[arg-type]
    return Record(
        trial=Trial(order=tuple(order), repeat=repeat), effective_order=tuple(order), ok=True, machine=machine
    )


def notes(*trials: tuple[str, int, str | None, str]) -> str:
    return " | ".join(machine_notes([record(*trial[:3]) for trial in trials], [trial[3] for trial in trials]))


def test_one_machine_is_not_worth_a_word() -> None:
    assert notes(("ab", 0, "h", "A"), ("ba", 0, "h", "B"), ("ab", 1, None, "A")) == ""


def test_several_are_named() -> None:
    told = notes(("ab", 0, "h", "A"), ("ba", 0, "h", "B"), ("ab", 1, "i", "A"), ("ba", 1, "i", "B"))
    assert told == "the trials ran on 2 machines: `h` (2 trials), `i` (2 trials)"


def test_a_machine_that_computes_otherwise_is_a_factor() -> None:
    assert FACTOR in notes(("ab", 0, "h", "A"), ("ba", 0, "h", "A"), ("ab", 1, "i", "B"), ("ba", 1, "i", "B"))


def test_so_is_one_on_which_orders_matter_too() -> None:
    assert FACTOR in notes(("ab", 0, "h", "A"), ("ba", 0, "h", "B"), ("ab", 1, "i", "C"), ("ba", 1, "i", "D"))


def test_noise_on_one_machine_is_noise() -> None:
    told = notes(("ab", 0, "h", "A"), ("ab", 2, "h", "B"), ("ab", 1, "i", "B"))
    assert FACTOR not in told

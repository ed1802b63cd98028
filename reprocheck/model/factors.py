"""What was varied besides the order: factors, their levels, and what each of them does to the outputs."""

from __future__ import annotations

from reprocheck.model.base import Struct, Verdict
from reprocheck.model.outcome import Arm, Group, Noise, OutputDifference

__all__ = ["Factor", "Factors", "Level", "Setting", "Varied"]

Setting = dict[str, str | None]
"""Variable -> its value, None where it is not set: what makes a level."""


class Varied(Struct, frozen=True, kw_only=True):
    """A setting that is to be varied, with its values."""

    name: str
    """As asked for: a variable's name, or `device`."""
    variable: str
    """The environment variable that carries it."""
    values: tuple[str | None, ...]
    """The first is what the others are compared with; None: the variable is not set."""

    def text(self, value: str | None) -> str:
        """A value as people write it: `` `OMP_PROC_BIND=close` ``, or `` `OMP_PROC_BIND` unset ``."""
        return f"`{self.name}` unset" if value is None else f"`{self.name}={value}`"


class Factor(Struct, frozen=True, kw_only=True):
    """What one varied setting does to the outcomes, the order and all other settings being equal."""

    name: str
    variable: str
    values: tuple[str | None, ...]
    differs: bool | None
    """Whether it changes outcomes; None when that can't be said with so few runs."""
    p_value: float | None = None
    """Permutation test that outcomes depend on it, within each order and level of the others; None when none differ."""
    method: str = "exact"
    changing: tuple[str | None, ...] = ()
    """Values under which some order gives another outcome than under the first value."""
    orders: tuple[tuple[str, ...], ...] = ()
    """Orders in which it changes outcomes."""
    outputs: tuple[OutputDifference, ...] = ()
    """Outputs it changes, at their largest difference between its first value and another one in one order."""
    sentence: str


class Level(Struct, frozen=True, kw_only=True):
    """One combination of values of the factors, with what the orders gave under it."""

    setting: Setting
    text: str
    """As in sentences, e.g. `` `OMP_PROC_BIND=close` ``."""
    verdict: Verdict
    reason: str
    order_matters: bool | None
    """None when that can't be said."""
    orders: tuple[Arm, ...]
    """Groups are lettered over all levels: equal letters are equal bits."""
    noise: Noise


class Factors(Struct, frozen=True, kw_only=True):
    """The factors of a study beside the order, and how they and the order act together."""

    factors: tuple[Factor, ...]
    levels: tuple[Level, ...]
    told: int
    """Index of the level of which the rest of the study tells: the first one in which the order matters most."""
    groups: tuple[Group, ...]
    """Over all levels; those of the told level have the letters they have there."""
    p_value: float | None = None
    """Permutation test that outcomes depend on the order, within each level; None when none differ."""
    method: str = "exact"
    sentence: str
    """How the order and the factors act together."""

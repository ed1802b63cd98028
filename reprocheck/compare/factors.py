"""Which of the varied settings move outcomes, and under which of them the order does. Pure functions of outcomes.

An outcome is a group's letter. Trials are compared only where everything but one thing is equal: orders within a level,
the values of a setting within an order and the values of all other settings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reprocheck.compare.noise import Permutation, permutation_p, stratified_p
from reprocheck.compare.verdict import ALPHA
from reprocheck.model import Setting, Struct, Varied, Verdict
from reprocheck.words import counted

__all__ = [
    "Cell",
    "Effect",
    "describe",
    "effects",
    "level_text",
    "matters",
    "order_p",
    "order_sentence",
    "repeats_for",
    "sentences",
    "told_level",
]

Order = tuple[str, ...]
Outcomes = Mapping[Order, Sequence[str]]
"""Order -> group of each of its trials."""

_WORST_FIRST: tuple[Verdict, ...] = (
    "fails-in-some-orders",
    "order-dependent",
    "order-dependent-with-noise",
    "fails-everywhere",
    "inconclusive",
    "noisy",
    "within-tolerance",
    "identical",
)


class Cell(Struct, frozen=True, kw_only=True):
    """Where a setting's values are compared: one order, with one combination of the other settings."""

    order: Order
    others: Setting
    changing: tuple[str | None, ...]
    """Values with another outcome than the first value."""


class Effect(Struct, frozen=True, kw_only=True):
    """What one setting does to the outcomes."""

    varied: Varied
    others: tuple[Varied, ...] = ()
    """The other settings that are varied."""
    differs: bool | None
    test: Permutation | None
    stable: bool = True
    """Identical runs agree."""
    cells: tuple[Cell, ...]
    """Every place where its values were compared."""

    @property
    def changing(self) -> tuple[str | None, ...]:
        """Values that change an outcome somewhere, as the setting has them."""
        return tuple(value for value in self.varied.values if any(value in cell.changing for cell in self.cells))

    @property
    def touched(self) -> tuple[Cell, ...]:
        """The places where it changes an outcome."""
        return tuple(cell for cell in self.cells if cell.changing)


def matters(verdict: Verdict) -> bool | None:
    """Whether the order matters by this verdict; None when it doesn't say."""
    if verdict in ("noisy", "inconclusive"):
        return None
    return verdict in ("order-dependent", "order-dependent-with-noise", "fails-in-some-orders")


def told_level(verdicts: Sequence[Verdict], exits: Sequence[int]) -> int:
    """The level to tell of: the first of those with the worst verdict, and of them with the worst exit status."""
    return min(range(len(verdicts)), key=lambda at: (_WORST_FIRST.index(verdicts[at]), -exits[at], at))


def order_p(outcomes: Sequence[Outcomes]) -> Permutation | None:
    """The test that outcomes depend on the order, within each level; None when no level shows a difference."""
    if all(len({group for groups in level.values() for group in groups}) == 1 for level in outcomes):
        return None
    return stratified_p([list(level.values()) for level in outcomes])


def effects(
    varied: Sequence[Varied], levels: Sequence[Setting], outcomes: Sequence[Outcomes], *, alpha: float = ALPHA
) -> tuple[Effect, ...]:
    """What each setting does; `outcomes` has one entry a level, and an order counts where every level has it.

    A setting changes outcomes when the stratified test says so at `alpha`. In one place it does when every value's
    trials agree among themselves and not with the first value's, or, where identical runs differ, by the test alone.
    """
    orders = [order for order in outcomes[0] if all(order in level for level in outcomes)]
    by_setting = {_key(level): groups for level, groups in zip(levels, outcomes, strict=True)}
    found = []
    for item in varied:
        rest_of = tuple(other for other in varied if other is not item)
        others = {
            _key(rest): rest for rest in ({k: v for k, v in level.items() if k != item.variable} for level in levels)
        }
        strata: list[list[Sequence[str]]] = []
        cells: list[Cell] = []
        for order in orders:
            for rest in others.values():
                runs = [by_setting[_key({**rest, item.variable: value})][order] for value in item.values]
                strata.append(runs)
                changing = tuple(
                    value for value, own in zip(item.values[1:], runs[1:], strict=True) if _apart(runs[0], own, alpha)
                )
                cells.append(Cell(order=order, others=rest, changing=changing))
        if all(len({group for runs in stratum for group in runs}) == 1 for stratum in strata):
            found.append(Effect(varied=item, others=rest_of, differs=False, test=None, cells=tuple(cells)))
            continue
        test = stratified_p(strata)
        stable = all(len(set(runs)) == 1 for stratum in strata for runs in stratum)
        differs = True if test.p_value < alpha else None
        if not differs:
            cells = [Cell(order=cell.order, others=cell.others, changing=()) for cell in cells]
        found.append(Effect(varied=item, others=rest_of, differs=differs, test=test, stable=stable, cells=tuple(cells)))
    return tuple(found)


def repeats_for(
    levels: Sequence[Outcomes], effect: Effect, all_levels: Sequence[Setting], *, most: int, alpha: float = ALPHA
) -> int:
    """The fewest trials of each order and level that would settle whether a setting with stable outcomes changes them.

    That is, if further trials give what those before them gave; `most` when even so many would not, or where identical
    runs differ.
    """
    if not effect.stable:
        return most
    for repeats in range(2, most):
        grown = [{order: (groups[0],) * repeats for order, groups in level.items()} for level in levels]
        again = effects((effect.varied, *effect.others), all_levels, grown, alpha=alpha)[0]
        if again.differs:
            return repeats
    return most


def _apart(first: Sequence[str], other: Sequence[str], alpha: float) -> bool:
    if len(set(first)) == 1 == len(set(other)):
        return first[0] != other[0]
    return permutation_p([first, other]).p_value < alpha


def _key(setting: Setting) -> tuple[tuple[str, str | None], ...]:
    return tuple(sorted(setting.items()))


def level_text(varied: Sequence[Varied], level: Setting) -> str:
    """A level as people write it: `` `A=1` with `B=2` ``."""
    return " with ".join(item.text(level[item.variable]) for item in varied)


def describe(
    chosen: Sequence[Setting], levels: Sequence[Setting], varied: Sequence[Varied]
) -> Mapping[str, tuple[str | None, ...]] | None:
    """Variable -> values such that the `chosen` levels are exactly those with these values; None if that can't be said.

    Variables that are free are left out, so that all levels are described by nothing.
    """
    taken = {
        item.variable: tuple(value for value in item.values if any(level[item.variable] == value for level in chosen))
        for item in varied
    }
    matching = [level for level in levels if all(level[name] in values for name, values in taken.items())]
    if len(matching) != len(chosen):
        return None
    return {item.variable: taken[item.variable] for item in varied if len(taken[item.variable]) < len(item.values)}


def _under(chosen: Sequence[Setting], levels: Sequence[Setting], varied: Sequence[Varied]) -> str:
    """The chosen levels in words."""
    described = describe(chosen, levels, varied)
    if described is None:
        return _listed([level_text(varied, level) for level in chosen], "or")
    parts = [
        _listed([item.text(value) for value in described[item.variable]], "or")
        for item in varied
        if item.variable in described
    ]
    return " with ".join(parts)


def _listed(words: Sequence[str], last: str) -> str:
    return f" {last} ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]


def order_sentence(varied: Sequence[Varied], levels: Sequence[Setting], answers: Sequence[bool | None]) -> str:
    """Under which levels the order matters, `answers` being one a level."""
    yes, no, open_ = (
        [level for level, own in zip(levels, answers, strict=True) if own is answer] for answer in (True, False, None)
    )
    if len(yes) == len(levels):
        return "the order matters under every level"
    if len(no) == len(levels):
        return "the order doesn't matter under any level"
    if len(open_) == len(levels):
        return "whether the order matters can't be said under any level"
    unknown = f"; under {_under(open_, levels, varied)} that can't be said" if open_ else ""
    if not yes:
        return f"the order doesn't matter under {_under(no, levels, varied)}{unknown}"
    if open_:
        return f"the order matters under {_under(yes, levels, varied)}{unknown}"
    if len(no) == 1 < len(yes):
        return f"the order matters under every level but {level_text(varied, no[0])}"
    return f"the order matters only under {_under(yes, levels, varied)}"


def sentences(effect: Effect, *, outputs: tuple[int, int], failing: bool = False) -> str:
    """What a setting does, in words; `outputs` are those it changes, and all. `failing`: under its values all fails."""
    item = effect.varied
    if effect.differs is None:
        p = effect.test.p_value if effect.test is not None else 1.0
        if not effect.stable:
            return f"what `{item.name}` does can't be told from the noise between identical runs (p = {p:.2g})"
        return f"outputs differ with `{item.name}`, but so few runs could do so by chance (p = {p:.2g}); raise --repeat"
    if not effect.differs:
        return f"`{item.name}` doesn't change the outputs"
    values = _listed([item.text(value) for value in effect.changing], "and") if effect.changing else f"`{item.name}`"
    several = len(effect.changing) > 1
    changed, total = outputs
    if failing:
        what = f"{'make' if several else 'makes'} it fail"
    else:
        count = f"{changed} of {counted(total, 'output')}" if changed else "the outcome"
        what = f"{'change' if several else 'changes'} {count}"
    return f"{values} {what} {_where(effect)}"


def _where(effect: Effect) -> str:
    """In which orders, and under which values of the other settings."""
    touched = effect.touched
    if not touched or len(touched) == len(effect.cells):
        return "in every order" if touched else "beyond the noise between identical runs"
    orders = list(dict.fromkeys(cell.order for cell in effect.cells))
    mine = list(dict.fromkeys(cell.order for cell in touched))
    rests = list({_key(cell.others): cell.others for cell in touched}.values())
    if len(touched) != len(mine) * len(rests):
        return f"in {len(touched)} of {len(effect.cells)} combinations of order and level"
    text = "in every order" if len(mine) == len(orders) else f"only in {_named(mine, orders)}"
    everywhere = list({_key(cell.others): cell.others for cell in effect.cells}.values())
    return text if len(rests) == len(everywhere) else f"{text}, under {_under(rests, everywhere, effect.others)}"


def _named(mine: Sequence[Order], orders: Sequence[Order]) -> str:
    if len(mine) > 3:
        return f"{len(mine)} of {len(orders)} orders"
    return _listed([f"`{','.join(order)}`" for order in mine], "and")

"""Orders as a tree of what they begin with, and which of its processes may be started next: pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from reprocheck.model import Struct, Trial

__all__ = ["Prefix", "grow", "may_start", "saved"]


class Prefix(Struct, frozen=True, kw_only=True):
    """One process: the subjects it has imported when it is forked, or, without children, when its trial goes on."""

    order: tuple[str, ...]
    children: tuple[Prefix, ...] = ()
    trial: Trial | None = None
    """What a process without children goes on to be. It imports what its order still lacks."""

    @property
    def trials(self) -> tuple[Trial, ...]:
        """The trials that this process is part of, in the order in which they are reached."""
        if self.trial is not None:
            return (self.trial,)
        return tuple(trial for child in self.children for trial in child.trials)

    @property
    def height(self) -> int:
        """The longest chain of processes below this one; 0 for a trial's own."""
        return 1 + max(child.height for child in self.children) if self.children else 0

    def imports(self, before: int = 0) -> int:
        """Imports carried out by this process and those below, `before` of its order having been there already."""
        done = len(self.order if self.trial is None else self.trial.order)
        return done - before + sum(child.imports(done) for child in self.children)


def grow(trials: Sequence[Trial]) -> Prefix:
    """The tree in which every trial is reached once, and every beginning that orders share is imported once.

    A process that has only one way to go on is not forked, so that each one but the root has two at least or is a
    trial's own. `trials` must not be empty.
    """
    return _grow((), list(trials))


def _grow(order: tuple[str, ...], trials: Sequence[Trial]) -> Prefix:
    depth = len(order)
    ways: dict[str | None, list[Trial]] = {}
    ended = []
    for trial in trials:
        if len(trial.order) == depth:
            ended.append(trial)
        else:
            ways.setdefault(trial.order[depth], []).append(trial)
    children = [Prefix(order=order, trial=trial) for trial in ended]
    children += [_shortened(way) for way in ways.values()]
    return Prefix(order=order, children=tuple(children))


def _shortened(trials: Sequence[Trial]) -> Prefix:
    """The process of trials that begin alike, with all that they have in common imported."""
    if len(trials) == 1:
        return Prefix(order=trials[0].order, trial=trials[0])
    first = trials[0].order
    shared = next(
        (
            position
            for position in range(len(first))
            if any(len(trial.order) <= position or trial.order[position] != first[position] for trial in trials)
        ),
        len(first),
    )
    return _grow(first[:shared], trials)


def saved(tree: Prefix) -> int:
    """How many imports the tree spares against a process for each trial."""
    return sum(len(trial.order) for trial in tree.trials) - tree.imports()


def may_start(child: Prefix, *, live: int, root: Prefix, jobs: int) -> bool:
    """Whether a process for `child` may be forked while `live` ones of the tree are alive.

    Never more than `jobs` and the tree's height together. A process that will be forked in its turn is started only
    when what is below it fits in, too: what was started last can always be carried through, so nothing waits for ever.
    """
    return live + 1 + child.height <= jobs + root.height

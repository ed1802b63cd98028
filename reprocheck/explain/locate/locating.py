"""The whole of `locate`: trace two orders, see that tracing changed nothing, find the places, keep their values."""

from __future__ import annotations

from pathlib import Path

import msgspec

from reprocheck.explain.context import Context
from reprocheck.explain.locate.export import export_traces
from reprocheck.explain.locate.first_line import Line, find_first_line, noisy_variables
from reprocheck.explain.locate.kernels import kernel_differences
from reprocheck.explain.locate.origin import Found, find_origin
from reprocheck.explain.locate.passes import Kept, Pass, Passes
from reprocheck.explain.locate.sequences import Sequences, noisy_operators
from reprocheck.explain.locate.telling import first_line_record, origin_record
from reprocheck.headline import order_text
from reprocheck.model import FirstLine, OperatorOrigin, Study, Traced

__all__ = ["Locating"]

Order = tuple[str, ...]
_WORST = ("agrees", "moved", "vanished", "failed")
MAX_NAMES = 3


class Locating:
    """One study's passes, and what they showed."""

    def __init__(self, study: Study, context: Context, orders: tuple[Order, Order]) -> None:
        self.study = study
        self.orders = orders
        self.passes = Passes(orders, context)
        self.tell = context.runner.progress.note
        self.notes: list[str] = []
        self.root = str(Path(study.target.path).parent) if study.target.path else None

    def run(self, modes: tuple[str, ...], *, kernels: bool, export: Path | None) -> Study:
        """The study with what the traces of both orders show."""
        self.tell(f"locating: tracing `{order_text(self.orders[0])}` and `{order_text(self.orders[1])}`")
        by_mode = self._traced(modes)
        if not any(traced.shows for traced in by_mode.values()):
            self.notes.append(self._coarser())
        if export is not None:
            for traced in dict.fromkeys(by_mode.values()):
                export_traces(export, self.orders, traced.traces)
        study = self.study
        if "lines" in by_mode:
            study = msgspec.structs.replace(study, first_line=self._first_line(by_mode["lines"]))
        if "ops" in by_mode:
            study = self._operators(study, by_mode["ops"])
        if kernels:
            found = kernel_differences(self.passes, self.orders, self.root, self.notes)
            study = msgspec.structs.replace(study, kernels=found)
        return msgspec.structs.replace(study, traced=self._told(by_mode))

    def _traced(self, modes: tuple[str, ...]) -> dict[str, Pass]:
        """The pass to take each mode from: all at once where that changes nothing, each alone where it does."""
        together = self._observed(self.passes.run(modes))
        by_mode = dict.fromkeys(modes, together)
        if together.observer == "agrees" or len(modes) == 1:
            return by_mode
        for mode in modes:
            if mode == modes[-1] and together.shows and by_mode[modes[0]].observer == "agrees":
                # It is this mode that changes something: alone it would do the same.
                break
            alone = self._observed(self.passes.run([mode]))
            if _WORST.index(alone.observer) < _WORST.index(together.observer):
                by_mode[mode] = alone
        return by_mode

    def _observed(self, traced: Pass) -> Pass:
        """Note what looking changed."""
        what = "tracing " + " and ".join({"lines": "lines", "ops": "operators"}[mode] for mode in traced.modes)
        if traced.observer == "moved":
            names = ", ".join(f"`{name}`" for name in traced.changed[:MAX_NAMES])
            more = f" and {len(traced.changed) - MAX_NAMES} more" if len(traced.changed) > MAX_NAMES else ""
            self.notes.append(f"{what} changes the bits of {names}{more}; the orders still differ")
        elif traced.observer == "vanished":
            self.notes.append(f"{what} makes the divergence vanish")
        elif traced.observer == "failed":
            self.notes.append(f"{what} makes the workload fail: {traced.message}")
        return traced

    def _coarser(self) -> str:
        """What the untraced runs themselves say of the place."""
        first = next((output for output in self.study.outputs if output.differs), None)
        if first is None:
            return "no output differs between the orders"
        return f"of the untraced runs, `{first.name}` is the first output, in the order of saving, that differs"

    def _first_line(self, traced: Pass) -> FirstLine | None:
        if not traced.shows:
            return None
        a, b = traced.traces
        noisy = frozenset[tuple[object, ...]]()
        if traced.again is not None:
            noisy = noisy_variables(a, traced.again[0]) | noisy_variables(b, traced.again[1])
        line = find_first_line(a, b, noisy)
        if line is None:
            return None
        return first_line_record(line, self._kept_line(traced, line), self.root)

    def _kept_line(self, traced: Pass, line: Line) -> Kept | None:
        if line.b is None:
            return None
        self.tell(f"locating: keeping `{line.variable}`")
        keep = ({"line": [line.a.number, line.variable]}, {"line": [line.b.number, line.variable]})
        return self.passes.keep(traced.modes, keep, exact=False)

    def _operators(self, study: Study, traced: Pass, *, exact: bool = False) -> Study:
        sequences = self._sequences(traced)
        found = find_origin(sequences) if traced.shows else None
        origin: OperatorOrigin | None = None
        if found is not None:
            kept = self._kept_operator(traced, found, sequences, exact=exact)
            if kept is not None and not exact and _unsure(found, kept):
                self.tell("locating: inputs that seemed equal are not; tracing again without shortcuts")
                return self._operators(study, self._observed(self.passes.run(["ops"], exact=True)), exact=True)
            origin = origin_record(found, sequences, self.orders, kept, self.root)
        return msgspec.structs.replace(
            study,
            origin=origin,
            inherited=found.inherited if found is not None else 0,
            unaligned=sequences.unaligned(),
        )

    def _kept_operator(self, traced: Pass, found: Found, sequences: Sequences, *, exact: bool) -> Kept | None:
        a = {"op": sequences.a[found.a].number} if found.a is not None else {}
        b = {"op": sequences.b[found.b].number} if found.b is not None else {}
        self.tell("locating: keeping the operator's values")
        return self.passes.keep(traced.modes, (a, b), exact=exact)

    def _sequences(self, traced: Pass) -> Sequences:
        a, b = traced.traces
        if traced.again is None:
            return Sequences(a, b)
        return Sequences(a, b, (noisy_operators(a, traced.again[0]), noisy_operators(b, traced.again[1])))

    def _told(self, by_mode: dict[str, Pass]) -> Traced:
        used = list(dict.fromkeys(by_mode.values()))
        operators = by_mode["ops"].traces[0] if "ops" in by_mode else None
        lines = by_mode["lines"].traces[0] if "lines" in by_mode else None
        remarks = [note for traced in used for trace in traced.traces for note in trace.notes]
        return Traced(
            orders=self.orders,
            modes=tuple(by_mode),
            observer=max((traced.observer for traced in used), key=_WORST.index),
            operators=len(operators.operators) if operators else 0,
            lines=len(lines.lines) if lines else 0,
            trials=self.passes.trials,
            noisy=len(self._sequences(by_mode["ops"]).noisy[0]) if "ops" in by_mode else 0,
            notes=tuple(dict.fromkeys([*self.notes, *remarks])),
        )


def _unsure(found: Found, kept: Kept) -> bool:
    """Whether inputs taken for equal are not: something that is not traced wrote to their memory."""
    return found.kind == "operator" and not found.moved and not kept.equal("in[")

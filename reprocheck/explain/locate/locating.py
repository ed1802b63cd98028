"""`locate`: the whole of it. Trace two orders, see that tracing changed nothing, find the places, keep their values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from reprocheck.explain.inquiry import Context
from reprocheck.explain.locate.export import export_traces
from reprocheck.explain.locate.first_line import Line, find_first_line, noisy_variables
from reprocheck.explain.locate.kernels import kernel_differences
from reprocheck.explain.locate.origin import Found, find_origin
from reprocheck.explain.locate.passes import Kept, Pass, Passes, orders_to_trace
from reprocheck.explain.locate.sequences import Sequences, noisy_operators
from reprocheck.explain.locate.telling import first_line_record, origin_record
from reprocheck.headline import order_text
from reprocheck.model import Study, Traced

__all__ = ["TRACES", "locate"]

TRACES = ("auto", "lines", "ops", "kernels", "none")
"""What may be asked for: lines and operators after a divergence, one of them, kernels as well, or nothing."""
_MODES = {"auto": ("lines", "ops"), "kernels": ("lines", "ops"), "lines": ("lines",), "ops": ("ops",)}


def locate(study: Study, context: Context, *, trace: str = "auto", export: Path | None = None) -> Study:
    """`study` with its first line, origin, inherited and unaligned operators, and kernels if asked for.

    A study without a divergence comes back as it is, unless traces are asked for by name or to be exported. `export` is
    a folder for the traces, one operator and one executed line a text line.

    Raises:
        UsageError: `export` can't be written.
    """
    asked = trace != "auto" or export is not None
    if trace == "none" or study.target.suite:
        return study
    orders = orders_to_trace(study, asked=asked)
    if orders is None:
        return study
    return _Locating(study, context, orders, _MODES[trace]).run(kernels=trace == "kernels", export=export)


class _Locating:
    def __init__(
        self, study: Study, context: Context, orders: tuple[tuple[str, ...], tuple[str, ...]], modes: tuple[str, ...]
    ) -> None:
        self.study = study
        self.orders = orders
        self.modes = modes
        self.passes = Passes(orders, context)
        self.note = context.runner.progress.note
        self.notes: list[str] = []
        self.root = str(Path(study.target.path).parent) if study.target.path else None

    def run(self, *, kernels: bool, export: Path | None) -> Study:
        self.note(f"locating: tracing `{order_text(self.orders[0])}` and `{order_text(self.orders[1])}`")
        modes, traced = self._traced()
        if traced.observer == "failed":
            return self._study(modes, traced)
        exact = False
        line, found, sequences = self._find(traced)
        kept = self._keep(modes, line, found, sequences, exact=exact)
        if found is not None and kept is not None and self._unsure(found, kept):
            self.note("locating: inputs that looked equal are not; tracing again without shortcuts")
            exact = True
            traced = self.passes.run(modes, exact=True)
            line, found, sequences = self._find(traced)
            kept = self._keep(modes, line, found, sequences, exact=exact)
        if export is not None:
            export_traces(export, self.orders, traced.traces)
        study = self._study(modes, traced)
        study = msgspec.structs.replace(
            study,
            first_line=first_line_record(line, kept, self.root) if line is not None else None,
            origin=origin_record(found, sequences, self.orders, kept, self.root) if found is not None else None,
            inherited=found.inherited if found is not None else 0,
            unaligned=sequences.unaligned(),
        )
        if kernels:
            study = msgspec.structs.replace(
                study, kernels=kernel_differences(self.passes, self.orders, self.root, self.notes)
            )
            study = self._study(modes, traced, study)
        return study

    def _traced(self) -> tuple[tuple[str, ...], Pass]:
        """The lightest tracing needed that leaves the divergence as it is; the first one where none does."""
        attempts = [self.modes, *([mode] for mode in self.modes)] if len(self.modes) > 1 else [self.modes]
        tried: list[tuple[tuple[str, ...], Pass]] = []
        for modes in attempts:
            traced = self.passes.run(modes)
            tried.append((tuple(modes), traced))
            if traced.observer == "agrees":
                break
            what = " and ".join({"lines": "lines", "ops": "operators"}[mode] for mode in modes)
            self.notes.append(f"tracing {what} {_OBSERVED[traced.observer]}{f': {traced.message}' if traced.message else ''}")
        order = ("agrees", "moved", "vanished", "failed")
        best = min(tried, key=lambda item: order.index(item[1].observer))
        if best[1].observer in ("vanished", "failed"):
            self.notes.append(self._coarser())
        return best

    def _coarser(self) -> str:
        """What the untraced runs themselves say of the place."""
        first = next((output for output in self.study.outputs if output.differs), None)
        if first is None:
            return "the untraced runs' outputs don't say more"
        return f"the untraced runs say this much: `{first.name}` is the first output, in the order of saving, that differs"

    def _find(self, traced: Pass) -> tuple[Line | None, Found | None, Sequences]:
        a, b = traced.traces
        noisy = (frozenset[int](), frozenset[int]())
        variables = frozenset[tuple[object, ...]]()
        if traced.again is not None:
            noisy = (noisy_operators(a, traced.again[0]), noisy_operators(b, traced.again[1]))
            variables = noisy_variables(a, traced.again[0]) | noisy_variables(b, traced.again[1])
        sequences = Sequences(a, b, noisy)
        if traced.observer == "vanished":
            return None, None, sequences
        return find_first_line(a, b, variables), find_origin(sequences), sequences

    def _keep(
        self, modes: tuple[str, ...], line: Line | None, found: Found | None, sequences: Sequences, *, exact: bool
    ) -> Kept | None:
        keep: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
        if line is not None and line.b is not None:
            for wanted, step in zip(keep, (line.a, line.b), strict=True):
                wanted["line"] = [step.number, line.variable]
        if found is not None:
            for wanted, index, items in zip(keep, (found.a, found.b), (sequences.a, sequences.b), strict=True):
                if index is not None:
                    wanted["op"] = items[index].number
        if not any(keep):
            return None
        self.note("locating: keeping the values at the place where it starts")
        return self.passes.keep(modes, keep, exact=exact)

    def _unsure(self, found: Found, kept: Kept) -> bool:
        """Whether inputs that were taken for equal are not: their memory was written by something that is not traced."""
        return found.kind == "operator" and not found.moved and not kept.equal("in[")

    def _study(self, modes: tuple[str, ...], traced: Pass, study: Study | None = None) -> Study:
        a, b = traced.traces
        noisy = len(noisy_operators(a, traced.again[0])) if traced.again is not None else 0
        return msgspec.structs.replace(
            study or self.study,
            traced=Traced(
                orders=self.orders,
                modes=modes,
                observer=traced.observer,
                operators=len(a.operators),
                lines=len(a.lines),
                trials=self.passes.trials,
                noisy=noisy,
                notes=tuple(dict.fromkeys([*self.notes, *a.notes, *b.notes])),
            ),
        )


_OBSERVED = {
    "moved": "changes the outputs, though the orders still differ: what follows may not be what untraced runs do",
    "vanished": "makes the divergence vanish",
    "failed": "makes the workload fail",
}

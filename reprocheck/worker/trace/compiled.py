"""Regions compiled by `torch.compile`: one operator each, since what they fuse never passes the dispatcher.

A region is caught where its code is called, forward and backward alike. Backends that run operators one by one
(`eager`, `aot_eager`) have no such place: their operators are traced like any others.
"""

import os
import sys

from . import plans
from .later import Later

__all__ = ["Regions"]

_CLASSES = ("CompiledFxGraph", "CompiledAOTI")


class Regions:
    """Records compiled regions into an operator trace."""

    def __init__(self, trace):
        """`trace` is the `ops.OpTrace`."""
        self._trace = trace
        self._later = Later()
        self._patched = []

    def start(self):
        """Wait for torch's compiler; most workloads never load it."""
        self._later.when("torch._inductor.output_code", self._patch)
        self._later.when("torch._dynamo.trace_rules", _keep_out)

    def stop(self):
        """Take the hooks out."""
        self._later.stop()
        while self._patched:
            cls, call = self._patched.pop()
            cls.__call__ = call

    def _patch(self, module):
        for name in _CLASSES:
            cls = getattr(module, name, None)
            if cls is not None and "__call__" in vars(cls):
                self._patched.append((cls, cls.__call__))
                cls.__call__ = self._wrapped(cls.__call__)

    def _wrapped(self, call):
        trace = self._trace

        def region(graph, inputs):
            if trace.quiet:
                return call(graph, inputs)
            place = trace.places.find(sys._getframe(1))
            given = []
            plans.tensors_in(trace.tensor, inputs, given)
            # The list of inputs is emptied by the call, to free them early.
            written = [inputs[index] for index in getattr(graph, "mutated_input_idxs", None) or ()]
            # Neither the operators inside nor those of the digests are records of their own.
            trace.quiet += 1
            try:
                record = trace.before("torch.compile", given)
                result = call(graph, inputs)
                returned = []
                plans.tensors_in(trace.tensor, (result,), returned)
                trace.results(record, written, returned)
            finally:
                trace.quiet -= 1
            record["note"] = "one region compiled by torch.compile"
            trace.finish(record, place, given)
            return result

        return region


def _keep_out(module):
    """Have torch's compiler skip the frames of the trace: they are no part of the workload."""
    folder = os.path.dirname(os.path.abspath(__file__))
    skipped = getattr(module, "SKIP_DIRS", None)
    recompile = getattr(module, "_recompile_re", None)
    if isinstance(skipped, list) and recompile is not None and not any(path.startswith(folder) for path in skipped):
        skipped += [
            os.path.join(folder, name) for name in os.listdir(folder) if name not in ("hooks.py", "__pycache__")
        ]
        recompile()

"""The operator trace of torch: what each operator was given and returned, forward, backward and in the optimiser.

A record is `{"k": "op", "n": number, "op": name, "in": [fact, …], "out": [fact, …], …}` with facts `[dtype, shape,
digest]`, followed by strides and device where they are not those of a contiguous tensor on a CPU. Digests of inputs are
taken before the call, so in-place operators are seen as they are; `out=` arguments are outputs only. Further fields, left
out when empty: `a` the other arguments, `s` site, `via` site of a toolbox the call went through, `m` module path, `ph`
phase, `node` the autograd node and `fs` its forward site, `view`, `rng`, `note`.

Backward runs in autograd's threads on a device and in the caller's on a CPU; torch hands the modes over in both cases.
"""

import os
import sys

from . import plans
from .places import Places

__all__ = ["OpTrace"]


class OpTrace:
    """Records operators from `start` to `stop`, in the thread that starts it and in the backward passes it runs."""

    def __init__(self, own, sink, off, keep=None, digests=True, after=None):
        """`off` keeps modes away from digests; `keep(number, inputs, outputs)`; `after(number)` is called each time."""
        self._torch = sys.modules["torch"]
        self._sink = sink
        self._off = off
        self._keep = keep
        self._digests = digests
        self._after = after
        self._plans = {}
        self._known = {}
        self.places = Places(self._torch, own)
        self.quiet = 0
        """Above 0 while operators belong to something that is recorded as a whole."""
        self._mode = None

    def start(self):
        """Enter the mode."""
        os.register_at_fork(after_in_child=self._silence)
        self._mode = _mode_class(self._torch)(self)
        self._mode.__enter__()

    def stop(self):
        """Leave it."""
        self._mode.__exit__(None, None, None)

    def _silence(self):
        self.quiet += 1

    def dispatch(self, func, args, kwargs):
        """Run an operator and record it."""
        plan = self._plans.get(func)
        if plan is None:
            plan = self._plans[func] = plans.plan_for(self._torch, func)
        if plan is plans.IGNORED or self.quiet:
            return func(*args, **kwargs)
        place = self.places.find(sys._getframe(2))
        number = self._sink.number()
        tensor = self._torch.Tensor
        given = []
        if plan.fills:
            fills = self._named(plan.fills, plan, args, kwargs)
            plans.tensors_in(tensor, (args, kwargs), given)
            given = [value for value in given if not any(value is filled for filled in fills)]
        else:
            plans.tensors_in(tensor, args, given)
            if kwargs:
                plans.tensors_in(tensor, (kwargs,), given)
        record = {"k": "op", "n": number, "op": plan.name}
        with self._off:
            record["in"] = [self.fact(value, plan.view) for value in given]
            if plan.random:
                record["rng"] = self._generator_state(given, args, kwargs)
            if self._keep is not None:
                self._keep(number, "in", given)
        result = func(*args, **kwargs)
        written = self._named(plan.writes + plan.fills, plan, args, kwargs) if plan.writes or plan.fills else []
        returned = []
        plans.tensors_in(tensor, (result,), returned)
        out = written + [value for value in returned if not any(value is other for other in written)]
        with self._off:
            record["out"] = [self.fact(value, plan.view or plan.blank) for value in out]
            if self._keep is not None:
                self._keep(number, "out", out)
        text = plans.plain_text(tensor, args, kwargs)
        if text:
            record["a"] = text
        if plan.view:
            record["view"] = 1
        self.placed(record, place, given)
        self._sink.write(record)
        if self._after is not None:
            self._after(number)
        return result

    def placed(self, record, place, given):
        """Add the fields of a place to a record."""
        site = self._sink.site
        if place.own is not None:
            record["s"] = site(place.own, place.line)
        if place.via is not None:
            record["via"] = site(place.via, place.via_line)
        module = place.module
        if place.phase:
            record["ph"] = place.phase
            if module is None and place.phase != "backward":
                module = next(filter(None, map(self.places.parameter, given)), None)
        if module:
            record["m"] = module
        if place.node:
            record["node"] = place.node
            forward = place.forward
            if forward is not None and forward.own is not None:
                record["fs"] = site(forward.own, forward.line)

    def fact(self, value, shape_only=False):
        """The fact of a tensor, with strides and device where they are not the plain ones."""
        if shape_only or not self._digests:
            fact = [str(value.dtype)[6:], list(value.shape), None]
        else:
            fact = self._sink.fact(value)
        if value.layout is self._torch.strided:
            plain = value.device.type == "cpu"
            if not plain or not value.is_contiguous():
                fact.append(None if value.is_contiguous() else list(value.stride()))
                if not plain:
                    fact.append(str(value.device))
        return fact

    def _named(self, names, plan, args, kwargs):
        """The tensors in the arguments of these names."""
        found = []
        for name in names:
            position = plan.names.index(name)
            value = args[position] if position < len(args) else kwargs.get(name)
            plans.tensors_in(self._torch.Tensor, (value,), found)
        return found

    def _generator_state(self, given, args, kwargs):
        """A digest of the generator an operator is about to draw from; None where it cannot be read."""
        torch = self._torch
        generator = kwargs.get("generator")
        if generator is None:
            generator = next((value for value in args if isinstance(value, torch.Generator)), None)
        if generator is None:
            device = torch.device(kwargs.get("device") or (given[0].device if given else "cpu"))
            generator = torch.default_generator
            if device.type == "cuda":
                index = torch.cuda.current_device() if device.index is None else device.index
                generator = torch.cuda.default_generators[index]
        try:
            return self._sink.fact(generator.get_state())[2]
        except RuntimeError:
            # While a CUDA graph is captured the state can't be read.
            return None


def _mode_class(torch):
    """The dispatch mode, made when torch is loaded: its base class comes from there."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Trace(TorchDispatchMode):
        supports_higher_order_operators = True

        def __init__(self, trace):
            super().__init__()
            self._trace = trace

        @classmethod
        def _should_skip_dynamo(cls):
            # torch would import its compiler at the first operator; `compiled` keeps it away from our frames instead.
            return False

        @classmethod
        def ignore_compile_internals(cls):
            return True

        @classmethod
        def is_infra_mode(cls):
            # Before torch had `ignore_compile_internals`, any other mode made `torch.compile` run eagerly.
            return not hasattr(TorchDispatchMode, "ignore_compile_internals")

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # noqa: ARG002 - torch's signature
            return self._trace.dispatch(func, args, kwargs or {})

    return Trace

"""The operator trace of torch: what each operator was given and returned, forward, backward and in the optimiser.

A record is `{"k": "op", "n": number, "op": name, "in": [fact, …], "out": [fact, …], …}` with facts `[dtype, shape,
digest]`, followed by strides and device where they are not those of a contiguous tensor on a CPU. Digests of inputs are
taken before the call, so in-place operators are seen as they are; `out=` arguments are outputs only. Further fields,
left out when empty: `a` the other arguments, `s` site, `via` site of a toolbox the call went through, `m` module path,
`ph` phase, `node` the autograd node and `fs` its forward site, `view`, `rng`, `note`.

Backward runs in autograd's threads on a device and in the caller's on a CPU; torch hands the modes over in both cases.
"""

import importlib
import os
import sys

from . import digest, plans
from .compiled import Regions
from .memory import Memory
from .places import Places

__all__ = ["OpTrace"]


class OpTrace:
    """Records operators from `start` to `stop`, in the thread that starts it and in the backward passes it runs."""

    def __init__(self, own, sink, keep=None, exact=False, kernels=None):
        """`keep(number, side, tensors)` sees every operator's values. With `kernels`, nothing is digested."""
        self._torch = sys.modules["torch"]
        self.tensor = self._torch.Tensor
        self._sink = sink
        self._keep = keep
        self._kernels = kernels
        self._begun = []
        self._plans = {}
        self._memory = Memory(exact)
        self.places = Places(self._torch, own)
        self._regions = Regions(self)
        self.quiet = 0
        """Above 0 while operators belong to something that is recorded as a whole."""
        self._mode = None

    def start(self):
        """Enter the mode."""
        os.register_at_fork(after_in_child=self._silence)
        self._regions.start()
        self._mode = _mode_class()(self)
        self._mode.__enter__()

    def stop(self):
        """Leave it."""
        self._regions.stop()
        self._mode.__exit__(None, None, None)

    def _silence(self):
        self.quiet += 1

    def dispatch(self, func, args, kwargs):
        """Run an operator and record it."""
        if self.quiet or self._sink.full:
            return func(*args, **kwargs)
        plan = self._plans.get(func)
        if plan is None:
            plan = self._plans[func] = plans.Plan(self._torch, func)
        if plan.plumbing:
            result = func(*args, **kwargs)
            if args and isinstance(result, self.tensor) and isinstance(args[0], self.tensor):
                self._memory.carry(args[0], result)
            return result
        place = self.places.find(sys._getframe(2))
        tensor = self.tensor
        given, written = [], []
        plans.tensors_in(tensor, args, given)
        if kwargs:
            plans.tensors_in(tensor, (kwargs,), given)
        if plan.fills or plan.writes:
            filled = self._named(plan.fills, plan, args, kwargs)
            written = self._named(plan.writes, plan, args, kwargs) + filled
            given = [value for value in given if not any(value is other for other in filled)]
        record = self.before(plan.name, given, plan.view)
        if plan.random:
            record["rng"] = self._generator_state(given, args, kwargs)
        try:
            result = func(*args, **kwargs)
        except BaseException:
            if self._kernels is not None:
                self._kernels.end(self._begun.pop(), None)
            raise
        returned = []
        plans.tensors_in(tensor, (result,), returned)
        returned = [value for value in returned if not any(value is other for other in written)]
        self.results(record, written, returned, shape_only=plan.view or plan.blank)
        if plan.blank and self._kernels is None:
            for value in returned:
                self._sink.unfilled(value, self._sink.fact(value))
        if plan.view:
            record["view"] = 1
            if len(given) == 1 == len(returned):
                self._memory.carry(given[0], returned[0])
        text = plans.plain_text(tensor, args, kwargs)
        if text:
            record["a"] = text
        self.finish(record, place, given)
        return result

    def before(self, name, given, shape_only=False):
        """The record of an operator that is about to run on the tensors `given`."""
        record = {"k": "op", "n": self._sink.number(), "op": name}
        record["in"] = [self.fact(value, shape_only) for value in given]
        if self._keep is not None:
            self._keep(record["n"], "in", given)
        if self._kernels is not None:
            self._begun.append(self._kernels.begin())
        return record

    def results(self, record, written, returned, shape_only=False):
        """Add what it left: arguments it wrote to, and tensors it returned."""
        if self._kernels is not None:
            self._kernels.end(self._begun.pop(), record["n"])
        for value in written:
            self._memory.wrote(value)
        facts = [self.fact(value, shape_only, written=True) for value in written]
        record["out"] = facts + [self.fact(value, shape_only) for value in returned]
        if self._keep is not None:
            self._keep(record["n"], "out", written + returned)

    def finish(self, record, place, given):
        """Add the fields of a place, and write the record."""
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
        self._sink.write(record)

    def fact(self, value, shape_only=False, written=False):
        """The fact of a tensor, with strides and device where they are not the plain ones."""
        fact = [digest.dtype_name(value), list(value.shape), None]
        if self._kernels is None and not shape_only:
            total = self._memory.find(value)
            if total is None:
                try:
                    total = digest.tensor_sum(value)
                except Exception as error:
                    fact[2] = "unreadable: " + type(error).__name__
                else:
                    self._memory.add(value, total, written)
                    self._sink.complete(fact, total)
            else:
                self._sink.complete(fact, total)
        if value.layout is self._torch.strided:
            plain = value.device.type == "cpu"
            contiguous = value.is_contiguous()
            if not plain or not contiguous:
                fact.append(None if contiguous else list(value.stride()))
                if not plain:
                    fact.append(str(value.device))
        return fact

    def _named(self, names, plan, args, kwargs):
        """The tensors in the arguments of these names."""
        found = []
        for name in names:
            position = plan.names.index(name)
            value = args[position] if position < len(args) else kwargs.get(name)
            plans.tensors_in(self.tensor, (value,), found)
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
            return digest.tensor_digest(generator.get_state())
        except RuntimeError:
            # While a CUDA graph is captured the state can't be read.
            return None


def _mode_class():
    """The dispatch mode, made when torch is loaded: its base class comes from there."""
    base = importlib.import_module("torch.utils._python_dispatch").TorchDispatchMode

    class Trace(base):
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
            return not hasattr(base, "ignore_compile_internals")

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return self._trace.dispatch(func, args, kwargs or {})

    return Trace

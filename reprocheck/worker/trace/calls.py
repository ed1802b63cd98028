"""The call trace: numpy and cupy functions, methods and operators that the workload's own code runs, as operators.

Records are those of `ops`, with names such as `numpy.linalg.solve`, `numpy.ndarray.sum`, `numpy @`, and functions of
toolboxes under their own name. A call is recorded when arrays of numpy or cupy go in or come out, or when a number or a
tensor comes out of somebody else's code; what is torch's alone is left to `ops`. Arguments that a call has changed
count as outputs. Calls of the workload's own functions are not recorded: what happens inside them is.
"""

import builtins
import os
import sys
import threading

from . import callees, digest, hooks, values
from .later import Later
from .own import OTHER, OWN
from .rewrite import HOOKS, Rewriter, hook_name

__all__ = ["CallTrace"]

_BLANK = ("empty", "empty_like", "empty_aligned", "ndarray")
"""What these return is whatever the memory held."""
_ARRAYS = ("numpy", "cupy")


class _Call:
    """A call under way: its arguments as they are evaluated, with their facts from before the call."""

    __slots__ = ("arrays", "begun", "callee", "facts", "fills", "random", "site", "text")

    def __init__(self, site, callee):
        self.site = site
        self.callee = callee
        self.begun = ()
        self.arrays, self.facts, self.fills, self.text = [], [], [], []
        self.random = None


class CallTrace:
    """Records calls from `start` to `stop`, in the thread that started it."""

    def __init__(self, own, sink, off, keep=None, kernels=None):
        """As `ops.OpTrace`; `off` keeps dispatch modes away from digests while it is entered."""
        self._own = own
        self._sink = sink
        self._off = off
        self._keep = keep
        self._kernels = kernels
        self._calls = {}
        self._thread = threading.get_ident()
        self._quiet = False
        self._later = Later()
        self._loaded = None
        self._rewriter = Rewriter(self._is_own)

    def start(self):
        """Install the hooks, and rewrite the workload's functions; a script is rewritten when it is compiled."""
        os.register_at_fork(after_in_child=self._silence)
        for name, hook in zip(HOOKS, hooks.functions(self)):
            setattr(builtins, hook_name(name), hook)
        self._rewriter.functions()
        # What the workload imports while it runs.
        self._later.whenever(self._is_own, lambda _: self._rewriter.functions())
        workload = self._workload()
        if workload is not None:
            workload.compile = self._compile
            workload.loaded, self._loaded = self._rewriter.functions, workload.loaded

    def _is_own(self, file):
        return self._own.file_kind(file) == OWN

    def stop(self):
        """Give the functions their code back. The hooks stay, for generators that are still running, and do nothing."""
        self._silence()
        self._calls.clear()
        self._later.stop()
        self._rewriter.restore()
        workload = self._workload()
        if "compile" in vars(workload or builtins.object):
            del workload.compile
            workload.loaded = self._loaded

    def _workload(self):
        return sys.modules.get(__name__.rpartition(".trace.")[0] + ".workload")

    def _silence(self):
        self._quiet = True

    def _compile(self, source, file, mode):
        return self._rewriter.compile(source, file) if mode == "exec" else compile(source, file, mode)

    def begin(self, frame, site, function, first):
        """A call of `function` begins; its arguments follow."""
        if self._quiet or self._sink.full or threading.get_ident() != self._thread:
            return
        calls = self._calls.setdefault(id(frame), [])
        while first and calls:
            # An exception left it behind.
            self._over(calls.pop(), None)
        kind = callees.kind(self._own, function)
        call = _Call(site, function if kind != OWN else None)
        calls.append(call)
        if self._kernels is not None and kind != OWN:
            call.begun = (self._kernels.begin(),)
        owner = getattr(function, "__self__", None)
        if kind != OWN and owner is not None:
            if values.library(owner) in _ARRAYS:
                self._add(call, owner)
            call.random = callees.generator_state(owner)

    def argument(self, frame, value, name):
        """One of the call's arguments is evaluated."""
        calls = self._calls.get(id(frame))
        if not calls or calls[-1].callee is None:
            return
        call = calls[-1]
        if name == "out":
            call.fills += [leaf for _, leaf in values.leaves("", value)]
            return
        library = values.library(value)
        if library is not None and library != "number":
            self._add(call, value)
        elif library == "number" or value is None or isinstance(value, str):
            call.text.append(repr(value) if name is None else "%s=%r" % (name, value))
        elif isinstance(value, (list, tuple)):
            for _, leaf in values.leaves("", value):
                if values.library(leaf) != "number":
                    self._add(call, leaf)
                else:
                    call.text.append(repr(leaf))

    def finish(self, frame, site, result):
        """The call returned `result`."""
        calls = self._calls.get(id(frame))
        while calls:
            call = calls.pop()
            if call.site == site:
                break
            self._over(call, None)
        else:
            return
        if not calls:
            del self._calls[id(frame)]
        if call.callee is None:
            return
        kind = callees.kind(self._own, call.callee)
        results = [leaf for _, leaf in values.leaves("", result)] if not callees.is_state(result) else []
        libraries = {values.library(value) for value in (*call.arrays, *call.fills, *results)}
        foreign = kind == OTHER and bool(
            libraries & {"torch"} or any(type(item) in (float, complex) for item in results)
        )
        if not libraries & set(_ARRAYS) and not foreign:
            self._over(call, None)
            return
        name = callees.name(call.callee)
        changed = call.fills
        if callees.may_change(call.callee, kind):
            facts = [self._fact(value) for value in call.arrays]
            self._sink.settle()
            pairs = zip(call.arrays, call.facts, facts)
            changed = changed + [value for value, before, now in pairs if before != now]
        results += [value for value in changed if not any(value is other for other in results)]
        intact = not any(value is other for value in changed for other in call.arrays)
        self._record(frame, name, call, results, blank=name.rpartition(".")[2] in _BLANK, intact=intact)

    def operation(self, frame, sign, function, operands):
        """Run an operator of the language and record it if it works on arrays."""
        if self._quiet or threading.get_ident() != self._thread:
            return function(*operands)
        if not any(values.library(value) in _ARRAYS for value in operands):
            return function(*operands)
        call = _Call(None, function)
        for value in operands:
            if values.library(value) == "number":
                call.text.append(repr(value))
            else:
                self._add(call, value)
        if self._kernels is not None:
            call.begun = (self._kernels.begin(),)
        result = function(*operands)
        library = next(filter(_ARRAYS.__contains__, map(values.library, operands)))
        self._record(frame, "%s %s" % (library, sign), call, [leaf for _, leaf in values.leaves("", result)])
        return result

    def _over(self, call, number):
        """The kernels of a call are known; `number` is None if it is not recorded."""
        for begun in call.begun:
            self._kernels.end(begun, number)
        call.begun = ()

    def _add(self, call, value):
        call.arrays.append(value)
        call.facts.append(self._fact(value))

    def _fact(self, value):
        if self._kernels is not None:
            return [digest.dtype_name(value), list(value.shape), None] if hasattr(value, "shape") else None
        with self._off:
            return self._sink.fact(value)

    def _record(self, frame, name, call, results, blank=False, intact=True):
        number = self._sink.number()
        facts = [self._fact(value) for value in results]
        if blank:
            for value, fact in zip(results, facts):
                if fact is not None:
                    self._sink.unfilled(value, fact)
            facts = [[dtype, shape, None] for dtype, shape, _ in filter(None, facts)]
        record = {"k": "op", "n": number, "op": name, "in": [fact for fact in call.facts if fact is not None]}
        record["out"] = [fact for fact in facts if fact is not None]
        if call.random is not None:
            record["rng"] = call.random
        if call.text:
            record["a"] = ", ".join(call.text)[:400]
        record["s"] = self._sink.site(frame.f_code, frame.f_lineno)
        self._sink.write(record)
        if self._keep is not None:
            if intact:
                # What the call has changed is not what it was given.
                self._keep(number, "in", call.arrays)
            self._keep(number, "out", results)
        self._over(call, number)

"""Traces of one trial: what each line of the workload, and each operator it ran, produced.

`start` is called right before the workload's function, `stop` right after; in between records are appended to
`trace.jsonl`. What is asked for is in `job["trace"]`:

* `modes`: some of `lines` and `ops`, or `kernels` alone, which lists operators with the kernels they ran, undigested.
* `keep`: values to save in full, `{"line": [number, variable], "op": number}`. They become outputs of the trial, under
  names that begin with `KEPT`.
* `seconds`: after so many no more is traced.
* `exact`: digest every input anew (see `memory`).
"""

import sys

__all__ = ["KEPT", "start"]

VERSION = 1
KEPT = "@trace/"
"""Begins the names of values that are kept in full; no output of a workload is called so."""


def start(job, lines):  # noqa: ARG001 - the seam hands over the trial's record
    """The trace that `job["trace"]` asks for, running."""
    return _Trace(job)


class _Trace:
    """The parts that run, in the order in which they were started."""

    def __init__(self, job):
        from .own import Own
        from .sink import Sink
        from .watch import Watch

        wanted = job["trace"]
        modes = wanted["modes"]
        self._keep = wanted.get("keep") or {}
        self._sink = Sink(job["folder"] + "/trace.jsonl", wanted.get("seconds"))
        versions = {name: getattr(sys.modules.get(name), "__version__", None) for name in ("torch", "numpy", "cupy")}
        self._sink.write({"k": "trace", "version": VERSION, "modes": list(modes), "libraries": versions})
        own = Own(job)
        self._parts = [Watch(own, self._sink)]
        kernels = None
        if "kernels" in modes:
            from .kernels import Kernels

            kernels = Kernels(self._sink, job["folder"])
            self._parts.append(kernels)
        if "ops" in modes or kernels is not None:
            from .calls import CallTrace

            keep = self._op if "op" in self._keep else None
            self._parts.append(CallTrace(own, self._sink, _Off(), keep, kernels))
            if hasattr(sys.modules.get("torch"), "Tensor"):
                from .ops import OpTrace

                self._parts.append(OpTrace(own, self._sink, keep, wanted.get("exact", False), kernels))
        if "lines" in modes:
            from .lines import LineTrace

            self._parts.append(LineTrace(own, self._sink, _Off(), self._line if "line" in self._keep else None))
        for part in self._parts:
            part.start()

    def stop(self):
        """End the trace and complete its file."""
        for part in reversed(self._parts):
            part.stop()
        self._sink.close()

    def _line(self, number, path, leaf):
        if [number, path] == list(self._keep["line"]):
            sys.modules["reprocheck"].record(KEPT + "line", leaf)

    def _op(self, number, side, arrays):
        if number == self._keep["op"]:
            for index, array in enumerate(arrays):
                sys.modules["reprocheck"].record("%s%s[%d]" % (KEPT, side, index), array)


class _Off:
    """Entered, it keeps torch's dispatch modes and `__torch_function__` away from what the trace itself computes."""

    def __init__(self):
        self._guards = []

    def __enter__(self):
        torch = sys.modules.get("torch")
        guards = ()
        if hasattr(torch, "Tensor"):
            guards = (torch._C._DisableTorchDispatch(), torch._C.DisableTorchFunction())
        for guard in guards:
            guard.__enter__()
        self._guards.append(guards)

    def __exit__(self, *_):
        for guard in reversed(self._guards.pop()):
            guard.__exit__(None, None, None)

"""Traces of one trial: what each line of the workload, and each operator it ran, produced.

`start` is called right before the workload's function, `stop` right after; in between records are appended to
`trace.jsonl`. What is asked for is in `job["trace"]`: `modes` (some of `lines`, `ops`, `kernels`), and `keep`, the
values to save in full: `{"line": [number, variable], "op": number}`. Kept values become outputs of the trial, under
names that start with `KEPT`.
"""

import sys

__all__ = ["KEPT", "start"]

VERSION = 1
KEPT = "@trace/"
"""Begins the names of values that are kept in full; no output of a workload is called so."""


def start(job, lines):
    """The trace that `job["trace"]` asks for, running. `lines` is the trial's record, which is told about it."""
    return _Trace(job, lines)


class _Trace:
    def __init__(self, job, lines):
        from .own import Own
        from .sink import Sink

        wanted = job["trace"]
        modes = wanted["modes"]
        self._keep = wanted.get("keep") or {}
        self._sink = Sink(job["folder"] + "/trace.jsonl")
        self._lines = lines
        versions = {name: getattr(sys.modules.get(name), "__version__", None) for name in ("torch", "numpy", "cupy")}
        self._sink.write({"k": "trace", "version": VERSION, "modes": list(modes), "libraries": versions})
        own = Own(job)
        self._parts = []
        if "ops" in modes:
            from .calls import CallTrace

            self._parts.append(CallTrace(own, self._sink, _Off(), self._op if "op" in self._keep else None))
        if "ops" in modes and "torch" in sys.modules:
            from .ops import OpTrace

            self._parts.append(OpTrace(own, self._sink, self._op if "op" in self._keep else None, wanted.get("exact", False)))
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

    def _op(self, number, side, tensors):
        if number == self._keep["op"]:
            for index, tensor in enumerate(tensors):
                sys.modules["reprocheck"].record("%s%s[%d]" % (KEPT, side, index), tensor)


class _Off:
    """Entered, it keeps torch's dispatch modes and `__torch_function__` away from what the trace itself computes."""

    def __init__(self):
        self._guards = []

    def __enter__(self):
        torch = sys.modules.get("torch")
        if torch is not None and hasattr(torch, "Tensor"):
            guards = (torch._C._DisableTorchDispatch(), torch._C.DisableTorchFunction())
            for guard in guards:
                guard.__enter__()
            self._guards.append(guards)
        else:
            self._guards.append(())

    def __exit__(self, *_):
        for guard in reversed(self._guards.pop()):
            guard.__exit__(None, None, None)

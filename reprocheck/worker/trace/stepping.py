"""How the interpreter tells that a line is about to run: `sys.monitoring` from Python 3.12 on, `settrace` before.

Both tell a `lines.LineTrace`: `called(frame)`, `at(frame, line)`, `returned(frame, value)`, for the code it `owns`.
"""

import sys

__all__ = ["driver"]


def driver(trace):
    """What calls `trace`, not started yet."""
    return _Monitoring(trace) if hasattr(sys, "monitoring") else _Settrace(trace)


class _Settrace:
    """Before Python 3.12."""

    def __init__(self, trace):
        self._trace = trace
        self._before = None
        self._owned = {}  # by address: this is asked at every call, and hashing a code object costs more than the rest

    def start(self):
        self._before = sys.gettrace()
        sys.settrace(self._global)

    def stop(self):
        sys.settrace(self._before)

    def _global(self, frame, event, _):
        code = frame.f_code
        owned = self._owned.get(id(code))
        if owned is None:
            # Who owns it holds it, so that its address is not given away.
            owned = self._owned[id(code)] = self._trace.owns(code)
        if not owned or event != "call":
            return None
        self._trace.called(frame)
        return self._local

    def _local(self, frame, event, value):
        if event == "line":
            self._trace.at(frame, frame.f_lineno)
        elif event == "return":
            self._trace.returned(frame, value)
        return self._local


class _Monitoring:
    """Python 3.12 and later: only the workload's own code is instrumented, everything else runs at full speed."""

    def __init__(self, trace):
        self._trace = trace
        self._tool = None

    def start(self):
        monitoring = sys.monitoring
        self._tool = next(number for number in (3, 4, 5, 2, 1, 0) if monitoring.get_tool(number) is None)
        monitoring.use_tool_id(self._tool, "reprocheck")
        events = monitoring.events
        for event, callback in (
            (events.PY_START, self._start),
            (events.PY_RESUME, self._resume),
            (events.LINE, self._line),
            (events.PY_RETURN, self._return),
            (events.PY_YIELD, self._return),
        ):
            monitoring.register_callback(self._tool, event, callback)
        monitoring.set_events(self._tool, events.PY_START)

    def stop(self):
        if self._tool is not None:
            sys.monitoring.set_events(self._tool, 0)
            sys.monitoring.free_tool_id(self._tool)
            self._tool = None

    def _start(self, code, _):
        if not self._trace.owns(code):
            return sys.monitoring.DISABLE
        events = sys.monitoring.events
        wanted = events.LINE | events.PY_RETURN | events.PY_YIELD | events.PY_RESUME
        if sys.monitoring.get_local_events(self._tool, code) != wanted:
            sys.monitoring.set_local_events(self._tool, code, wanted)
        self._trace.called(sys._getframe(1))
        return None

    def _resume(self, _code, _offset):
        self._trace.called(sys._getframe(1))

    def _line(self, _code, line):
        self._trace.at(sys._getframe(1), line)

    def _return(self, _code, _offset, value):
        self._trace.returned(sys._getframe(1), value)

"""The line trace: after each executed line of the workload's own files, what its variables that changed now hold.

A record is `{"k": "line", "s": site, "n": number, "call": number, "it": [[site of a loop, iteration], …],
"r": {…}, "v": {…}, "c": {…}}`: `v` maps the variables that the statement set to their facts afterwards, `c` those that
it changed in place, `r` those that were met for the first time to their facts before it ran. Loops are those around the
statement, the callers' included, outermost first. A statement over several lines counts once, at its first line.

Names on the statement are looked at, with the arrays inside containers, modules and optimisers; nothing is evaluated
(attributes are read from `__dict__`), so no code of the user runs because of the trace.
"""

import threading

from . import stepping, values
from .own import OWN
from .syntax import Source

__all__ = ["LineTrace"]

RETURNED = "return value"
_MAX_FAILURES = 1_000
_GENERATOR_FLAGS = 0x20 | 0x80 | 0x200


class _Frame:
    """What is known of one call of one function."""

    __slots__ = ("call", "code", "counts", "first", "known", "last", "line", "scope", "source", "statement")

    def __init__(self, code, source, call, scope):
        self.code = code
        self.source = source
        self.call = call
        self.scope = scope
        self.statement = None
        """The statement that is being executed."""
        self.last = None
        """The one before; still known when a generator goes on."""
        self.line = 0
        self.known = {}
        self.first = {}
        self.counts = {}


class LineTrace:
    """Traces the calling thread from `start` to `stop`."""

    def __init__(self, own, sink, modes, keep=None):
        """`modes` switches dispatch modes off while it is entered; `keep` is called with (number, path, value)."""
        self._own = own
        self._sink = sink
        self._modes = modes
        self._keep = keep
        self._sources = {}
        self._frames = {}
        self._calls = {}
        self._globals = {}
        self._versions = {}
        self._number = 0
        self._busy = False
        self._failures = 0
        self._thread = threading.get_ident()
        self._driver = None

    def start(self):
        """Begin with the next function that is called."""
        self._driver = stepping.driver(self)
        self._driver.start()

    def stop(self):
        """End; what the last statement of an unfinished function did is not recorded."""
        self._driver.stop()

    def owns(self, code):
        """Whether the lines of this code are traced: the workload's functions and module bodies."""
        return self._own.kind(code) == OWN and (code.co_name[0] != "<" or code.co_name == "<module>")

    def called(self, frame):
        """A function of the workload begins, or a generator goes on."""
        state = self._frames.get(id(frame))
        if state is not None and state.code is frame.f_code and frame.f_code.co_flags & _GENERATOR_FLAGS:
            return
        code = frame.f_code
        source = self._sources.get(code.co_filename)
        if source is None:
            source = self._sources[code.co_filename] = Source(code.co_filename)
        call = self._calls[code] = self._calls.get(code, 0) + 1
        self._frames[id(frame)] = _Frame(code, source, call, self._globals.setdefault(id(frame.f_globals), {}))

    def at(self, frame, line):
        """`line` is about to be executed: the statement before it is complete."""
        if self._busy or threading.get_ident() != self._thread:
            return
        state = self._frames.get(id(frame))
        if state is None or state.code is not frame.f_code:
            self.called(frame)
            state = self._frames[id(frame)]
        statement = state.source.statement(line)
        if statement is None or (statement is state.statement and line != state.line):
            # Inside one statement that goes over several lines.
            state.line = line
            return
        self._guarded(self._step, frame, state, statement, line)

    def returned(self, frame, value):
        """The function hands `value` back (or yields it)."""
        state = self._frames.get(id(frame))
        if state is None or self._busy or threading.get_ident() != self._thread:
            return
        self._guarded(self._last, frame, state, value)
        if not frame.f_code.co_flags & _GENERATOR_FLAGS:
            del self._frames[id(frame)]

    def _guarded(self, function, *arguments):
        self._busy = True
        try:
            with self._modes:
                function(*arguments)
        except Exception as error:
            # A variable that can't be looked at, while torch's compiler is at work for one.
            self._failures += 1
            self._sink.note("a line could not be traced: %s" % type(error).__name__)
            if self._failures >= _MAX_FAILURES:
                self._driver.stop()
        finally:
            self._busy = False

    def _step(self, frame, state, statement, line):
        self._finish(frame, state)
        if statement.is_loop:
            inside = state.last is not None and statement.line in state.last.loops
            state.counts[statement.line] = state.counts.get(statement.line, 0) + 1 if inside else 1
        state.statement = state.last = statement
        state.line = line
        state.first = {}
        new = [item for item in self._found(frame, state, statement.reads) if item[0] not in item[2]]
        for (path, leaf, known, _), fact in zip(new, self._facts(new)):
            known[path] = state.first[path] = fact
            self._kept(path, leaf)

    def _last(self, frame, state, value):
        leaves = values.leaves(RETURNED, value)
        self._finish(frame, state, leaves)
        state.statement = None

    def _finish(self, frame, state, returned=()):
        """Record what the statement that was executed last has set or changed."""
        statement = state.statement
        if statement is None:
            return
        after, changed = {}, {}
        found = self._found(frame, state, statement.reads)
        for (path, leaf, known, _), fact in zip(found, self._facts(found)):
            mine = any(path == name or path.startswith((name + ".", name + "[")) for name in statement.sets)
            if mine or known.get(path) != fact:
                known[path] = fact
                (after if mine else changed)[path] = fact
                self._kept(path, leaf)
        for path, leaf in returned:
            after[path] = self._sink.fact(leaf)
            self._kept(path, leaf)
        if after or changed or state.first:
            self._record(frame, state, statement, after, changed)

    def _record(self, frame, state, statement, after, changed):
        record = {"k": "line", "s": self._sink.site(state.code, statement.line), "n": self._number, "call": state.call}
        loops = self._loops(frame)
        if loops:
            record["it"] = loops
        if state.first:
            record["r"] = state.first
        if after:
            record["v"] = after
        if changed:
            record["c"] = changed
        state.first = {}
        self._number += 1
        self._sink.write(record)
        if self._sink.full:
            self._driver.stop()

    def _loops(self, frame):
        found = []
        while frame is not None:
            state = self._frames.get(id(frame))
            if state is not None and state.code is frame.f_code and state.statement is not None:
                own = [(line, state.counts.get(line, 1)) for line in state.statement.loops]
                found[:0] = [[self._sink.site(state.code, line), count] for line, count in own]
            frame = frame.f_back
        return found

    def _found(self, frame, state, names):
        """`(path, leaf, the digests known in its scope, whether it may be cached)` for the names on a statement."""
        local = frame.f_locals
        found = []
        for name in names:
            root, *rest = name.split(".")
            if root in local:
                value, known = local[root], state.known
            elif root in frame.f_globals:
                value, known = frame.f_globals[root], state.scope
            else:
                continue
            value = _inside(value, rest)
            if value is not None:
                plain = values.library(value) is not None or isinstance(value, (dict, list, tuple))
                found += [(path, leaf, known, not plain) for path, leaf in values.leaves(name, value)]
            if rest and rest[-1] == "backward":
                found += _gradients(local, state.known)
        return found

    def _facts(self, found):
        """The facts of leaves, settled, so that they can be compared."""
        facts = [self._fact(leaf, cached) for _, leaf, _, cached in found]
        self._sink.settle()
        return [self._sink.filled(leaf, fact) for (_, leaf, _, _), fact in zip(found, facts)]

    def _fact(self, leaf, cached):
        """The fact of a leaf; a module's unchanged parameters are not read again and again."""
        if cached and values.library(leaf) == "torch":
            try:
                stamp = (leaf._version, leaf.data_ptr(), leaf.shape)
            except RuntimeError:
                # Inference tensors count no versions, and subclasses may have no memory of their own.
                return self._sink.fact(leaf)
            known = self._versions.get(id(leaf))
            if known is None or known[0] != stamp:
                known = self._versions[id(leaf)] = (stamp, self._sink.fact(leaf))
            return known[1]
        return self._sink.fact(leaf)

    def _kept(self, path, leaf):
        if self._keep is not None:
            self._keep(self._number, path, leaf)


def _inside(value, names):
    """The value at the end of a chain of attributes, read without running code; None if that is not possible."""
    for name in names:
        there = getattr(value, "__dict__", None)
        if not isinstance(there, dict):
            return None
        if name not in there:
            there = next(
                (there[kind] for kind in ("_parameters", "_buffers", "_modules") if name in (there.get(kind) or ())),
                None,
            )
        if there is None:
            return None
        value = there[name]
    return value


def _gradients(local, known):
    """What a backward pass may have filled: the gradients of the frame's modules and leaf tensors."""
    found = []
    for name, value in list(local.items()):
        for path, leaf in values.state_of(name, value):
            if path.endswith(".grad"):
                found.append((path, leaf, known, True))
        if values.library(value) == "torch" and value.is_leaf and value.grad is not None:
            found.append((name + ".grad", value.grad, known, False))
    return found

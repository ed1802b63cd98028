"""The trace under way: records with short site numbers, digests of devices fetched in batches, JSON lines on disk."""

import contextlib
import json
import os
import sys
import time
import weakref

from . import digest, values

__all__ = ["LIMIT", "Sink"]

LIMIT = 200_000
"""Records a trace may have. What happens after that, or after the seconds allowed, is not traced, and it says so."""
_BATCH = 256


class Sink:
    """Writes `trace.jsonl`: lines `{"k": kind, …}`; sites (file, line, function) are written once, then numbered."""

    def __init__(self, path, seconds=None):
        """Create `path`; a child forked by the workload writes nothing."""
        self._deadline = None if seconds is None else time.monotonic() + seconds
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_CLOEXEC", 0), 0o644)
        self._pid = os.getpid()
        self._sites = {}
        self._waiting = []
        self._records = []
        self._numbers = 0
        self._unfilled = {}
        self.count = 0
        self.full = False

    def site(self, code, line):
        """The number of a place in the code; None for no code."""
        if code is None:
            return None
        key = (code, line)
        found = self._sites.get(key)
        if found is None:
            found = self._sites[key] = len(self._sites)
            name = getattr(code, "co_qualname", code.co_name)
            self._records.append({"k": "site", "id": found, "file": code.co_filename, "line": line, "function": name})
        return found

    def write(self, record):
        """Keep a record; facts of it that wait for a device may still change until it is flushed."""
        if self.full:
            return
        self.count += 1
        self._records.append(record)
        if self.count >= LIMIT:
            self._cut("the trace stops after %d records" % LIMIT)
        if len(self._records) >= _BATCH:
            self.flush()
            if self._deadline is not None and time.monotonic() > self._deadline:
                self._cut("the trace stops here: it takes too long")

    def _cut(self, text):
        self.full = True
        self._records.append({"k": "note", "text": text, "cut": 1})

    def number(self):
        """The number of the operator that begins now."""
        self._numbers += 1
        return self._numbers - 1

    def note(self, text, **fields):
        """Something the reader of the trace has to know; each text once is enough."""
        self._records.append({"k": "note", "text": text, **fields})

    def fact(self, value):
        """`[dtype, shape, digest]` of an array or number, None for anything else. Dispatch modes have to be off.

        Numbers are given exactly instead of a digest (floats as `float.hex`).
        """
        kind = type(value)
        if kind is float:
            return ["float", [], value.hex()]
        if kind is int or kind is bool:
            return [kind.__name__, [], str(value)]
        if kind is complex:
            return ["complex", [], "%s%s%sj" % (value.real.hex(), "" if value.imag < 0 else "+", value.imag.hex())]
        library = values.library(value)
        if library == "torch":
            return self._summed(value, digest.tensor_sum)
        if library is not None and library != "number":
            return self._summed(value, digest.array_total)
        return None

    def _summed(self, value, total_of):
        fact = [digest.dtype_name(value), list(value.shape), None]
        try:
            total = total_of(value)
        except Exception as error:
            fact[2] = "unreadable: " + type(error).__name__
            return fact
        self.complete(fact, total)
        return fact

    def complete(self, fact, total):
        """Put the digest of a sum into its fact: now, or when the sum was fetched from its device."""
        if total is None:
            fact[2] = "no values"
        elif type(total) is int:
            fact[2] = digest.finish(total, fact[0], fact[1])
        else:
            self._waiting.append((fact, total))
            if len(self._waiting) >= 4 * _BATCH:
                self.settle()

    def settle(self):
        """Bring the sums that wait on devices over, one copy for each device: all facts have their digests then."""
        waiting, self._waiting = self._waiting, []
        groups = {}
        for fact, total in waiting:
            groups.setdefault((type(total), str(total.device)), []).append((fact, total))
        for (kind, _), items in groups.items():
            stack = sys.modules[kind.__module__.partition(".")[0]].stack
            for (fact, _), number in zip(items, stack([total for _, total in items]).tolist()):
                fact[2] = digest.finish(number, fact[0], fact[1])

    def unfilled(self, array, fact):
        """Remember that an array is fresh memory which nobody has filled yet."""
        with contextlib.suppress(TypeError):
            self._unfilled[id(array)] = (weakref.ref(array), fact)

    def filled(self, array, fact):
        """The (settled) fact of an array, without a digest as long as it is what `unfilled` saw."""
        known = self._unfilled.get(id(array))
        if known is None or known[0]() is not array:
            return fact
        if known[1] == fact:
            return [fact[0], fact[1], None]
        del self._unfilled[id(array)]
        return fact

    def flush(self):
        """Write everything kept so far."""
        self.settle()
        records, self._records = self._records, []
        if os.getpid() != self._pid or not records:
            return
        data = memoryview("".join([json.dumps(record, separators=(",", ":")) + "\n" for record in records]).encode())
        while data:
            data = data[os.write(self._fd, data) :]

    def close(self):
        """Write the rest and close the file."""
        self.flush()
        os.close(self._fd)

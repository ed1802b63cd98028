"""Snapshots: which readers run at which phase, and what each said.

Readers live in `snapshot/`, one small module per kind: `name`, `phases`, `read()`. Those of phases t0 and t1
are loaded at start and obey the strict import rule; the others are loaded after the last subject, and those
that latch or load something run only at t3, when the outputs are on disk.
"""

import sys
import time

from . import snapshot


class Capture:
    """Takes the snapshots of one trial."""

    def __init__(self, job, lines):
        """Load the early readers, and start the audit hook."""
        self._lines = lines
        self._extra = job["probes"]
        self._loaded = {}
        for name in snapshot.EARLY:
            self._loaded[name] = _reader(name)
            # A subject that walks sys.modules should meet as little of us as can be.
            del sys.modules["_reprocheck_worker.snapshot." + name]
        from . import events

        self._events = events
        events.start(lines.since)

    def move(self):
        """Follow the lines to another process, and to its clock."""
        self._events.move(self._lines.since)

    def snapshot(self, phase):
        """Read every reader of `phase` (`t0`, `t1:<subject>`, `t2`, `t3`) and write the snapshot."""
        begin = time.perf_counter()
        stage = phase.partition(":")[0]
        self._lines.write_all("event", self._events.drain())
        self._load(stage)
        kinds = {}
        with snapshot.quiet():
            for module in list(self._loaded.values()):
                if stage in module.phases:
                    kinds.setdefault(module.name, {}).update(_read(module))
        self._lines.write("snapshot", phase=phase, ms=round((time.perf_counter() - begin) * 1e3, 3), kinds=kinds)

    def _load(self, stage):
        """Load the readers that may run from this stage on; those of a library only when it is there."""
        names = [name for library, name in snapshot.WHEN_LOADED.items() if stage != "t0" and library in sys.modules]
        if stage in ("t2", "t3"):
            names += snapshot.LATE
            for path in self._extra:
                if path not in self._loaded:
                    self._loaded[path] = _probe(path)
        if stage == "t3":
            names += snapshot.LAST
        for name in names:
            if name not in self._loaded:
                self._loaded[name] = _reader(name)


def _reader(name):
    full = "_reprocheck_worker.snapshot." + name
    __import__(full)
    return sys.modules[full]


def _read(module):
    try:
        return module.read()
    except Exception as error:
        return {"error": "%s: %s" % (type(error).__name__, error)}


def _probe(path):
    """A reader of the user's own, from a file."""
    import importlib.util

    name = "_reprocheck_probe_" + path.rpartition("/")[2].rpartition(".")[0]
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

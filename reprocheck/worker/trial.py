"""One trial, start to end: subjects in order, snapshots between them, the workload, its outputs.

Each step is written to `phases.jsonl` as it happens, so a crash still says where. Only what is part of the
interpreter and raw `/proc` reads are used before the last subject; everything else is loaded afterwards.
"""

import posix
import sys
import time

from . import jsonl

_state = {"fault": None, "folder": None}


class Fault(Exception):
    """A step failed; carries the phase it belongs to and the kind of failure."""

    def __init__(self, kind, phase, error, subject=None):
        """`kind` as in the record's `Failure.kind`; `error` the exception that was raised."""
        super().__init__(phase)
        self.kind = kind
        self.phase = phase
        self.error = error
        self.subject = subject


def run(job, start):
    """Carry out `job`; everything that happens is in `phases.jsonl` when this returns."""
    lines = jsonl.Lines(job["folder"] + "/phases.jsonl", time.perf_counter, start)
    _settle_in(job["folder"])
    version = sys.version_info
    lines.write(
        "start",
        python={
            "version": "%d.%d.%d" % tuple(version[:3]),
            "implementation": sys.implementation.name,
            "executable": sys.executable,
            "prefix": sys.prefix,
            "platform": sys.platform,
        },
    )
    status = None
    try:
        _trial(job, lines)
    except Fault as fault:
        if not lines.own:
            posix._exit(1)
        status = _report(fault, lines)
    except Exception as error:
        if not lines.own:
            posix._exit(1)
        status = _report(Fault("harness", "working", error), lines)
    if not lines.own:
        # A child forked by the workload came back through our frames: it is not the trial.
        posix._exit(0)
    _sibling("left").tell(_state["folder"])
    lines.write("end", status=status)
    if status:
        sys.exit(status)


def _sibling(name):
    """A module of the worker, loaded when it is first needed."""
    name = "_reprocheck_worker." + name
    __import__(name)
    return sys.modules[name]


def _settle_in(folder):
    """Work in `folder` from now on; faulthandler writes the stack of a crash there (a C module, no shared object)."""
    _state["folder"] = folder
    try:
        import faulthandler
    except ImportError:
        return
    flags = posix.O_WRONLY | posix.O_CREAT | getattr(posix, "O_CLOEXEC", 0)
    fd = posix.open(folder + "/fault.txt", flags, 0o644)
    if _state["fault"] is not None:
        # A forked child: the number its parent used is free to point at its own file.
        posix.dup2(fd, _state["fault"], False)
        posix.close(fd)
        return
    faulthandler.enable(file=fd, all_threads=True)
    _state["fault"] = fd


def _trial(job, lines):
    subjects = job["subjects"]
    if job["sys_path0"] is not None and not getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, job["sys_path0"])
    sys.path[:0] = [entry for entry in job["sys_path"] if entry not in sys.path]
    sys.argv = list(job["argv"])
    sink = _install_record()

    capture = actions = None
    if job["capture"]:
        capture = _sibling("capture").Capture(job, lines)
    if job["actions"]:
        actions = _sibling("actions").Actions(job["actions"], lines)
    effective = [name for name in subjects if name in sys.modules]
    lines.write("ready", preloaded=list(effective), modules=len(sys.modules))
    blame = _blame(job, lines)
    if actions:
        _step("target", "carrying out an intervention at start", actions.at, "t0")
    if capture:
        capture.snapshot("t0")

    def go_on(first, last):
        for position, name in enumerate(subjects[first:last], first + 1):
            _subject(name, position, subjects, effective, lines)
            if actions:
                _step("target", "carrying out an intervention after " + name, actions.at, "after:" + name)
            if blame:
                blame()
            if capture:
                capture.snapshot("t1:" + name)

    done = 0
    while "upto" in job:
        # The beginning of several orders. What goes on below `serve` is a child, forked for one of them.
        fault = None
        try:
            go_on(done, job["upto"])
        except Fault as error:
            fault = error
        done = job["upto"]
        job = _sibling("forks").serve(job, lines, capture, _settle_in)
        subjects = job["subjects"]
        if fault is not None:
            raise fault
    go_on(done, len(subjects))

    if blame:
        blame(last=True)
        return
    if job.get("imports_only"):
        if capture:
            capture.snapshot("t2")
        return
    if actions:
        _step("target", "carrying out an intervention after the last subject", actions.at, "t2")
    _workload(job, lines, capture, sink, actions)


def _blame(job, lines):
    """Watch the state keys the job asks about; returns the function that writes what was found since the last call."""
    if not job["blame"]:
        return None
    blame = _sibling("blame")
    blame.start(job["blame"]["keys"], job["blame"].get("modules", ()), lines.since)

    def told(last=False):
        if last:
            blame.stop()
        lines.write_all("event", blame.drain())

    return told


def _subject(name, position, subjects, effective, lines):
    """Import one subject; `effective` grows by every subject whose import began with it."""
    already = name in sys.modules
    lines.write("importing", subject=name, position=position, already=already)
    where = "importing " + name
    if len(subjects) > 1:
        where += " (%d of %d)" % (position, len(subjects))
    try:
        # What an `import` statement calls; `importlib.import_module` would load four modules and pass by a hook
        # that somebody put into builtins.
        __import__(name)
    except BaseException as error:
        raise Fault("exception", where, error, name) from error
    if not already:
        effective.append(name)
    # Subjects it pulled in come after it. importlib moves a module to the end of sys.modules when its body has run,
    # so among several of them this is the order in which they finished.
    effective += [module for module in sys.modules if module in subjects and module not in effective]
    lines.write("imported", subject=name, position=position, effective=list(effective))


def _workload(job, lines, capture, sink, actions):
    workload = _sibling("workload")
    outputs = _sibling("outputs")
    writer = outputs.Writer(job["folder"] + "/arrays", lines)
    sink.attach(writer)
    if capture:
        capture.snapshot("t2")
    if job["target"]["kind"] == "pytest":
        call = _step("exception", "loading the workload", _sibling("pytest_target").load, job, sink, lines)
    else:
        call = _step("exception", "loading the workload", workload.load, job["target"])
    if job["seed"] is not None:
        workload.seed(job["seed"])
    if actions:
        _step("target", "carrying out an intervention before the workload", actions.at, "workload")
    trace = None
    if job["trace"]:
        trace = _sibling("trace").start(job, lines)
    lines.write("workload")
    try:
        value, is_script = call()
    except outputs.Unsupported as error:
        raise Fault("unsupported", "recording an output", error) from error
    except outputs.StorageError as error:
        raise Fault("storage", "saving the outputs", error) from error
    except SystemExit as error:
        if error.code not in (None, 0):
            raise Fault("exit", "running the workload", error) from error
        value, is_script = None, False
    except BaseException as error:
        raise Fault(getattr(error, "fault_kind", "exception"), "running the workload", error) from error
    finally:
        if trace:
            trace.stop()
    if not lines.own:
        # A child forked by the workload: what it returns is not the trial's.
        posix._exit(0)
    lines.write("returned")
    try:
        if is_script:
            writer.save_globals(value)
        elif value is not None:
            writer.save("result", value, root=True)
    except outputs.Unsupported as error:
        raise Fault("unsupported", "saving the outputs", error) from error
    except outputs.StorageError as error:
        raise Fault("storage", "saving the outputs", error) from error
    except Exception as error:
        raise Fault("harness" if _our_mistake(error) else "exception", "saving the outputs", error) from error
    lines.write("saved", outputs=writer.count)
    if capture:
        capture.snapshot("t3")


def _our_mistake(error):
    """Whether an exception is one that programs are written with, raised by our own code and not by what it called."""
    trace = error.__traceback__
    while trace.tb_next is not None:
        trace = trace.tb_next
    mistakes = (AssertionError, AttributeError, LookupError, NameError, TypeError, ValueError)
    return isinstance(error, mistakes) and trace.tb_frame.f_code.co_filename.startswith(__file__.rpartition("/")[0])


def _step(kind, phase, function, *arguments):
    try:
        return function(*arguments)
    except Fault:
        raise
    except BaseException as error:
        raise Fault(getattr(error, "fault_kind", kind), phase, error) from error


class _Sink:
    """What `reprocheck.record` writes to; buffers nothing, so that a later change to an array is not seen."""

    prefix = ""
    """Put before every name: the test under way, in a suite."""

    def __init__(self):
        self._writer = None
        self._pid = None

    def attach(self, writer):
        self._writer = writer
        self._pid = posix.getpid()

    def record(self, name, value):
        """Save `value` now as the output `name`; during subject imports, or in a forked child, do nothing."""
        if self._writer is not None and posix.getpid() == self._pid:
            self._writer.save(self.prefix + str(name), value)
        return value


def _install_record():
    """Put a stand-in for `reprocheck` into `sys.modules`, so that `record` works where it isn't installed, too."""
    sink = _Sink()
    module = type(sys)("reprocheck")
    module.__doc__ = "Stand-in for reprocheck inside a trial."
    module.__path__ = []
    module.record = sink.record
    # What a test file may import; nothing in a trial raises them.
    module.DivergenceError = type("DivergenceError", (AssertionError,), {"__module__": "reprocheck"})
    for name in ("ReprocheckError", "HarnessError", "UsageError"):
        setattr(module, name, type(name, (Exception,), {"__module__": "reprocheck"}))
    sys.modules["reprocheck"] = module
    return sink


def _report(fault, lines):
    """Write the fault with its traceback, ours left out; returns the exit status to end with."""
    error = fault.error
    fields = {
        "kind": fault.kind,
        "phase": fault.phase,
        "subject": fault.subject,
        "exception": type(error).__module__ + "." + type(error).__qualname__,
        "message": _text(error),
    }
    if isinstance(error, ModuleNotFoundError):
        fields["missing_module"] = error.name
    status = 1
    if isinstance(error, SystemExit):
        status = error.code if isinstance(error.code, int) else 1
        fields["exit_code"] = status
        if error.code is not None and not isinstance(error.code, int):
            # What the interpreter would have printed.
            sys.stderr.write(_text(error) + "\n")
    elif fault.kind in ("exception", "unsupported", "harness"):
        fields["traceback"] = _traceback(error, ours=fault.kind == "harness")
    fields.update(getattr(error, "fault_fields", {}))
    lines.write("fault", **fields)
    text = fields.get("traceback")
    if text:
        sys.stderr.write(text)
    return status or 1


def _text(error):
    try:
        return str(error)
    except Exception as second:
        return "<message unavailable: %s>" % type(second).__name__


def _traceback(error, ours):
    """The traceback from the first frame that is the user's on; all of it for a fault that is `ours`."""
    import traceback

    here = __file__.rpartition("/")[0]
    trace = error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if not (name.startswith(here) or "importlib" in name):
            break
        trace = trace.tb_next
    if trace is None and ours:
        trace = error.__traceback__
    lines = traceback.format_exception(type(error), error, trace, chain=False)
    return "".join(lines)

"""Fork trees with real processes: records as a fresh trial's, faults where they happen, and nothing left behind."""

from __future__ import annotations

import ast
import os
import signal
import sys
import textwrap
import threading
import time
from collections.abc import Iterable, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from reprocheck.engine.environment import user_environment
from reprocheck.engine.forks import LOST, ForkEngine
from reprocheck.engine.local import LocalEngine
from reprocheck.engine.phases import RawRecord
from reprocheck.engine.trial import Job
from reprocheck.errors import HarnessError
from reprocheck.model import Record, Target, Trial
from tests.integration.engine.test_worker_start import interpreters

pytestmark = pytest.mark.long

WORK = "import os\ndef run():\n    return os.environ.get('FIRST', '')\n"
A = "import os; os.environ.setdefault('FIRST', 'a'); print('import a')\n"
B = "import os; os.environ.setdefault('FIRST', 'b'); print('import b')\n"


class Trials:
    """Runs trials of all orders of tiny toolboxes in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.scratch = folder / "scratch"
        self.outputs: dict[tuple[tuple[str, ...], int], list[bytes]] = {}

    def write(self, work: str = WORK, **modules: str) -> None:
        for name, source in {"work": work, **modules}.items():
            (self.folder / f"{name}.py").write_text(textwrap.dedent(source))

    def engine(self, *, jobs: int = 2, timeout: float = 30.0, python: str = sys.executable) -> ForkEngine:
        environment = {name: value for name, value in user_environment().items() if not name.startswith("PYTHON")}
        job = Job(
            target=Target(text="work.py::run", kind="function", path=str(self.folder / "work.py"), name="run"),
            python=python,
            cwd=str(self.folder),
            environment=environment,
            timeout=timeout,
        )
        return ForkEngine(LocalEngine(job, self.scratch, jobs=jobs))

    def keep(self, raw: RawRecord, folder: Path) -> Record:
        trial = raw.record.trial
        self.outputs[trial.order, trial.repeat] = [
            (folder / "arrays" / output.file).read_bytes() for output in raw.outputs
        ]
        return raw.record

    def run(self, orders: Iterable[Sequence[str]], *, repeat: int = 1, **options: Any) -> dict[tuple[str, ...], Record]:
        """The last record of each order."""
        wanted = [Trial(order=tuple(o), repeat=r, forked=True) for o in orders for r in range(repeat)]
        found = list(self.engine(**options).run(wanted, self.keep))
        assert sorted((r.trial.order, r.trial.repeat) for r in found) == sorted((t.order, t.repeat) for t in wanted)
        assert not any(self.scratch.iterdir())
        return {record.trial.order: record for record in found}

    def fresh(self, orders: Iterable[Sequence[str]], **options: Any) -> dict[tuple[str, ...], Record]:
        wanted = [Trial(order=tuple(order), repeat=0) for order in orders]
        return {record.trial.order: record for record in self.engine(**options).run(wanted, self.keep)}


@pytest.fixture
def trials(tmp_path: Path) -> Trials:
    return Trials(tmp_path)


def ours() -> list[int]:
    """Processes that this one, or one it started, has left; zombies count."""
    found, known = [], {os.getpid()}
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    for _ in range(8):
        fresh = [pid for pid, parent in parents.items() if parent in known and pid not in known]
        known.update(fresh)
        found += fresh
    return found


def workers(folder: Path) -> list[int]:
    """Processes that run a job of this folder, whoever their parent is."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if str(folder).encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def gone(folder: Path) -> bool:
    """Whether no process of this folder is left, after a moment's grace."""
    end = time.monotonic() + 10
    while workers(folder) and time.monotonic() < end:
        time.sleep(0.05)
    return not workers(folder)


@pytest.mark.parametrize("python", interpreters())
def test_records_are_those_of_fresh_trials(trials: Trials, python: str) -> None:
    trials.write(a=A, b=B, c="import json, random\nrandom.seed(3)\nprint('import c')\n")
    orders = list(permutations("abc"))

    fresh = trials.fresh(orders, python=python)
    outputs = dict(trials.outputs)
    forked = trials.run(orders, python=python)

    assert trials.outputs == outputs
    for order in orders:
        one, other = forked[order], fresh[order]
        assert (one.isolation, other.isolation) == ("forked", "fresh")
        assert one.ok, one.failure
        for field in ("effective_order", "preloaded", "pulled_in", "stdout", "stderr", "exit_status", "python"):
            assert getattr(one, field) == getattr(other, field), field
        assert one.timeline.keys() == other.timeline.keys()
        assert [snapshot.phase for snapshot in one.snapshots] == [snapshot.phase for snapshot in other.snapshots]
        for snapshot, twin in zip(one.snapshots, other.snapshots, strict=True):
            assert {kind: keys.keys() for kind, keys in snapshot.kinds.items()} == {
                kind: keys.keys() for kind, keys in twin.kinds.items()
            }
            assert snapshot.kinds["modules"]["new"] == twin.kinds["modules"]["new"]
            assert snapshot.kinds["libraries"]["new"] == twin.kinds["libraries"]["new"]
        events = [(event.kind, event.name, event.phase, event.file, event.line) for event in one.events]
        assert events == [(event.kind, event.name, event.phase, event.file, event.line) for event in other.events]
        assert [event.at for event in one.events] == sorted(event.at for event in one.events)


def test_the_state_at_the_workload_is_that_of_a_fresh_trial(trials: Trials) -> None:
    trials.write(a=A, b=B, c="import random\nrandom.seed(5)\n")
    orders = list(permutations("abc"))

    fresh, forked = trials.fresh(orders), trials.run(orders)

    # A process has no place of its own: what is never the same in two fresh trials either.
    varying = {"environ.start", "process.threads.names", "process.signals.blocked"}
    for order in orders:
        states = [
            {
                f"{kind}.{key}": value
                for snapshot in record[order].snapshots
                if snapshot.phase == "t2"
                for kind, keys in snapshot.kinds.items()
                for key, value in keys.items()
            }
            for record in (fresh, forked)
        ]
        differing = {key for key in states[0] if states[0][key] != states[1].get(key)} - varying
        assert not differing, {key: (states[0][key], states[1].get(key)) for key in differing}


def test_before_the_first_subject_nothing_more_is_loaded(trials: Trials) -> None:
    look = """
        import sys
        seen = [sorted(sys.modules), sorted({l.split()[-1] for l in open('/proc/self/maps') if '.so' in l})]
    """
    trials.write("import a\ndef run():\n    return repr(a.seen)\n", a=look, b="")

    def seen() -> list[list[str]]:
        data = trials.outputs[("a", "b"), 0][0]
        found: list[list[str]] = ast.literal_eval(data[8 + int.from_bytes(data[:8], "little") :].decode())
        return found

    trials.fresh([("a", "b")])
    modules, libraries = seen()
    trials.run([("a", "b"), ("b", "a")])
    forked_modules, forked_libraries = seen()

    assert set(forked_modules) - set(modules) == {"_reprocheck_worker.forks"}
    assert forked_libraries == libraries


def test_each_trial_has_its_own_streams_and_its_prefix_s(trials: Trials) -> None:
    work = "import sys\ndef run():\n    print('runs', flush=True)\n    print('oops', file=sys.stderr)\n    return 1\n"
    flushed = "import sys, os\nprint('import a', flush=True)\nos.write(1, b'raw\\n')\nprint('late')\n"
    trials.write(work, a=flushed, b=B, c="")

    found = trials.run(permutations("abc"), repeat=2)

    assert found["a", "b", "c"].stdout.text == "import a\nraw\nlate\nimport b\nruns\n"
    assert found["b", "c", "a"].stdout.text == "import b\nimport a\nraw\nlate\nruns\n"
    assert all(record.stderr.text == "oops\n" for record in found.values())


def test_a_crash_is_the_record_of_every_order_below_it(trials: Trials) -> None:
    crash = "import os, signal\nprint('going', flush=True)\nos.kill(os.getpid(), signal.SIGSEGV)\n"
    trials.write(a=A, b=B, crash=crash)

    found = trials.run(permutations(["a", "b", "crash"]))

    for order, record in found.items():
        place = order.index("crash") + 1
        assert record.failure is not None
        assert record.failure.signature == f"signal:11 @ importing crash ({place} of 3)"
        assert "crash.py" in (record.failure.traceback or "")
        assert record.stdout.text.endswith("going\n")
        assert record.isolation == "forked"


def test_an_exception_of_an_import_is_that_of_every_order_below_it(trials: Trials) -> None:
    trials.write(a=A, b=B, bad="import os\nif os.environ.get('FIRST') == 'a':\n    raise ValueError('no good')\n")

    forked, fresh = trials.run(permutations(["a", "b", "bad"])), trials.fresh(permutations(["a", "b", "bad"]))

    for order, record in forked.items():
        assert (record.failure is None) == (fresh[order].failure is None)
        if record.failure is not None:
            other = fresh[order].failure
            assert other is not None
            assert (record.failure.signature, record.failure.traceback) == (other.signature, other.traceback)
            assert record.stderr == fresh[order].stderr
            assert record.exit_status == fresh[order].exit_status


def test_an_exception_in_the_workload(trials: Trials) -> None:
    trials.write(
        "def run():\n    import os\n    if os.environ['FIRST'] == 'b': raise KeyError('b')\n    return 1\n", a=A, b=B
    )

    found = trials.run(permutations("ab"), repeat=2)

    assert found["a", "b"].ok
    failure = found["b", "a"].failure
    assert failure is not None
    assert failure.signature == "KeyError: 'b' @ running the workload"


def test_ways_to_end_at_the_very_end(trials: Trials) -> None:
    trials.write("def run():\n    return 1\n", a="import atexit, os\natexit.register(os._exit, 9)\n", b="")

    found = trials.run(permutations("ab"))

    assert {record.failure.signature for record in found.values() if record.failure} == {"exit:9 @ shutdown"}


def test_a_time_out_counts_the_path_and_not_the_waiting(trials: Trials) -> None:
    # Each path takes 0.9 s of its own, and the last trials wait for the others much longer than the time-out.
    nap = "import time\ntime.sleep(0.3)\n"
    trials.write("import time\ndef run():\n    time.sleep(0.3)\n    return 1\n", a=nap, b=nap)

    found = trials.run(permutations("ab"), repeat=6, jobs=1, timeout=2.0)

    assert all(record.ok for record in found.values())
    assert all(0.9 < record.seconds < 2.0 for record in found.values())
    assert all(record.timeline["end"] < 2.0 for record in found.values())


@pytest.mark.parametrize("forked", [True, False])
def test_what_a_trial_leaves_running_ends_with_it(trials: Trials, forked: bool) -> None:
    """A daemon in a session of its own, with streams of its own, too, and what it started itself."""
    work = """
        import subprocess, sys, time
        from pathlib import Path
        DAEMON = (
            "import os, subprocess; p = subprocess.Popen(['sleep', '334']); "
            "print(os.getpid(), p.pid, flush=True); p.wait()"
        )
        def run():
            null = subprocess.DEVNULL
            with open("pids.%d" % time.time_ns(), "w") as file:
                subprocess.Popen(
                    [sys.executable, "-c", DAEMON], stdin=null, stdout=file, stderr=null, start_new_session=True
                )
            while not Path(file.name).read_text().endswith("\\n"):
                time.sleep(0.01)
            return 1
    """
    trials.write(work, a=A, b=B)

    found = (trials.run if forked else trials.fresh)(permutations("ab"))

    assert all(record.ok for record in found.values())
    pids = [int(pid) for file in trials.folder.glob("pids.*") for pid in file.read_text().split()]
    assert len(pids) == 4
    deadline = time.monotonic() + 5
    while any(map(alive, pids)) and time.monotonic() < deadline:
        time.sleep(0.01)
    left = [pid for pid in pids if alive(pid)]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not left


def test_a_hang_ends_by_the_time_out_and_says_where(trials: Trials) -> None:
    trials.write(a=A, b=B, hang="import time\ntime.sleep(600)\n")

    found = trials.run([("a", "hang", "b"), ("a", "b", "hang"), ("hang", "a", "b"), ("hang", "b", "a")], timeout=1.5)

    for order, record in found.items():
        assert record.failure is not None
        assert (record.failure.kind, record.failure.after_s) == ("timeout", 1.5)
        assert record.failure.phase == f"importing hang ({order.index('hang') + 1} of 3)"
        assert "hang.py" in (record.failure.traceback or "")
    assert gone(trials.folder)


def test_a_thread_keeps_what_comes_after_it_from_being_forked(trials: Trials) -> None:
    thread = """
        import threading, time
        threading.Thread(target=time.sleep, args=(600,), daemon=True, name="ticker").start()
    """
    trials.write(a=A, b=B, t=thread)

    found = trials.run(permutations("abt"))

    refused = {order: record.not_forked for order, record in found.items() if record.isolation == "fresh"}
    reason = "after `import t`, threads were started that a fork would lose (1: ticker)"
    assert refused == {("t", "a", "b"): reason, ("t", "b", "a"): reason}
    assert all(record.ok for record in found.values())
    assert not any(found[order].trial.forked for order in refused)


@pytest.mark.parametrize("python", interpreters())
@pytest.mark.parametrize("filters", ["default", "error"])
def test_a_native_thread_counts_too(trials: Trials, python: str, filters: str) -> None:
    """One that Python does not know of, which no handler stops before a fork; newer Pythons warn of it at a fork."""
    native = f"""
        import ctypes, time, warnings
        warnings.simplefilter({filters!r})
        libc = ctypes.CDLL(None)
        handle = ctypes.c_ulong()
        libc.pthread_create(ctypes.byref(handle), None, ctypes.cast(libc.pause, ctypes.c_void_p), None)
        time.sleep(0.05)
    """
    trials.write(a=A, b=B, n=native)

    found = trials.run(permutations("abn"), python=python)

    assert all(record.ok for record in found.values())
    refused = [order for order, record in found.items() if record.not_forked]
    assert sorted(refused) == [("n", "a", "b"), ("n", "b", "a")]
    assert "threads were started" in (found["n", "a", "b"].not_forked or "")


def test_a_pool_that_stops_itself_before_a_fork_does_not_count(trials: Trials) -> None:
    numpy = pytest.importorskip("numpy")
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one core: OpenBLAS starts no thread")
    assert numpy
    work = """
        import numpy
        def run():
            x = numpy.random.default_rng(0).standard_normal((300, 300))
            return {"product": x @ x, "inverse": numpy.linalg.inv(x)}
    """
    trials.write(work, a=A, b=B)
    orders = list(permutations(["a", "b", "numpy"]))

    fresh = trials.fresh(orders)
    outputs = dict(trials.outputs)
    forked = trials.run(orders)

    threads = [s.kinds["process"]["threads.count"] for s in fresh["numpy", "a", "b"].snapshots if s.phase == "t1:numpy"]
    assert threads[0] > 1, "numpy starts no pool here: this shows nothing"
    assert {record.isolation for record in forked.values()} == {"forked"}
    assert trials.outputs == outputs


def test_the_root_may_be_refused(trials: Trials) -> None:
    trials.write(a=A, b=B)
    (trials.folder / "sitecustomize.py").write_text(
        "import threading, time\nthreading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n"
    )
    engine = trials.engine()
    engine.job.environment["PYTHONPATH"] = str(trials.folder)

    wanted = [Trial(order=order, repeat=0, forked=True) for order in permutations("ab")]
    found = list(engine.run(wanted, trials.keep))

    assert len(found) == 2
    assert all((record.not_forked or "").startswith("after the start, threads were started") for record in found)


def test_an_interruption_leaves_no_process(trials: Trials) -> None:
    trials.write("import time\ndef run():\n    time.sleep(600)\n", a=A, b=B, c="")
    wanted = [Trial(order=order, repeat=0, forked=True) for order in permutations("abc")]
    threading.Timer(1.5, os.kill, (os.getpid(), signal.SIGINT)).start()

    with pytest.raises(KeyboardInterrupt):
        list(trials.engine().run(wanted, trials.keep))

    assert not [pid for pid in ours() if pid in workers(trials.folder)]
    assert gone(trials.folder)
    assert not any(trials.scratch.iterdir())


def test_a_caller_that_fails_leaves_no_process(trials: Trials) -> None:
    trials.write(a=A, b=B, c="")

    def keep(raw: RawRecord, folder: Path) -> Record:
        raise RuntimeError("disk full")

    wanted = [Trial(order=order, repeat=0, forked=True) for order in permutations("abc")]
    with pytest.raises(RuntimeError, match="disk full"):
        list(trials.engine().run(wanted, keep))

    assert gone(trials.folder)


def test_a_killed_engine_takes_its_processes_along(trials: Trials) -> None:
    """Nobody is left to end them, so they see it themselves."""
    trials.write("import time\ndef run():\n    time.sleep(600)\n", a=A, b=B, c="")
    pid = os.fork()
    if not pid:
        try:
            wanted = [Trial(order=order, repeat=0, forked=True) for order in permutations("abc")]
            list(trials.engine().run(wanted, trials.keep))
        finally:
            os._exit(0)
    end = time.monotonic() + 20
    while len(workers(trials.folder)) < 4 and time.monotonic() < end:
        time.sleep(0.05)
    assert len(workers(trials.folder)) >= 4

    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)

    assert gone(trials.folder)


def test_few_processes_are_alive(trials: Trials) -> None:
    trials.write("import time\ndef run():\n    time.sleep(0.05)\n    return 1\n", a="", b="", c="", d="")
    most = 0
    done = threading.Event()

    def count() -> None:
        nonlocal most
        while not done.wait(0.01):
            most = max(most, len(workers(trials.folder)))

    counting = threading.Thread(target=count)
    counting.start()
    try:
        trials.run(permutations("abcd"), jobs=2)
    finally:
        done.set()
        counting.join()

    # A child that ended counts until its parent was asked about it; four subjects make a tree of height three.
    assert 2 <= most <= 2 * (3 + 1)


def test_a_lost_process_costs_no_trial(trials: Trials) -> None:
    """Somebody (the kernel, for want of memory) kills a process that waits to be forked."""
    trials.write("import time\ndef run():\n    time.sleep(0.4)\n    return 1\n", a=A, b=B, c="")
    engine = trials.engine(jobs=1)
    wanted = [Trial(order=order, repeat=0, forked=True) for order in permutations("abc")]
    found = []
    for record in engine.run(wanted, trials.keep):
        found.append(record)
        if len(found) == 1:
            root = min(workers(trials.folder))
            os.kill(root, signal.SIGKILL)

    assert sorted(record.trial.order for record in found) == sorted(permutations("abc"))
    assert all(record.ok for record in found)
    assert LOST in {record.not_forked for record in found}
    assert gone(trials.folder)


def test_a_subject_that_has_its_children_waited_for_by_the_kernel(trials: Trials) -> None:
    """How a forked trial ended cannot be learnt then; it is run fresh."""
    trials.write(a="import signal\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\n", b="", c="")

    found = trials.run(permutations("abc"))

    assert all(record.ok for record in found.values())
    assert {record.not_forked for order, record in found.items() if order[0] == "a"} == {LOST}
    assert gone(trials.folder)


def test_an_interpreter_that_does_not_start(trials: Trials) -> None:
    trials.write(a=A, b=B)

    with pytest.raises(HarnessError, match="check --python"):
        trials.run(permutations("ab"), python=str(trials.folder / "no-python"))
    with pytest.raises(HarnessError, match="the worker did not start"):
        trials.run(permutations("ab"), python="/bin/false")


def test_another_environment_is_another_tree(trials: Trials) -> None:
    trials.write(a="", b="", work="import os\ndef run():\n    return os.environ.get('LEVEL', '-')\n")
    levels: tuple[dict[str, str | None], ...] = ({}, {"LEVEL": "1"})
    wanted = [
        Trial(order=order, repeat=0, forked=True, env=env, capture=capture)
        for order in permutations("ab")
        for env in levels
        for capture in (True, False)
    ]
    values = []

    def keep(raw: RawRecord, folder: Path) -> Record:
        values.append((raw.record.trial.env.get("LEVEL", "-"), (folder / "arrays" / raw.outputs[0].file).read_bytes()))
        return raw.record

    found = list(trials.engine().run(wanted, keep))

    assert len(found) == len(wanted)
    assert all(data.endswith((level or "").encode()) for level, data in values)
    assert all(bool(record.snapshots) == record.trial.capture for record in found)

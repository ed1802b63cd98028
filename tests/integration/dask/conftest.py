"""A scheduler and workers as processes of their own, as on a cluster."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

WAIT_S = 60.0


@pytest.fixture(autouse=True)
def _environment() -> Iterator[None]:
    """As it was, afterwards: a nanny sets thread variables in the process that starts it, and leaves them there."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


def until(what: Callable[[], object], seconds: float = WAIT_S) -> None:
    """Wait until `what` is true; how long it takes says nothing, that it never comes does."""
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def processes(word: str) -> list[int]:
    """Processes with `word` in their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                if word.encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
    return found


class Cluster:
    """`dask scheduler`, and `dask worker`s that are started and killed by the tests."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._started: list[subprocess.Popen[bytes]] = []
        self._file = folder / "scheduler.json"
        self._start("scheduler", "--port", "0", "--host", "127.0.0.1", "--scheduler-file", str(self._file))
        until(self._file.exists)

    def kill_scheduler(self) -> None:
        self._started[0].kill()

    @property
    def scheduler(self) -> str:
        return str(self._file)

    def worker(
        self, *options: str, env: Mapping[str, str | None] | None = None, before: Sequence[str] = ()
    ) -> subprocess.Popen[bytes]:
        """A Dask worker with its nanny, unless `options` say otherwise; `before` is put before the command."""
        return self._start(
            "worker",
            *("--scheduler-file", str(self._file), "--local-directory", str(self.folder), "--host", "127.0.0.1"),
            *(() if "--nthreads" in options else ("--nthreads", "2")),
            *options,
            env=env,
            before=before,
        )

    def _start(
        self, what: str, *options: str, env: Mapping[str, str | None] | None = None, before: Sequence[str] = ()
    ) -> subprocess.Popen[bytes]:
        variables = dict(os.environ)
        for name, value in (env or {}).items():
            variables.pop(name, None)
            if value is not None:
                variables[name] = value
        command = [sys.executable, "-m", f"distributed.cli.dask_{what}", "--dashboard-address", "127.0.0.1:0"]
        with (self.folder / f"{what}-{len(self._started)}.log").open("wb") as log:
            process = subprocess.Popen(
                [*before, *command, *options],
                # Not where the tests run: `-m` would take this package's modules from there.
                cwd=self.folder,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._started.append(process)
        return process

    def stop(self) -> None:
        self.stop_workers()
        _kill(self._started.pop())

    def stop_workers(self) -> None:
        while len(self._started) > 1:
            _kill(self._started.pop())

    def await_workers(self, count: int) -> None:
        """Until there are exactly so many workers."""
        from distributed import Client

        with Client(scheduler_file=self.scheduler, set_as_default=False) as client:
            until(lambda: len(client.scheduler_info(n_workers=-1)["workers"]) == count)


def _kill(process: subprocess.Popen[bytes]) -> None:
    # The whole group: a nanny and its worker. Asking them to end takes seconds, and is tested where it matters.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextlib.contextmanager
def _running(folder: Path) -> Iterator[Cluster]:
    pytest.importorskip("distributed", reason="Dask is not installed (the extra `dask`)")
    cluster = Cluster(folder)
    try:
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One worker with two threads, in an environment that is not the user's. Tests leave it as it is."""
    with _running(tmp_path_factory.mktemp("cluster")) as made:
        made.worker(env={"MKL_NUM_THREADS": "7", "REPROCHECK_TEST_FARM": "1", "PYTHONHASHSEED": "5"})
        yield made


@pytest.fixture(scope="module")
def _scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with _running(tmp_path_factory.mktemp("own")) as made:
        yield made


@pytest.fixture
def own_cluster(_scheduler: Cluster) -> Iterator[Cluster]:
    """A scheduler without workers, for tests that start and kill their own."""
    yield _scheduler
    _scheduler.stop_workers()
    _scheduler.await_workers(0)


@pytest.fixture
def mortal_cluster(tmp_path: Path) -> Iterator[Cluster]:
    """The same, for a test that kills the scheduler."""
    folder = tmp_path / "cluster"
    folder.mkdir()
    with _running(folder) as made:
        yield made

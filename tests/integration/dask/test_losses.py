"""What goes away: Dask workers, the asking process, the user's patience. Nothing is lost, and no process stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from reprocheck.errors import HarnessError
from reprocheck.store.run import Run
from tests.conftest import Lab
from tests.integration.dask.conftest import Cluster, processes, until

pytestmark = pytest.mark.long

pytest.importorskip("distributed", reason="Dask is not installed (the extra `dask`)")

# Tells that it runs, then waits until the test lets it go on.
WAITING = """
    import os, pathlib, time
    here = pathlib.Path(__file__).parent
    def run():
        with open(here / "log", "a") as log:
            log.write(f"{os.getpid()}\\n")
        while not (here / "go").exists():
            time.sleep(0.02)
        return 1.0
"""


class Background:
    """A study in a thread of its own."""

    def __init__(self, lab: Lab, **options: Any) -> None:
        self.result: Any = None
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(lab, options))
        self._thread.start()

    def _run(self, lab: Lab, options: dict[str, Any]) -> None:
        try:
            self.result = lab.check(engine="dask", **options)
        except BaseException as error:
            self.error = error

    def wait(self) -> Any:
        self._thread.join(120)
        assert not self._thread.is_alive()
        if self.error is not None:
            raise self.error
        return self.result


def begun(lab: Lab) -> list[int]:
    log = lab.folder / "log"
    return [int(line) for line in log.read_text().split()] if log.exists() else []


def gone(pids: list[int]) -> bool:
    return not any(Path(f"/proc/{pid}").exists() for pid in pids)


def worker_of(pid: int) -> int:
    """The process that started a trial."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_a_killed_worker_loses_nothing(lab: Lab, own_cluster: Cluster) -> None:
    lab.write(a="", b="", work=WAITING)
    own_cluster.worker()
    study = Background(lab, scheduler=own_cluster.scheduler, repeat=2, max_repeat=2)
    until(lambda: len(begun(lab)) == 2)
    first = begun(lab)
    os.kill(worker_of(first[0]), signal.SIGKILL)
    # The trials die with their Dask worker, and are run again by the one its nanny starts.
    until(lambda: gone(first))
    (lab.folder / "go").touch()
    found = study.wait()
    assert found.verdict == "identical"
    records = Run(Path(found.run_dir)).records()
    assert all(record.ok for record in records)
    assert len(begun(lab)) == len(records) + 2


def test_without_any_worker_the_study_stops_and_goes_on_later(
    lab: Lab, own_cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reprocheck.engine.dask.fleet.GONE_S", 1.0)
    lab.write(a="", b="", work=WAITING)
    worker = own_cluster.worker("--no-nanny", "--nthreads", "1")
    options: dict[str, Any] = {"scheduler": own_cluster.scheduler, "repeat": 1, "max_repeat": 1, "observer": False}
    study = Background(lab, out="run", **options)
    until(lambda: len(begun(lab)) == 1)
    (lab.folder / "go").touch()
    until(lambda: len(begun(lab)) == 2)
    (lab.folder / "go").unlink()
    until((lab.folder / "run.partial/records/000000.json").exists)
    worker.kill()
    with pytest.raises(HarnessError, match=r"no Dask worker for 1 s; what is done is kept"):
        study.wait()
    done = len(Run(lab.folder / "run.partial").records())
    assert done >= 1
    (lab.folder / "go").touch()
    own_cluster.worker("--no-nanny", "--nthreads", "1")
    before = len(begun(lab))
    found = lab.check(engine="dask", out="run", resume=True, **options)
    assert found.verdict == "identical"
    assert len(begun(lab)) - before == 2 - done


def test_a_scheduler_that_dies_takes_the_trials_with_it_and_nothing_else(lab: Lab, mortal_cluster: Cluster) -> None:
    lab.write(a="", b="", work=WAITING)
    mortal_cluster.worker()
    study = Background(lab, out="run", scheduler=mortal_cluster.scheduler, repeat=1, max_repeat=1, observer=False)
    until(lambda: len(begun(lab)) == 2)
    mortal_cluster.kill_scheduler()
    until(lambda: gone(begun(lab)))
    with pytest.raises(HarnessError, match=r"the Dask scheduler (is gone|does not answer any more)"):
        study.wait()
    (lab.folder / "go").touch()
    assert lab.check(out="run", resume=True, repeat=1, max_repeat=1, observer=False).verdict == "identical"


def test_a_worker_that_is_closed_gives_its_trials_to_another(lab: Lab, own_cluster: Cluster) -> None:
    lab.write(a="", b="", work=WAITING)
    closing = own_cluster.worker("--nthreads", "1")
    study = Background(lab, scheduler=own_cluster.scheduler, repeat=1, max_repeat=1, observer=False)
    until(lambda: len(begun(lab)) == 1)
    first = begun(lab)
    own_cluster.worker("--nthreads", "1")
    closing.terminate()
    until(lambda: gone(first))
    (lab.folder / "go").touch()
    assert study.wait().verdict == "identical"


def start(lab: Lab, *options: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "reprocheck", "run", "work.py::run", "--imports", "a,b", "--out", "run", *options],
        cwd=lab.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.mark.parametrize("where", ["inside", "outside"])
def test_an_interrupted_study_leaves_no_process(lab: Lab, cluster: Cluster, where: str) -> None:
    lab.write(a="", b="", work=WAITING)
    command = start(lab, "--engine", "dask", *(["--scheduler", cluster.scheduler] if where == "outside" else []))
    until(lambda: len(begun(lab)) == 2)
    command.send_signal(signal.SIGINT)
    _, err = command.communicate(timeout=60)
    assert command.returncode == 130, err
    assert "Traceback" not in err
    assert gone(begun(lab))
    assert not processes(str(lab.folder))
    (lab.folder / "go").touch()
    again = start(lab, "--engine", "dask", "--resume")
    out, err = again.communicate(timeout=120)
    assert again.returncode == 0, err
    assert "identical" in out


@pytest.mark.parametrize("where", ["inside", "outside"])
def test_trials_end_when_the_asking_process_is_killed(lab: Lab, cluster: Cluster, where: str) -> None:
    lab.write(a="", b="", work=WAITING)
    command = start(lab, "--engine", "dask", *(["--scheduler", cluster.scheduler] if where == "outside" else []))
    until(lambda: len(begun(lab)) == 2)
    command.kill()
    command.communicate()
    until(lambda: gone(begun(lab)))
    until(lambda: not processes(str(lab.folder)))

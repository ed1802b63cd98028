"""Several machines in one cluster, as far as one machine can pose as several; and machines that lack something."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import reprocheck
from reprocheck.errors import UsageError
from reprocheck.model import Record, Study
from reprocheck.store.run import Run
from tests.conftest import Lab
from tests.integration.dask.conftest import Cluster

pytestmark = pytest.mark.long

pytest.importorskip("distributed", reason="Dask is not installed (the extra `dask`)")

QUICK: dict[str, Any] = {"repeat": 1, "max_repeat": 1, "observer": False, "engine": "dask"}
WORK = "import os\ndef run():\n    return os.uname().nodename"
FEW_CORES = pytest.mark.skipif(
    len(os.sched_getaffinity(0)) < 2 or shutil.which("taskset") is None,
    reason="needs two cores and taskset, to let a worker have fewer",
)


def records(study: Study) -> list[Record]:
    return Run(Path(study.run_dir)).records()


def elsewhere(host: str) -> list[str]:
    """A command before another one, that gives it a host name of its own."""
    before = ["unshare", "--uts", "sh", "-c", f'hostname {host} && exec "$@"', "sh"]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*before, "true"], capture_output=True, check=False).returncode
    ):
        pytest.skip("needs the right to give a process another host name (unshare --uts)")
    return before


@FEW_CORES
def test_machines_that_differ_are_refused_pinned_or_a_factor(lab: Lab, own_cluster: Cluster) -> None:
    lab.write(a="", b="", work="import os\ndef run():\n    return len(os.sched_getaffinity(0))")
    cores = sorted(os.sched_getaffinity(0))
    own_cluster.worker("--no-nanny", "--name", "all")
    own_cluster.worker("--no-nanny", "--name", "one", before=("taskset", "-c", str(cores[0])))
    own_cluster.await_workers(2)
    options: dict[str, Any] = {"scheduler": own_cluster.scheduler, "engine": "dask"}

    with pytest.raises(UsageError) as told:
        lab.check(**options)
    sentence = str(told.value)
    assert "usable cores: " in sentence
    assert "1 on the o" in sentence
    assert "--workers tcp://" in sentence
    assert "--machines any" in sentence

    pinned = lab.check(**options, workers=["one"], out="run", repeat=1, max_repeat=1, observer=False)
    assert pinned.verdict == "identical"
    assert {record.machine.cores for record in records(pinned) if record.machine} == {1}

    # What is missing of a run belongs on the machine where it began.
    journal = lab.folder / "run/journal.jsonl"
    journal.write_bytes(journal.read_bytes().partition(b"\n")[0] + b"\n")
    with pytest.raises(UsageError, match=r"another kind of machine \(usable cores: 1 on the one"):
        lab.check(**options, workers=["all"], out="run", resume=True, repeat=1, max_repeat=1, observer=False)

    both = lab.check(**options, machines="any", observer=False, repeat=2, max_repeat=4)
    assert both.verdict == "noisy"
    assert any("the machine is a factor of its own" in note for note in both.notes)
    by_repeat: dict[int, set[int]] = {}
    for record in records(both):
        assert record.machine is not None
        by_repeat.setdefault(record.trial.repeat, set()).add(record.machine.cores)
    assert all(len(found) == 1 for found in by_repeat.values()), "a block is on one machine"


def test_machines_that_are_alike_share_a_study(lab: Lab, own_cluster: Cluster) -> None:
    lab.write(a="", b="", work="def run():\n    return 1.0")
    own_cluster.worker("--no-nanny")
    own_cluster.worker("--no-nanny", before=elsewhere("another"))
    own_cluster.await_workers(2)
    study = lab.check(engine="dask", scheduler=own_cluster.scheduler, observer=False)
    assert study.verdict == "identical"
    hosts = {record.trial.repeat: record.machine.host for record in records(study) if record.machine}
    assert set(hosts.values()) == {platform.node(), "another"}
    assert any(note.startswith("the trials ran on 2 machines") for note in study.notes)


def test_devices_are_taken_as_dask_resources(lab: Lab, own_cluster: Cluster) -> None:
    lab.write(
        a="",
        b="",
        work="""
            import pathlib, time
            log = pathlib.Path(__file__).with_name("log")
            def run():
                for mark in "+-":
                    with open(log, "a") as file:
                        file.write(mark)
                    time.sleep(0.1)
                return 1.0
        """,
    )
    own_cluster.worker("--no-nanny", "--nthreads", "4", "--resources", "GPU=1")
    own_cluster.await_workers(1)
    study = lab.check(scheduler=own_cluster.scheduler, orders="all", **{**QUICK, "repeat": 2, "max_repeat": 2})
    assert study.verdict == "identical"
    assert (lab.folder / "log").read_text() == "+-" * 4, "one trial on the device at a time"
    # A study without a device is not held up by it.
    (lab.folder / "log").unlink()
    lab.check(scheduler=own_cluster.scheduler, gpus=0, **{**QUICK, "repeat": 2, "max_repeat": 2})
    with pytest.raises(UsageError, match=r"no Dask worker offers 2 of the resource GPU \(the most is 1\)"):
        lab.check(scheduler=own_cluster.scheduler, gpus=2, **QUICK)


def test_a_worker_with_another_reprocheck_is_refused(lab: Lab, own_cluster: Cluster, tmp_path: Path) -> None:
    lab.write(a="", b="", work=WORK)
    other = tmp_path / "other"
    shutil.copytree(
        Path(reprocheck.__file__).parent, other / "reprocheck", ignore=shutil.ignore_patterns("__pycache__")
    )
    with (other / "reprocheck/worker/leaves.py").open("a") as file:
        file.write("# changed\n")
    own_cluster.worker("--no-nanny", env={"PYTHONPATH": str(other)})
    own_cluster.await_workers(1)
    with pytest.raises(UsageError, match=r"the Dask worker tcp://\S+ has another reprocheck"):
        lab.check(scheduler=own_cluster.scheduler, **QUICK)


def test_a_worker_without_reprocheck_is_refused(lab: Lab, own_cluster: Cluster, tmp_path: Path) -> None:
    lab.write(a="", b="", work=WORK)
    (tmp_path / "none").mkdir()
    (tmp_path / "none/reprocheck.py").write_text("", "utf-8")
    own_cluster.worker("--no-nanny", env={"PYTHONPATH": str(tmp_path / "none")})
    own_cluster.await_workers(1)
    with pytest.raises(UsageError, match=r"the Dask worker tcp://\S+ cannot load reprocheck"):
        lab.check(scheduler=own_cluster.scheduler, **QUICK)


def test_what_a_machine_lacks_is_named(lab: Lab, own_cluster: Cluster, tmp_path: Path) -> None:
    """The worker sees other folders in place of ours, as on a machine with another disk."""
    lab.write(a="", b="", work=WORK)
    (tmp_path / "disk").mkdir()
    shutil.copytree(lab.folder, tmp_path / "disk/work", ignore=shutil.ignore_patterns("disk", "cluster"))
    (tmp_path / "disk/work/work.py").write_text("def run():\n    return 2.0", "utf-8")
    before = [
        "unshare",
        "--mount",
        "sh",
        "-c",
        f'mount --bind {tmp_path / "disk/work"} {tmp_path / "m"} && exec "$@"',
        "sh",
    ]
    (tmp_path / "m").mkdir()
    if subprocess.run([*before, "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount (unshare --mount)")
    mounted = Lab(tmp_path / "m")
    mounted.write(a="", b="", work=WORK)
    own_cluster.worker("--no-nanny", before=before)
    own_cluster.await_workers(1)
    with pytest.raises(UsageError, match=rf"`{tmp_path}/m/work.py` has other contents on {platform.node()}"):
        mounted.check(scheduler=own_cluster.scheduler, **QUICK)
    with pytest.raises(UsageError, match=r"--shared `\S+` isn't seen on"):
        lab.check(scheduler=own_cluster.scheduler, shared=str(tmp_path / "m/folder"), **QUICK)
    # Run folders that are not shared: everything comes back through the scheduler.
    shutil.copy(mounted.folder / "work.py", tmp_path / "disk/work/work.py")
    assert mounted.check(scheduler=own_cluster.scheduler, **QUICK).verdict == "identical"


def test_an_interpreter_that_is_not_there_is_named(lab: Lab, cluster: Cluster) -> None:
    lab.write(a="", b="", work=WORK)
    link = lab.folder / "python"
    # A Python when this machine asks, none when a worker does.
    link.write_text('#!/bin/sh\ncase "$*" in *hexversion*) echo 51054320;; *) exit 4;; esac\n', "utf-8")
    link.chmod(0o755)
    with pytest.raises(UsageError, match=rf"interpreter `{link}` doesn't run on {platform.node()} \(exit status 4\)"):
        lab.check(scheduler=cluster.scheduler, python=str(link), **QUICK)

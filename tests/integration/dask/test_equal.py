"""The Dask engine gives what the local one gives: bits, verdict, captured state, failures."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

import pytest

from reprocheck.errors import HarnessError, UsageError
from reprocheck.model import Record, Study
from reprocheck.store.run import Run
from tests.conftest import Lab
from tests.integration.dask.conftest import Cluster

pytestmark = pytest.mark.long

distributed = pytest.importorskip("distributed", reason="Dask is not installed (the extra `dask`)")

QUICK: dict[str, Any] = {"repeat": 1, "max_repeat": 1, "observer": False}

TOOLBOXES = {
    "a": "import sys\nSCALE = 2.0 if 'b' in sys.modules else 1.0",
    "b": "",
    "work": """
        import array, os
        def run():
            import a
            return {"x": array.array("d", [i * a.SCALE / 3 for i in range(100)]),
                    "variables": sorted(f"{k}={v}" for k, v in os.environ.items())}
    """,
}


def records(study: Study) -> list[Record]:
    found = Run(Path(study.run_dir)).records()
    return sorted(found, key=lambda record: (record.trial.order, record.trial.repeat, record.trial.capture))


def same(one: Study, other: Study) -> None:
    assert one.verdict == other.verdict
    assert [arm.groups for arm in one.orders] == [arm.groups for arm in other.orders]
    ours, theirs = records(one), records(other)
    assert [record.trial for record in ours] == [record.trial for record in theirs]
    assert [record.outputs for record in ours] == [record.outputs for record in theirs]
    assert [record.effective_order for record in ours] == [record.effective_order for record in theirs]
    assert [record.machine for record in ours] == [record.machine for record in theirs]
    for mine, yours in zip(ours, theirs, strict=True):
        assert state(mine) == state(yours)


def state(record: Record) -> dict[str, Any]:
    """All that was captured, but for what is another number in every run."""
    return {
        f"{snapshot.phase} {kind}.{key}": value
        for snapshot in record.snapshots
        for kind, keys in snapshot.kinds.items()
        for key, value in keys.items()
        if kind in ("environ", "environ_all", "process", "libraries", "fp", "modules")
    }


def test_a_cluster_inside_the_process_gives_what_the_local_engine_gives(lab: Lab) -> None:
    lab.write(None, **TOOLBOXES)
    same(lab.check(**QUICK), lab.check(engine="dask", **QUICK))


def test_separate_workers_give_what_the_local_engine_gives(lab: Lab, cluster: Cluster) -> None:
    lab.write(None, **TOOLBOXES)
    study = lab.check(engine="dask", scheduler=cluster.scheduler)
    same(lab.check(), study)
    assert study.verdict == "order-dependent"
    assert not list(cluster.folder.glob("**/reprocheck/dask-*")), "folders of trials are left"


def test_the_nannys_variables_do_not_reach_the_trial(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.write(
        a="",
        b="",
        work="""
            import os
            def run():
                return {n: os.environ.get(n, "none") for n in ("OMP_NUM_THREADS", "MALLOC_TRIM_THRESHOLD_", "NANNY")}
        """,
    )
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0", env={"NANNY": "here"}
        ) as made,
        distributed.Client(made, set_as_default=False) as client,
    ):
        # The nanny does set them, or this would prove nothing.
        (there,) = client.run(lambda: (os.environ.get("OMP_NUM_THREADS"), os.environ.get("NANNY"))).values()
        assert there == ("1", "here")
        study = lab.check(engine="dask", scheduler=made.scheduler_address, **QUICK)
    same(lab.check(**QUICK), study)


@pytest.mark.parametrize("shared", ["no", "yes", "elsewhere"])
def test_files_come_back_by_every_way(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared: str) -> None:
    lab.write(None, **TOOLBOXES)
    more: dict[str, str] = {}
    if shared == "no":
        monkeypatch.setattr("reprocheck.engine.dask.task._shared", lambda _file, _token: False)
    elif shared == "elsewhere":
        # Another file system, where there is one: files must be copied.
        place = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else tmp_path
        more = {"shared": str(place / f"reprocheck-test-{os.getpid()}")}
    study = lab.check(engine="dask", **more, **QUICK)
    same(lab.check(**QUICK), study)
    if more:
        assert not list(Path(more["shared"]).iterdir())
        Path(more["shared"]).rmdir()


def test_outputs_too_large_for_the_scheduler_ask_for_a_shared_folder(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.write(None, **TOOLBOXES)
    monkeypatch.setattr("reprocheck.engine.dask.task._shared", lambda _file, _token: False)
    monkeypatch.setattr("reprocheck.engine.dask.task.INLINE_BYTES", 1000)
    with pytest.raises(UsageError, match="--shared DIR"):
        lab.check(engine="dask")


def test_a_crash_is_a_group_and_never_run_again(lab: Lab, cluster: Cluster) -> None:
    lab.write(
        a="",
        b="",
        work="""
            import os, pathlib, signal, sys
            def run():
                with open(pathlib.Path(__file__).with_name("log"), "a") as log:
                    log.write("run\\n")
                if list(sys.modules).index("a") < list(sys.modules).index("b"):
                    os.kill(os.getpid(), signal.SIGSEGV)
                return 1.0
        """,
    )
    study = lab.check(engine="dask", scheduler=cluster.scheduler)
    assert study.verdict == "fails-in-some-orders"
    crashed = [record for record in records(study) if record.failure]
    assert {record.failure.signature for record in crashed if record.failure} == {"signal:11 @ running the workload"}
    assert {record.trial.order for record in crashed} == {("a", "b")}
    assert len((lab.folder / "log").read_text().splitlines()) == len(records(study))


def test_the_time_out_holds_on_the_far_side(lab: Lab, cluster: Cluster) -> None:
    lab.write(a="", b="", work="import time\ndef run():\n    time.sleep(600)")
    study = lab.check(engine="dask", scheduler=cluster.scheduler, timeout=1.0, **QUICK)
    assert study.verdict == "fails-everywhere"
    assert {record.failure.kind for record in records(study) if record.failure} == {"timeout"}


def test_the_machine_is_recorded(lab: Lab, cluster: Cluster) -> None:
    lab.write(None, **TOOLBOXES)
    for record in records(lab.check(engine="dask", scheduler=cluster.scheduler, **QUICK)):
        assert record.machine is not None
        assert record.machine.host == platform.node()
        assert record.machine.cores == len(os.sched_getaffinity(0))
        assert record.machine.python == f"cpython {platform.python_version()}"


def test_a_divergence_is_explained_there_too(lab: Lab, cluster: Cluster) -> None:
    lab.write(None, **TOOLBOXES)
    study = lab.check(engine="dask", scheduler=cluster.scheduler, explain=True, trace="lines")
    assert study.verdict == "order-dependent"
    assert study.first_line is not None
    assert study.rule is not None


def test_bad_questions_are_one_sentence(lab: Lab, cluster: Cluster, tmp_path: Path) -> None:
    lab.write(None, **TOOLBOXES)
    with pytest.raises(UsageError, match=r"no Dask worker `tcp://nowhere:1`"):
        lab.check(engine="dask", scheduler=cluster.scheduler, workers=["tcp://nowhere:1"])
    with pytest.raises(UsageError, match=r"no Dask worker offers 1 of the resource GPU"):
        lab.check(engine="dask", scheduler=cluster.scheduler, gpus=1)
    with pytest.raises(UsageError, match=r"is no address of a Dask scheduler"):
        lab.check(engine="dask", scheduler="gopher://there:1")
    with pytest.raises(UsageError, match=r"scheduler file .* isn't there"):
        lab.check(engine="dask", scheduler=str(tmp_path / "none.json"))
    with pytest.raises(UsageError, match=r"--scheduler is about a Dask cluster; add --engine dask"):
        lab.check(scheduler=cluster.scheduler)
    with pytest.raises(UsageError, match=r"must be `local` or `dask`.*did you mean `dask`"):
        lab.check(engine="dusk")


def test_a_scheduler_that_is_not_there(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.write(None, **TOOLBOXES)
    monkeypatch.setattr("reprocheck.engine.dask.cluster.CONNECT_SECONDS", 1)
    with pytest.raises(HarnessError, match=r"no Dask scheduler answers at `tcp://127.0.0.1:9`"):
        lab.check(engine="dask", scheduler="tcp://127.0.0.1:9")


def test_dasks_own_refresh_never_empties_the_list_of_workers(cluster: Cluster) -> None:
    """Its client keeps a copy of what the scheduler says, from time to time one without workers."""
    import dask

    from reprocheck.engine.dask.cluster import workers_of

    cluster.await_workers(1)
    with (
        dask.config.set({"distributed.client.scheduler-info-interval": "1ms"}),
        distributed.Client(scheduler_file=cluster.scheduler, set_as_default=False) as client,
    ):
        assert {len(workers_of(client)) for _ in range(500)} == {1}

"""Slots and GPU locks shared by processes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from reprocheck.engine.gate import Gate, gpu_locks, shared_folder, visible_gpus
from reprocheck.errors import HarnessError


def test_no_more_than_the_slots_pass_at_a_time(tmp_path: Path) -> None:
    inside = most = 0
    lock = threading.Lock()

    def trial() -> None:
        nonlocal inside, most
        with Gate(2, folder=tmp_path).passing(threading.Event()):
            with lock:
                inside += 1
                most = max(most, inside)
            time.sleep(0.02)
            with lock:
                inside -= 1

    threads = [threading.Thread(target=trial) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (inside, most) == (0, 2)


def test_exclusive_locks_keep_out_whoever_names_one_of_them(tmp_path: Path) -> None:
    stop = threading.Event()
    stop.set()
    with (
        Gate(4, exclusive=("gpu-b", "gpu-a"), folder=tmp_path).passing(stop),
        Gate(4, exclusive=("gpu-c",), folder=tmp_path).passing(stop),
        pytest.raises(HarnessError, match="interrupted"),
        Gate(4, exclusive=("gpu-a",), folder=tmp_path).passing(stop),
    ):
        pass


def test_a_process_that_is_killed_lets_go(tmp_path: Path) -> None:
    code = (
        "import sys, threading; from pathlib import Path; from reprocheck.engine.gate import Gate\n"
        "with Gate(1, folder=Path(sys.argv[1])).passing(threading.Event()):\n    print(flush=True); input()"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        stop = threading.Event()
        stop.set()
        with pytest.raises(HarnessError), Gate(1, folder=tmp_path).passing(stop):
            pass
        holder.kill()
        holder.wait()

    with Gate(1, folder=tmp_path).passing(stop):
        pass


def test_the_folder_is_the_users_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    folder = shared_folder()
    assert folder.stat().st_mode & 0o777 == 0o700

    folder.rmdir()
    (tmp_path / "elsewhere").mkdir()
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(HarnessError, match="belongs to somebody else"):
        shared_folder()


UUIDS = ("GPU-11111111-aaaa", "GPU-22222222-bbbb")


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """Two GPUs, as the driver's files show them."""
    for number, uuid in enumerate(UUIDS):
        folder = tmp_path / "proc/driver/nvidia/gpus" / f"0000:0{number}:00.0"
        folder.mkdir(parents=True)
        (folder / "information").write_text(f"Model: \t\t NVIDIA\nGPU UUID: \t {uuid}\nDevice Minor: \t {number}\n")
    (tmp_path / "dev").mkdir()
    for name in ("nvidia0", "nvidia1", "nvidiactl"):
        (tmp_path / "dev" / name).touch()
    return tmp_path


@pytest.mark.parametrize(
    ("mask", "visible", "locks"),
    [
        (None, UUIDS, tuple(f"gpu-{uuid}" for uuid in UUIDS)),
        ("", (), ()),
        ("-1", (), ()),
        ("1,-1,0", ("1",), tuple(f"gpu-{uuid}" for uuid in UUIDS)),
        (UUIDS[1], (UUIDS[1],), (f"gpu-{UUIDS[1]}",)),
        ("MIG-123", ("MIG-123",), tuple(f"gpu-{uuid}" for uuid in UUIDS)),
        ("none", (), ()),
    ],
)
def test_gpus_inside_the_callers_mask(
    machine: Path, mask: str | None, visible: tuple[str, ...], locks: tuple[str, ...]
) -> None:
    environ = {} if mask is None else {"CUDA_VISIBLE_DEVICES": mask}

    assert visible_gpus(environ, root=machine) == visible
    assert gpu_locks(environ, root=machine) == locks


def test_without_the_drivers_files_there_is_one_lock_for_all(tmp_path: Path) -> None:
    assert visible_gpus({}, root=tmp_path) == ()
    assert visible_gpus({"CUDA_VISIBLE_DEVICES": "0"}, root=tmp_path) == ()
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / "nvidia0").touch()

    assert visible_gpus({}, root=tmp_path) == ("0",)
    assert gpu_locks({}, root=tmp_path) == ("gpu",)

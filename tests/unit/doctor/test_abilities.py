"""What a machine can show, read from files a test lays out."""

from __future__ import annotations

from pathlib import Path

import pytest

from reprocheck.engine import abilities as can
from reprocheck.engine.abilities import abilities, ability, not_shown


def laid_out(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.mark.parametrize(
    ("what", "files", "status", "why"),
    [
        (can.QUOTA, {"sys/fs/cgroup/cpu.max": "150000 100000\n"}, "limited", "quota of 1.5 CPUs"),
        (can.QUOTA, {"sys/fs/cgroup/cpu.max": "max 100000\n"}, "yes", "no CPU quota"),
        (can.QUOTA, {}, "yes", "no CPU quota"),
        (can.MEMORY, {"sys/fs/cgroup/memory.max": "2147483648\n"}, "limited", "2.0 GiB"),
        (can.GPU, {}, "no", "no CUDA device"),
        (can.GPU, {"dev/nvidia0": "", "dev/nvidia1": "", "dev/nvidiactl": ""}, "yes", "2 CUDA devices"),
        (can.AVX512, {"proc/cpuinfo": "flags : fpu avx2 avx512f\n"}, "yes", "AVX-512"),
        (can.AVX512, {"proc/cpuinfo": "flags : fpu avx2\n"}, "no", "none"),
        (can.ADDRESSES, {"proc/sys/kernel/randomize_va_space": "0\n"}, "no", "randomize_va_space is 0"),
        (can.ADDRESSES, {"proc/sys/kernel/randomize_va_space": "2\n"}, "yes", "other addresses"),
        (
            can.ADDRESSES,
            {"proc/sys/kernel/randomize_va_space": "2\n", "proc/self/personality": "00040000\n"},
            "no",
            "never change",
        ),
        (can.ATTACH, {"proc/sys/kernel/yama/ptrace_scope": "1\n"}, "limited", "own children"),
        (can.ATTACH, {"proc/sys/kernel/yama/ptrace_scope": "3\n"}, "no", "ptrace_scope is 3"),
        (can.COUNTERS, {}, "no", "no perf events"),
        (can.NUMA, {"sys/devices/system/node/node0/x": "", "sys/devices/system/node/node1/x": ""}, "yes", "2 memory"),
        (can.NUMA, {"sys/devices/system/node/node0/x": ""}, "no", "one memory node"),
        (can.START, {}, "no", "can't be read"),
    ],
)
def test_what_is_read_from_files(tmp_path: Path, what: str, files: dict[str, str], status: str, why: str) -> None:
    found = ability(what, laid_out(tmp_path, files))
    assert (found.what, found.status) == (what, status)
    assert why in found.why


def test_one_core_and_a_mask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0})
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    assert (ability(can.CORES).status, ability(can.CORES).why) == ("no", "one core")
    assert ability(can.AFFINITY).status == "limited"
    assert "1 of 8 CPUs" in ability(can.AFFINITY).why


def test_this_machine_answers_every_question() -> None:
    found = abilities()
    assert len({item.what for item in found}) == len(found) >= 10
    assert all(item.why for item in found)
    assert [item.what for item in not_shown()] == [item.what for item in found if item.status == "no"]

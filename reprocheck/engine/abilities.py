"""What this machine can show and what it cannot: the one home of that question, for `doctor`, `selftest` and notes.

Everything is read from `/proc`, `/sys` and the search path; nothing is started, and no library is loaded.
"""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

from reprocheck.model import Struct
from reprocheck.words import counted

__all__ = ["AVX512", "COMPILER", "CORES", "GPU", "Ability", "NotChecked", "abilities", "ability", "not_shown"]

CORES = "differences that come from the number of threads"
GPU = "GPU settings and libraries"
AVX512 = "kernels for AVX-512"
COMPILER = "faults planted in native libraries"
ADDRESSES = "differences that come from addresses"
ATTACH = "looking into processes from outside"
COUNTERS = "hardware counters"
AFFINITY = "what a process does with all CPUs of this machine"
QUOTA = "undisturbed timings"
NUMA = "differences that come from where memory lies"
START = "the environment as it was when a process was started"
MEMORY = "outputs as large as this machine's memory"


class NotChecked(Struct, frozen=True, kw_only=True):
    """Something that this machine cannot show."""

    what: str
    why: str


class Ability(Struct, frozen=True, kw_only=True):
    """One kind of thing, and whether it shows on this machine."""

    what: str
    status: Literal["yes", "limited", "no"]
    why: str
    """What was seen that says so."""

    @property
    def can(self) -> bool:
        """Whether it shows at all."""
        return self.status != "no"


def abilities(root: Path = Path("/")) -> tuple[Ability, ...]:
    """Everything that is asked of a machine, in a fixed sequence; `root` is another file system's, for tests."""
    return tuple(look(root) for look in _LOOKS.values())


def ability(what: str, root: Path = Path("/")) -> Ability:
    """One of them."""
    return _LOOKS[what](root)


def not_shown(*wanted: str, root: Path = Path("/")) -> list[NotChecked]:
    """Those of `wanted` (all, without any) that do not show here, and why."""
    found = [ability(what, root) for what in wanted or _LOOKS]
    return [NotChecked(what=item.what, why=item.why) for item in found if not item.can]


def _cores(_: Path) -> Ability:
    count = len(os.sched_getaffinity(0))
    return Ability(what=CORES, status="yes" if count > 1 else "no", why="one core" if count == 1 else f"{count} cores")


def _affinity(_: Path) -> Ability:
    mine, all_ = len(os.sched_getaffinity(0)), os.cpu_count() or 1
    if mine == all_:
        return Ability(what=AFFINITY, status="yes", why=f"the affinity mask holds all {all_}")
    why = f"the affinity mask holds {mine} of {all_} CPUs: libraries that count CPUs without it start {all_} threads"
    return Ability(what=AFFINITY, status="limited", why=why)


def _quota(root: Path) -> Ability:
    text = _read(root / "sys/fs/cgroup/cpu.max").split()
    if not text or text[0] == "max" or not text[0].isdigit():
        return Ability(what=QUOTA, status="yes", why="no CPU quota")
    cpus = int(text[0]) / int(text[1])
    why = f"a cgroup quota of {cpus:g} CPUs: threads stop when it is used up, and libraries do not see it"
    return Ability(what=QUOTA, status="limited", why=why)


def _memory(root: Path) -> Ability:
    text = _read(root / "sys/fs/cgroup/memory.max").strip()
    if not text.isdigit():
        return Ability(what=MEMORY, status="yes", why="no memory limit")
    return Ability(what=MEMORY, status="limited", why=f"a cgroup limit of {int(text) / 2**30:.1f} GiB")


def _gpu(root: Path) -> Ability:
    devices = sorted((root / "dev").glob("nvidia[0-9]*"))
    if not devices:
        return Ability(what=GPU, status="no", why="no CUDA device")
    return Ability(what=GPU, status="yes", why=counted(len(devices), "CUDA device"))


def _avx512(root: Path) -> Ability:
    if "avx512f" in _read(root / "proc/cpuinfo"):
        return Ability(what=AVX512, status="yes", why="the processor has AVX-512")
    return Ability(what=AVX512, status="no", why="the processor has none")


def _compiler(_: Path) -> Ability:
    if shutil.which("cc") is None:
        return Ability(what=COMPILER, status="no", why="no C compiler (cc)")
    return Ability(what=COMPILER, status="yes", why="a C compiler (cc)")


def _addresses(root: Path) -> Ability:
    text = _read(root / "proc/sys/kernel/randomize_va_space").strip()
    personality = int(_read(root / "proc/self/personality").strip() or "0", 16)
    if personality & 0x0040000:
        return Ability(what=ADDRESSES, status="no", why="this process was started with addresses that never change")
    if text == "0":
        return Ability(what=ADDRESSES, status="no", why="address space randomisation is off (randomize_va_space is 0)")
    if text == "":
        return Ability(what=ADDRESSES, status="limited", why="randomize_va_space can't be read")
    return Ability(what=ADDRESSES, status="yes", why="every process gets other addresses")


def _attach(root: Path) -> Ability:
    scope = _read(root / "proc/sys/kernel/yama/ptrace_scope").strip()
    if scope in ("", "0"):
        return Ability(what=ATTACH, status="yes", why="ptrace is not restricted")
    if scope == "1":
        return Ability(what=ATTACH, status="limited", why="ptrace is for a process's own children (ptrace_scope is 1)")
    return Ability(what=ATTACH, status="no", why=f"ptrace is not allowed (ptrace_scope is {scope})")


def _counters(root: Path) -> Ability:
    level = _read(root / "proc/sys/kernel/perf_event_paranoid").strip()
    if not level:
        return Ability(what=COUNTERS, status="no", why="the kernel has no perf events")
    if int(level) > 2 and os.geteuid() != 0:
        return Ability(what=COUNTERS, status="no", why=f"perf events are not allowed (perf_event_paranoid is {level})")
    if shutil.which("perf") is None:
        return Ability(what=COUNTERS, status="limited", why="perf events are allowed, but `perf` is not installed")
    return Ability(what=COUNTERS, status="yes", why="`perf` and perf events")


def _numa(root: Path) -> Ability:
    nodes = len(list((root / "sys/devices/system/node").glob("node[0-9]*")))
    if nodes > 1:
        return Ability(what=NUMA, status="yes", why=f"{nodes} memory nodes")
    return Ability(what=NUMA, status="no", why="one memory node")


def _start(root: Path) -> Ability:
    there = os.access(root / "proc/self/environ", os.R_OK)
    why = "/proc/self/environ can be read" if there else "/proc/self/environ can't be read"
    status: Literal["yes", "no"] = "yes" if there and platform.system() == "Linux" else "no"
    return Ability(what=START, status=status, why=why)


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""


_LOOKS: Mapping[str, Callable[[Path], Ability]] = {
    CORES: _cores,
    AFFINITY: _affinity,
    QUOTA: _quota,
    MEMORY: _memory,
    NUMA: _numa,
    GPU: _gpu,
    AVX512: _avx512,
    ADDRESSES: _addresses,
    START: _start,
    COUNTERS: _counters,
    ATTACH: _attach,
    COMPILER: _compiler,
}

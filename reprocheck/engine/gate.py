"""How many trials run at once on this machine, whoever starts them: advisory locks on files, gone with their process.

Eight test processes with two trials each would be sixteen interpreters, whose threads then fight for the cores, and on
one GPU they would share memory and caches. A gate is passed by as many trials at a time as there are slots; trials that
use a GPU also hold a lock of every device they can see. Slots need no server and survive crashes: the kernel lets go
of `flock` locks when their process ends (https://man7.org/linux/man-pages/man2/flock.2.html).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import stat
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from reprocheck.engine.process import Stop
from reprocheck.errors import HarnessError

__all__ = ["Gate", "gpu_gate", "gpu_locks", "shared_folder", "visible_gpus"]

POLL_S = 0.02


class Gate:
    """Passed by at most `slots` trials at a time, over all processes of this user that use the same folder."""

    def __init__(self, slots: int, *, exclusive: Sequence[str] = (), folder: Path | None = None) -> None:
        """`exclusive` names locks of which every trial holds all (see `gpu_locks`); `folder` is for tests."""
        self._slots = slots
        # In one sequence for all, so that two holders of several never wait for each other.
        self._exclusive = sorted(set(exclusive))
        self._folder = folder or shared_folder()

    @contextlib.contextmanager
    def passing(self, stop: Stop) -> Iterator[None]:
        """Wait for a slot and the exclusive locks, and hold them; `HarnessError` when `stop` is set meanwhile."""
        with contextlib.ExitStack() as held:
            for name in self._exclusive:
                held.enter_context(self._first([name], stop))
            held.enter_context(self._first([f"slot-{number}" for number in range(self._slots)], stop))
            yield

    @contextlib.contextmanager
    def _first(self, names: Sequence[str], stop: Stop) -> Iterator[None]:
        """Hold the first lock out of `names` that becomes free."""
        while True:
            for name in names:
                fd = os.open(self._folder / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    os.close(fd)
                    continue
                try:
                    yield
                finally:
                    os.close(fd)
                return
            if stop.wait(POLL_S):
                raise HarnessError("interrupted")


def shared_folder() -> Path:
    """The folder of this user's locks. Raises `HarnessError` if somebody else made it."""
    folder = Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()) / f"reprocheck-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise HarnessError(f"cannot make `{folder}` for locks: {error.strerror}; set XDG_RUNTIME_DIR") from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise HarnessError(f"`{folder}` belongs to somebody else; remove it, or set XDG_RUNTIME_DIR")
    return folder


def visible_gpus(environ: Mapping[str, str], *, root: Path = Path("/")) -> tuple[str, ...]:
    """What a program with these variables would see as its GPUs: UUIDs or numbers; empty without a GPU.

    Asked of the driver's files, so nothing is initialised. `root` is for tests.
    """
    known = _uuids(root)
    mask = environ.get("CUDA_VISIBLE_DEVICES")
    if mask is None:
        if known:
            return known
        return tuple(sorted(path.name.removeprefix("nvidia") for path in (root / "dev").glob("nvidia[0-9]*")))
    if not known and not any((root / "dev").glob("nvidia[0-9]*")):
        return ()
    seen = []
    for token in mask.split(","):
        # As CUDA reads it: the first entry that means nothing ends the list.
        entry = token.strip()
        if not re.fullmatch(r"\d+|(GPU|MIG)-[0-9A-Za-z/-]+", entry):
            break
        seen.append(entry)
    return tuple(seen)


def gpu_locks(environ: Mapping[str, str], *, root: Path = Path("/")) -> tuple[str, ...]:
    """Names of the locks to hold while using the visible GPUs.

    A number may mean another device in another process (CUDA_DEVICE_ORDER), so whoever goes by numbers locks all.
    """
    visible = visible_gpus(environ, root=root)
    if not visible:
        return ()
    known = _uuids(root)
    if all(name.startswith("GPU-") for name in visible):
        return tuple(f"gpu-{name}" for name in visible)
    return tuple(f"gpu-{name}" for name in known) or ("gpu",)


def gpu_gate(environ: Mapping[str, str], slots: int) -> Gate | None:
    """Where there is a GPU, one trial on it at a time, over all runs on this machine; elsewhere no gate."""
    locks = gpu_locks(environ)
    return Gate(slots, exclusive=locks) if locks else None


def _uuids(root: Path) -> tuple[str, ...]:
    """UUIDs of the machine's GPUs, by PCI address, as far as the driver tells."""
    found = []
    for file in sorted((root / "proc/driver/nvidia/gpus").glob("*/information")):
        with contextlib.suppress(OSError):
            match = re.search(r"GPU UUID:\s*(GPU-[0-9a-f-]+)", file.read_text("utf-8", "replace"))
            if match:
                found.append(match.group(1))
    return tuple(found)

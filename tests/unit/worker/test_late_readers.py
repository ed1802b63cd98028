"""Readers of devices and allocators, on stand-ins: what they make of the numbers."""

# The worker has no annotations: it runs on interpreters that would have to load `typing` for them.
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import platform
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from reprocheck.worker import elf
from reprocheck.worker.snapshot import (
    cupy_late,
    cupy_state,
    fp_control,
    fp_threads,
    host,
    numpy_state,
    objects,
    openmp,
    others,
    torch_late,
    torch_state,
)

CONTROL = {"x86_64": "0x1f80", "aarch64": "0x00000000"}


def block(size: int, state: str) -> dict[str, Any]:
    return {"size": size, "state": state}


def segment(device: int, *blocks: dict[str, Any]) -> dict[str, Any]:
    allocated = sum(one["size"] for one in blocks if one["state"] == "active_allocated")
    total = sum(one["size"] for one in blocks)
    return {"device": device, "total_size": total, "allocated_size": allocated, "blocks": list(blocks)}


def device_torch(*segments: dict[str, Any]) -> SimpleNamespace:
    memory = SimpleNamespace(
        _snapshot=lambda: {"segments": list(segments), "allocator_settings": {"expandable_segments": False}},
        _get_current_allocator=SimpleNamespace,
    )
    statistics = {"num_alloc_retries": 2, "num_ooms": 0, "something.else": 5}
    cuda = SimpleNamespace(memory=memory, memory_stats=lambda _device: statistics)
    return SimpleNamespace(cuda=cuda, _C=SimpleNamespace(_cuda_getDeviceCount=lambda: 2))


def test_fragmentation_of_device_memory() -> None:
    found = torch_late._memory(
        device_torch(
            segment(0, block(512, "active_allocated"), block(1536, "inactive")),
            segment(0, block(1024, "inactive"), block(1024, "active_allocated")),
            segment(1, block(2048, "active_allocated")),
        )
    )
    assert found["alloc.0.segments"] == 2
    assert found["alloc.0.reserved"] == 4096
    assert found["alloc.0.allocated"] == 1536
    assert found["alloc.0.free_blocks"] == 2
    assert found["alloc.0.largest_free_block"] == 1536
    assert found["alloc.1.largest_free_block"] == 0
    assert found["alloc.0.num_alloc_retries"] == 2
    assert "alloc.0.something.else" not in found
    assert found["alloc.parsed"] == {"expandable_segments": "False"}


def test_an_allocator_without_a_snapshot() -> None:
    torch = device_torch()

    def refuse() -> None:
        raise RuntimeError("cudaMallocAsync does not yet support memory_snapshot")

    torch.cuda.memory._snapshot = refuse
    assert torch_late._memory(torch)["alloc.segments"]["error"].startswith("RuntimeError: cudaMallocAsync")


def test_a_raising_getter_is_a_state() -> None:
    def mixed() -> None:
        raise RuntimeError("mix of the legacy and new APIs\nsecond line")

    assert torch_state.attempt(mixed) == {"error": "RuntimeError: mix of the legacy and new APIs"}
    assert torch_state.attempt(None) == "absent"
    assert torch_state.attempt(lambda: (1, [True, None], complex)) == [1, [True, None], "<class 'complex'>"]


def test_attributes_of_modules_are_never_made(monkeypatch: pytest.MonkeyPatch) -> None:
    class Lazy(ModuleType):
        def __getattr__(self, name: str) -> Any:
            raise AssertionError(name)

    package = ModuleType("package")
    vars(package)["inner"] = SimpleNamespace(value=3)
    assert torch_state.find(package, "inner.value") == 3
    assert torch_state.find(package, "missing.value") is None
    monkeypatch.setitem(sys.modules, "lazy_package", package)
    assert torch_state.table("lazy_package", "missing") == "absent"
    assert torch_state.table("no_such_package", "missing") == "absent"


@pytest.mark.parametrize("reader", [torch_state, numpy_state, cupy_state, torch_late, cupy_late])
def test_nothing_is_said_of_what_is_not_loaded(monkeypatch: pytest.MonkeyPatch, reader: ModuleType) -> None:
    for library in ("torch", "numpy", "cupy"):
        monkeypatch.delitem(sys.modules, library, raising=False)
    assert reader.read() == {}


def test_cupy_without_a_handle() -> None:
    assert cupy_late._handle(None) == {"cublas": "no handle"}
    assert cupy_late._handle(ModuleType("device")) == {"cublas": "no handle"}


def test_allocator_of_cupy_names_its_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    class Pool:
        def malloc(self) -> None:
            pass

    def mine() -> None:
        pass

    for allocator, name in ((Pool().malloc, "Pool.malloc"), (mine, "mine")):
        fake = SimpleNamespace(cuda=SimpleNamespace(get_allocator=lambda allocator=allocator: allocator))
        assert cupy_state._allocator(fake).endswith(name)


def test_other_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    fake: Any = ModuleType("cv2")
    fake.getNumThreads = lambda: 3
    fake.useOptimized = lambda: True
    monkeypatch.setitem(sys.modules, "cv2", fake)
    numba: Any = ModuleType("numba")
    numba.config = SimpleNamespace(NUMBA_NUM_THREADS=2, THREADING_LAYER="default")
    monkeypatch.setitem(sys.modules, "numba", numba)
    found = others.read()
    assert found["cv2.threads"] == 3
    assert found["numba.threads"] == 2
    assert found["numba.layer"] == "absent"


@pytest.mark.skipif(platform.machine() not in CONTROL, reason="no layout known")
def test_control_register_of_a_healthy_thread() -> None:
    found = fp_control.read()
    assert found["control"] == CONTROL[platform.machine()]
    assert found["control.rounding"] == "nearest"
    assert not found["control.ftz"]


@pytest.mark.skipif(platform.machine() not in CONTROL, reason="no layout known")
def test_a_new_thread_inherits_it() -> None:
    assert fp_threads.read()["new_thread"] == fp_control.read()["control"]


def test_host_is_told() -> None:
    found = host.read()
    assert found["machine"] == platform.machine()
    assert found["cpus"]
    assert not [value for value in found.values() if isinstance(value, dict)]


@pytest.mark.parametrize(("text", "chosen"), [("always [madvise] never", "madvise"), ("2", "2"), ("", "")])
def test_chosen_of_a_kernel_setting(text: str, chosen: str) -> None:
    assert host._chosen(text) == chosen


@pytest.mark.parametrize(
    ("path", "tidied"),
    [
        ("/a/b/../c/d.so", "/a/c/d.so"),
        ("/a/./d.so", "/a/d.so"),
        ("/a/.hidden/d.so", "/a/.hidden/d.so"),
        ("d.so", "d.so"),
    ],
)
def test_tidy(path: str, tidied: str) -> None:
    assert objects.tidy(path) == tidied


def test_objects_of_this_process() -> None:
    found = objects.read()
    paths = [one["path"] for one in found["objects"]]
    assert any(path.rpartition("/")[2].startswith("libc.so") for path in paths)
    assert found["family.malloc"]
    assert found["scope.malloc"] == found["family.malloc"][0]
    described = next(one for one in found["objects"] if one.get("soname") == "libc.so.6")
    assert described["file"].count(":") == 1
    assert described["build_id"]


def test_no_runtime_of_openmp_is_invented() -> None:
    with elf.Memory() as memory:
        names = [one.path.rpartition("/")[2] for one in openmp.runtimes(memory, elf.objects(memory))]
    assert all("omp" in name for name in names)

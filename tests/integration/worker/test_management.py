"""The reader of NVIDIA's management library, on a library of that interface built on the spot."""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from pathlib import Path

import pytest

from reprocheck.explain.catalogue import KEYS
from reprocheck.worker.snapshot import LAST, gpu
from tests.integration.worker.test_native import CC, compile_c

pytestmark = pytest.mark.skipif(CC is None, reason="needs a C compiler")

DEVICE = r"""
#include <stdio.h>
#include <string.h>
typedef void* device;
int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlSystemGetDriverVersion(char* to, unsigned n) { snprintf(to, n, "570.86.15"); return 0; }
int nvmlDeviceGetCount_v2(unsigned* n) { *n = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, device* d) { if (i) return 15; *d = (device)&nvmlInit_v2; return 0; }
int nvmlDeviceGetName(device d, char* to, unsigned n) { snprintf(to, n, "Example GPU"); return d ? 0 : 2; }
int nvmlDeviceGetCudaComputeCapability(device d, int* a, int* b) { *a = 9; *b = 0; return 0; }
int nvmlDeviceGetComputeMode(device d, unsigned* m) { *m = 3; return 0; }
int nvmlDeviceGetPersistenceMode(device d, unsigned* m) { *m = 1; return 0; }
int nvmlDeviceGetEnforcedPowerLimit(device d, unsigned* m) { *m = 700000; return 0; }
int nvmlDeviceGetEccMode(device d, unsigned* a, unsigned* b) { *a = 1; *b = 1; return 0; }
int nvmlDeviceGetMigMode(device d, unsigned* a, unsigned* b) { return 3; }
"""


def test_what_the_library_says(tmp_path: Path) -> None:
    found = gpu.ask(compile_c(tmp_path, "libnvidia-ml.so.1", DEVICE))

    assert found == {
        "driver": "570.86.15",
        "count": 2,
        "0.name": "Example GPU",
        "0.capability": "9.0",
        "0.compute_mode": "exclusive process",
        "0.persistence": "on",
        "0.power_limit_mw": 700000,
        "0.ecc": "on",
        "0.mig": "not supported",
        "1.name": {"error": "code 15"},
    }
    for key in found:
        assert any(row.reader == "gpu" for row in KEYS if row.pattern in ("gpu.*", "gpu.driver")), key


def test_a_library_that_does_not_start(tmp_path: Path) -> None:
    path = compile_c(tmp_path, "libnvidia-ml.so.1", "int nvmlInit_v2(void) { return 9; }\n")

    assert gpu.ask(path) == {"status": {"error": "nvmlInit: code 9"}}


def test_no_such_library() -> None:
    assert "error" in gpu.ask("/nowhere/libnvidia-ml.so.1")["status"]


def test_nothing_is_loaded_where_no_driver_is_mapped() -> None:
    assert "gpu" in LAST, "it loads a library, so it comes when the outputs are saved"
    maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    if "libcuda.so" in maps:
        pytest.skip("CUDA's driver is mapped here")
    assert gpu.read() == {}

"""torch's settings whose getter freezes a variable, loads a library or needs an initialised device.

`ATEN_CPU_CAPABILITY` is read once by whoever asks first, and so are oneDNN's and cuBLAS's variables: asking before
the workload would take away its chance to set them.
"""

import sys

from .. import digest
from . import process
from .torch_state import attempt, find

__all__ = ["name", "phases", "read"]

name = "torch"
phases = ("t3",)

_CALLS = {
    "cpu.capability": "_C._get_cpu_capability",
    "cpu.parallel_info": "_C._parallel_info",
    "cpu.onednn_bf16": "ops.mkldnn._is_mkldnn_bf16_supported",
    "cpu.onednn_fp16": "ops.mkldnn._is_mkldnn_fp16_supported",
}
_CUDA = {
    "cuda.cublas_workspace": "_C._cuda_getCublasWorkspaceSize",
    "cuda.cublaslt_workspace": "_C._cuda_getCublasLtWorkspaceSize",
    "cuda.capturing": "_C._cuda_isCurrentStreamCapturing",
    "cuda.device": "_C._cuda_getDevice",
}
_STATS = (
    *("num_alloc_retries", "num_ooms", "num_sync_all_streams", "segment.all.peak", "segment.all.current"),
    *("allocation.all.allocated", "allocation.all.current", "allocated_bytes.all.peak", "reserved_bytes.all.peak"),
)


def read():
    """CPU capability, build, oneDNN; a CUDA build's cuDNN version; a started device's sizes and fragmentation."""
    torch = sys.modules.get("torch")
    if torch is None or "_C" not in vars(torch):
        return {}
    found = {key: attempt(find(torch, path)) for key, path in _CALLS.items()}
    if isinstance(found["cpu.parallel_info"], str):
        found["cpu.parallel_info"] = _without_environment(found["cpu.parallel_info"])
    found.update(_build(torch))
    if find(torch, "version.cuda"):
        found["cudnn.version"] = attempt(find(torch, "backends.cudnn.version"))
        if attempt(find(torch, "cuda.is_initialized")) is True:
            found.update({key: attempt(find(torch, path)) for key, path in _CUDA.items()})
            found.update(_memory(torch))
        else:
            found["cuda.cublas_workspace"] = "not initialised"
    return found


def _without_environment(text):
    """The settings of `parallel_info`, without the variables, which `environ` has."""
    lines = [line.strip() for line in text.splitlines()]
    return [line for line in lines if line and not line.startswith("Environment") and "not set" not in line]


def _build(torch):
    shown = attempt(find(torch, "_C._show_config"))
    if not isinstance(shown, str):
        return {"build.config": shown}
    lines = [line.strip(" -") for line in shown.splitlines()]
    wanted = ("MKL", "oneAPI", "Math Kernel", "DNN", "OpenMP", "LAPACK", "CPU capability", "CuDNN", "Magma")
    return {
        "build.config": digest.short(shown),
        "build.libraries": [line for line in lines if any(word in line for word in wanted) and len(line) < 200],
    }


def _memory(torch):
    """Statistics of each device's caching allocator, and how fragmented it is."""
    found = {"alloc.custom": attempt(_custom, torch)}
    for device in range(attempt(find(torch, "_C._cuda_getDeviceCount")) or 0):
        stats = attempt_dict(find(torch, "cuda.memory_stats"), device)
        for key in _STATS:
            if key in stats:
                found["alloc.%d.%s" % (device, key)] = stats[key]
    try:
        snapshot = find(torch, "cuda.memory._snapshot")()
    except Exception as error:
        found["alloc.segments"] = {"error": "%s: %s" % (type(error).__name__, str(error)[:200])}
        return found
    found["alloc.parsed"] = {str(key): str(value) for key, value in snapshot.get("allocator_settings", {}).items()}
    for device, segments in _by_device(snapshot.get("segments", ())).items():
        prefix = "alloc.%s." % device
        free = [block["size"] for one in segments for block in one["blocks"] if block["state"] == "inactive"]
        found[prefix + "segments"] = len(segments)
        found[prefix + "segment_sizes"] = digest.short(repr([one["total_size"] for one in segments]))
        found[prefix + "reserved"] = sum(one["total_size"] for one in segments)
        found[prefix + "allocated"] = sum(one["allocated_size"] for one in segments)
        found[prefix + "free_blocks"] = len(free)
        found[prefix + "largest_free_block"] = max(free, default=0)
    return found


def attempt_dict(function, *arguments):
    """What a getter of a dict returns; empty where it is missing or raises."""
    try:
        return dict(function(*arguments))
    except Exception:
        return {}


def _by_device(segments):
    found = {}
    for one in segments:
        found.setdefault(one["device"], []).append(one)
    return found


def _custom(torch):
    current = find(torch, "cuda.memory._get_current_allocator")
    return "absent" if current is None else process.origin(type(current()))

"""torch's settings: what decides which kernel runs, on how many threads, in which precision, from which seed.

Fields of memory only. Getters that read an environment variable for good (CPU capability, oneDNN, cuBLAS
workspaces), load a library (the cuDNN version) or start CUDA are in `torch_late`. A name this torch does not have is
`absent`; a getter that raises is itself a state (the old precision API does after the new one was used).
"""

import sys

from .. import digest
from . import process

__all__ = ["CALLS", "attempt", "find", "name", "phases", "read", "table"]

name = "torch"
phases = ("t1", "t2", "t3")

# key: attribute below torch, without the call.
CALLS = {
    "threads.intra": "get_num_threads",
    "threads.inter": "get_num_interop_threads",
    "deterministic.algorithms": "_C._get_deterministic_algorithms",
    "deterministic.warn_only": "_C._get_deterministic_algorithms_warn_only",
    "deterministic.fill_uninitialized": "_C._get_deterministic_fill_uninitialized_memory",
    "fp32.legacy.matmul_precision": "_C._get_float32_matmul_precision",
    "fp32.legacy.cublas_tf32": "_C._get_cublas_allow_tf32",
    "fp32.legacy.cudnn_tf32": "_C._get_cudnn_allow_tf32",
    "fp32.legacy.onednn_tf32": "_C._get_onednn_allow_tf32",
    "reduced.cublas_fp16": "_C._get_cublas_allow_fp16_reduced_precision_reduction",
    "reduced.cublas_bf16": "_C._get_cublas_allow_bf16_reduced_precision_reduction",
    "reduced.cublas_fp16_accumulation": "_C._get_cublas_allow_fp16_accumulation",
    "reduced.cpu_fp16": "_C._get_cpu_allow_fp16_reduced_precision_reduction",
    "reduced.math_sdp": "_C._get_math_sdp_allow_fp16_bf16_reduction",
    "cudnn.enabled": "_C._get_cudnn_enabled",
    "cudnn.benchmark": "_C._get_cudnn_benchmark",
    "cudnn.benchmark_limit": "_C._cuda_get_cudnn_benchmark_limit",
    "cudnn.deterministic": "_C._get_cudnn_deterministic",
    "cudnn.depthwise_kernel": "_C._get_cudnn_depthwise_kernel",
    "backend.blas": "_C._get_blas_preferred_backend",
    "backend.linalg": "_C._get_linalg_preferred_backend",
    "backend.rocm_attention": "_C._get_rocm_fa_preferred_backend",
    "backend.miopen_immediate": "_C._get_miopen_immediate",
    "backend.grouped_gemm": "_C._get_cublaslt_prefer_grouped_gemm",
    "backend.sm_carveout": "_C._get_sm_carveout_experimental",
    "backend.mkldnn": "_C._get_mkldnn_enabled",
    "backend.mkldnn_deterministic": "_C._get_mkldnn_deterministic",
    "backend.nnpack": "_C._get_nnpack_enabled",
    "backend.qengine": "_C._get_qengine",
    "backend.tunable": "_C._cuda_tunableop_is_enabled",
    "backend.tunable_tuning": "_C._cuda_tunableop_tuning_is_enabled",
    "sdp.flash": "_C._get_flash_sdp_enabled",
    "sdp.mem_efficient": "_C._get_mem_efficient_sdp_enabled",
    "sdp.math": "_C._get_math_sdp_enabled",
    "sdp.cudnn": "_C._get_cudnn_sdp_enabled",
    "sdp.fa3": "_C._get_fa3_sdp_enabled",
    "sdp.overrideable": "_C._get_overrideable_sdp_enabled",
    "sdp.priority": "_C._get_sdp_priority_order",
    "mode.default_dtype": "get_default_dtype",
    "mode.grad": "is_grad_enabled",
    "mode.inference": "is_inference_mode_enabled",
    "mode.anomaly": "is_anomaly_enabled",
    "mode.autocast_cache": "is_autocast_cache_enabled",
    "mode.torch_function": "_C._is_torch_function_enabled",
    "mode.multithreaded_backward": "_C._is_multithreading_enabled",
    "mode.graph_executor": "_C._get_graph_executor_optimize",
    "rng.initial_seed": "default_generator.initial_seed",
    "alloc.backend": "_C._cuda_getAllocatorBackend",
    "alloc.settings": "_C._accelerator_getAllocatorSettings",
    "alloc.caching": "_C._cuda_cudaCachingAllocator_is_enabled",
    "alloc.initialised": "_C._accelerator_isAllocatorInitialized",
    "cuda.sync_debug": "_C._cuda_get_sync_debug_mode",
}
# Backend and operation of the precision API of 2.9: only these pairs are valid.
_FP32 = (
    *(("generic", "all"), ("cuda", "all"), ("cuda", "matmul"), ("cuda", "conv"), ("cuda", "rnn")),
    *(("mkldnn", "all"), ("mkldnn", "matmul"), ("mkldnn", "conv"), ("mkldnn", "rnn")),
)
_FIELDS = {
    "version": ("torch", "__version__"),
    "build.git": ("torch.version", "git_version"),
    "build.cuda": ("torch.version", "cuda"),
    "build.hip": ("torch.version", "hip"),
    "build.debug": ("torch.version", "debug"),
    "cuda.initialised": ("torch.cuda", "_initialized"),
    "multiprocessing.sharing": ("torch.multiprocessing", "_sharing_strategy"),
    "backend.opt_einsum": ("torch.backends.opt_einsum", "enabled"),
    "backend.opt_einsum_strategy": ("torch.backends.opt_einsum", "strategy"),
}
_PRINT = ("precision", "threshold", "edgeitems", "linewidth", "sci_mode")
_INDUCTOR = (
    *("use_fast_math", "emulate_precision_casts", "fallback_random", "align_random_eager", "max_autotune"),
    *("max_autotune_gemm", "max_autotune_pointwise", "epilogue_fusion", "prologue_fusion", "use_mixed_mm"),
    *("layout_optimization", "force_layout_optimization", "split_reductions", "shape_padding", "freezing"),
    *("benchmark_fusion", "coordinate_descent_tuning", "deterministic", "cpp.simdlen", "cpp.threads"),
    *("cpp.enable_floating_point_contract_flag", "cpp.enable_unsafe_math_opt_flag", "triton.cudagraphs"),
)
_DYNAMO = ("recompile_limit", "suppress_errors", "capture_scalar_outputs", "assume_static_by_default", "dynamic_shapes")


def read():
    """Every key of the catalogue, or nothing while torch is not loaded."""
    torch = sys.modules.get("torch")
    if torch is None or "_C" not in vars(torch):
        return {}
    found = {key: table(module, attribute) for key, (module, attribute) in _FIELDS.items()}
    for key, path in CALLS.items():
        found[key] = attempt(find(torch, path))
    getter = find(torch, "_C._get_fp32_precision_getter")
    for backend, operation in _FP32:
        found["fp32.%s.%s" % (backend, operation)] = attempt(getter, backend, operation)
    for device in ("cpu", "cuda"):
        found["mode.autocast." + device] = attempt(find(torch, "is_autocast_enabled"), device)
        found["mode.autocast_dtype." + device] = attempt(find(torch, "get_autocast_dtype"), device)
    found["mode.default_device"] = _default_device(torch)
    found["mode.function_modes"] = _modes("torch.overrides", "_get_current_function_mode_stack")
    found["mode.dispatch_modes"] = _modes("torch.utils._python_dispatch", "_get_current_dispatch_mode_stack")
    found["rng.cpu"] = _generator(find(torch, "default_generator"))
    found["rng.cuda"] = [
        _generator(one) for one in vars(sys.modules.get("torch.cuda", torch)).get("default_generators", ())
    ]
    options = vars(sys.modules.get("torch._tensor_str", torch)).get("PRINT_OPTS")
    found["print_options"] = {key: _plain(getattr(options, key, "absent")) for key in _PRINT}
    found.update(_configuration("inductor", sys.modules.get("torch._inductor.config"), _INDUCTOR))
    found.update(_configuration("dynamo", sys.modules.get("torch._dynamo.config"), _DYNAMO))
    return found


def find(root, path):
    """The attribute below `root`, or None. Modules are asked through their `__dict__`, so that nothing lazy loads."""
    for part in path.split("."):
        root = vars(root).get(part) if type(root) is type(sys) else getattr(root, part, None)
        if root is None:
            return None
    return root


def attempt(function, *arguments):
    """What `function` returns, as plain data; `absent` for None, `{"error": …}` when it raises."""
    if function is None:
        return "absent"
    try:
        return _plain(function(*arguments))
    except Exception as error:
        first, *_ = str(error).splitlines() or [""]
        return {"error": "%s: %s" % (type(error).__name__, first[:300])}


def table(module, attribute):
    """An attribute of a loaded module, as plain data, or `absent`. Some are properties of the module's class."""
    owner = sys.modules.get(module)
    if owner is None or (type(owner) is type(sys) and attribute not in vars(owner)):
        return "absent"
    return attempt(lambda: getattr(owner, attribute, "absent"))


def _plain(value):
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, (tuple, list)):
        return [_plain(one) for one in value]
    return str(value)


def _default_device(torch):
    context = getattr(vars(torch).get("_GLOBAL_DEVICE_CONTEXT"), "device_context", None)
    if context is not None:
        return str(getattr(context, "device", context))
    return attempt(find(torch, "_C._get_default_device"))


def _modes(module, function):
    stack = vars(sys.modules[module]).get(function) if module in sys.modules else None
    return "absent" if stack is None else [process.origin(type(mode)) for mode in stack()]


def _generator(generator):
    """Digest of a generator's state; reading it does not advance it."""
    if generator is None:
        return "absent"
    try:
        state = generator.get_state()
        return digest.data(bytes(state.tolist()))
    except Exception as error:
        return {"error": "%s: %s" % (type(error).__name__, error)}


def _configuration(prefix, config, keys):
    if config is None:
        return {prefix: "not loaded"}
    found = {}
    for key in keys:
        value = config
        for part in key.split("."):
            value = getattr(value, part, "absent")
        found[prefix + "." + key] = _plain(value)
    return found

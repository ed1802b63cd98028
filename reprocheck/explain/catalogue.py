"""The rows of the table of captured keys. `keys` looks them up; to capture something new, add its row here."""

from __future__ import annotations

from typing import Literal

from reprocheck.model import Struct

__all__ = ["KEYS", "Compare", "KeyInfo", "Severity"]

Severity = Literal["numeric", "performance", "latent", "informational"]
"""`numeric`: known to change results. `performance`: speed or memory. `latent`: can change results under conditions."""

Compare = Literal["value", "set", "masked", "never"]
"""As it is; without regard to the order of a list; without addresses; not at all."""


class KeyInfo(Struct, frozen=True):
    """What is known of one key, or of all keys that a pattern matches."""

    pattern: str
    reader: str
    """Module under `worker/snapshot`; empty for a probe of the user's."""
    phases: tuple[str, ...]
    severity: Severity
    why: str
    """One sentence: why a difference matters."""
    compare: Compare = "value"


_PHASES: dict[str, tuple[str, ...]] = {
    "bindings": ("t2", "t3"),
    "blas": ("t2", "t3"),
    "blas_late": ("t3",),
    "cuda": ("t2", "t3"),
    "cupy_late": ("t3",),
    "cupy_state": ("t1", "t2", "t3"),
    "environ": ("t0", "t1", "t2", "t3"),
    "environ_all": ("t3",),
    "fp": ("t0", "t1", "t2", "t3"),
    "fp_control": ("t2", "t3"),
    "fp_threads": ("t3",),
    "gpu": ("t3",),
    "host": ("t3",),
    "libraries": ("t0", "t1", "t2", "t3"),
    "modules": ("t0", "t1", "t2", "t3"),
    "numpy_state": ("t1", "t2", "t3"),
    "objects": ("t2", "t3"),
    "openmp": ("t2", "t3"),
    "openmp_late": ("t3",),
    "others": ("t3",),
    "patches": ("t2", "t3"),
    "process": ("t0", "t1", "t2", "t3"),
    "torch_late": ("t3",),
    "torch_state": ("t1", "t2", "t3"),
}


def _rows(reader: str, *rows: tuple[str, Severity, str] | tuple[str, Severity, str, Compare]) -> tuple[KeyInfo, ...]:
    return tuple(
        KeyInfo(
            pattern=row[0],
            reader=reader,
            phases=_PHASES[reader],
            severity=row[1],
            why=row[2],
            compare=row[3] if len(row) == 4 else "value",
        )
        for row in rows
    )


_ENVIRON = _rows(
    "environ",
    ("environ.start.*", "informational", "The value at exec of a variable that changed since.", "never"),
    (
        "environ.*.OMP_*",
        "numeric",
        "OpenMP runtimes read it when they are loaded: thread count and schedule decide how sums are split.",
    ),
    ("environ.*.GOMP_*", "numeric", "libgomp reads it when it is loaded."),
    ("environ.*.KMP_*", "numeric", "Intel's and LLVM's OpenMP read it at their first call."),
    (
        "environ.*.MKL_*",
        "numeric",
        "MKL reads it at load or at its first call: threads, instruction set, reproducibility mode.",
    ),
    ("environ.*.OPENBLAS_*", "numeric", "OpenBLAS reads it when it is loaded: kernels (CORETYPE) and threads."),
    ("environ.*.GOTO_*", "numeric", "OpenBLAS reads it when it is loaded: threads."),
    ("environ.*.BLIS_*", "numeric", "BLIS reads it when it is loaded: threads and kernels."),
    ("environ.*.FLEXIBLAS*", "numeric", "FlexiBLAS picks the BLAS by it."),
    ("environ.*.VECLIB_*", "numeric", "Apple's BLAS reads it: threads."),
    ("environ.*.NPY_*", "numeric", "numpy reads it at import: which CPU features its kernels use."),
    ("environ.*.ATEN_*", "numeric", "torch reads it at the first operator: which CPU kernels are dispatched to."),
    (
        "environ.*.ONEDNN_*",
        "numeric",
        "oneDNN reads it at import or at its first primitive: instruction set, fast-math mode.",
    ),
    ("environ.*.DNNL_*", "numeric", "The older name of ONEDNN_…."),
    ("environ.*.MKLDNN_*", "numeric", "The oldest name of ONEDNN_…."),
    ("environ.*.CUBLAS*", "numeric", "cuBLAS reads it: workspace, emulation of precisions, logging."),
    (
        "environ.*.NVIDIA_TF32*",
        "numeric",
        "Overrides TF32 in all of NVIDIA's libraries, and no flag of torch shows it.",
    ),
    ("environ.*.CUDNN_*", "numeric", "cuDNN reads it: which algorithms it may choose."),
    ("environ.*.CUPY_*", "numeric", "cupy reads it at import or first use: accelerators, TF32, kernels' flags."),
    ("environ.*.CUTENSOR_*", "numeric", "cuTENSOR reads it."),
    ("environ.*.NVRTC_*", "numeric", "NVRTC appends it to the flags every run-time kernel is compiled with."),
    ("environ.*.TRITON_*", "numeric", "Triton reads it: precision of fp32 dots, caches."),
    ("environ.*.TORCHINDUCTOR_*", "numeric", "torch.compile reads it when its configuration is imported."),
    ("environ.*.TORCH*", "latent", "torch reads it at import or first use."),
    ("environ.*.PYTORCH*", "latent", "torch reads it at import: allocator, kernel caches, tuning."),
    ("environ.*.XLA_*", "latent", "XLA reads it when its backend starts."),
    ("environ.*.TF_*", "latent", "TensorFlow reads it at import."),
    (
        "environ.*.CUDA_*",
        "latent",
        "The CUDA driver reads it when it starts: visible devices, module loading, connections.",
    ),
    (
        "environ.*.NCCL_*",
        "latent",
        "NCCL reads it when a communicator is made: algorithm and protocol decide the order of a sum.",
    ),
    ("environ.*.NUMEXPR_*", "latent", "numexpr reads it at import: threads."),
    ("environ.*.NUMBA_*", "latent", "numba reads it at import: threads, fast math, CPU target."),
    (
        "environ.*.GLIBC_TUNABLES",
        "numeric",
        "glibc reads it at exec: which variants of libm's and memory functions run.",
    ),
    ("environ.*.LD_*", "latent", "The dynamic linker reads it at exec; children inherit a changed one."),
    ("environ.*.MALLOC_*", "performance", "glibc's malloc reads it at exec."),
    ("environ.*.LC_*", "latent", "Decides the locale of whoever calls setlocale: how decimals are parsed and printed."),
    ("environ.*.LANG*", "latent", "Decides the locale of whoever calls setlocale."),
    ("environ.*.PYTHON*", "informational", "Python reads it at start; children inherit a changed one."),
    ("environ.c", "informational", "The C library's environment could not be read.", "never"),
    ("environ.c.*", "latent", "C code sees this variable otherwise than Python does: some library called setenv."),
    ("environ.python.*", "informational", "A variable that changed since exec; children inherit it."),
)

_ENVIRON_ALL = _rows("environ_all", ("environ.others", "informational", "Digests of all other variables at exec."))

_LIBRARIES = _rows(
    "libraries",
    ("libraries.count", "informational", "How many native objects are loaded.", "never"),
    ("libraries.new", "informational", "Native objects that came in since the last snapshot, in load order.", "never"),
    ("libraries.gone", "informational", "Native objects unloaded since the last snapshot.", "never"),
    (
        "libraries.scope.global",
        "latent",
        "An object in the global scope offers its symbols to every library loaded later.",
        "set",
    ),
)

_OBJECTS = _rows(
    "objects",
    ("libraries.objects", "latent", "Which files are mapped, with build ids: another build computes otherwise.", "set"),
    (
        "libraries.duplicate.soname.*",
        "latent",
        "Two files with one SONAME: consumers loaded later get the first one.",
        "set",
    ),
    (
        "libraries.duplicate.family.openmp",
        "latent",
        "Two OpenMP runtimes: two thread pools, with settings of their own.",
        "set",
    ),
    (
        "libraries.duplicate.family.*",
        "latent",
        "Two providers of one library: which one serves whom depends on the order of loading.",
        "set",
    ),
    ("libraries.family.*", "informational", "The objects that provide this library, in load order.", "set"),
    ("libraries.scope", "informational", "The global scope could not be read.", "never"),
    ("libraries.scope.*", "latent", "The copy that a library loaded from now on would get from the global scope."),
)

_BINDINGS = _rows(
    "bindings",
    ("libraries.binding.unread", "informational", "Consumers beyond the limit of what is read.", "never"),
    ("libraries.binding.*.malloc", "performance", "Another memory allocator: addresses, alignment, speed."),
    ("libraries.binding.*.nccl", "latent", "Another copy of NCCL serves this consumer."),
    ("libraries.binding.*.cupti", "informational", "Another copy of CUPTI serves this consumer."),
    (
        "libraries.binding.*",
        "numeric",
        "This consumer computes with another copy of the library: another version, another result.",
    ),
)

_FP = (
    *_rows(
        "fp",
        ("fp.ftz", "numeric", "Denormal results become zero in this thread, and in threads it creates from now on."),
        ("fp.daz", "numeric", "Denormal inputs count as zero in this thread, and in threads it creates from now on."),
        ("fp.rounding", "numeric", "Another direction of rounding changes almost every result."),
    ),
    *_rows(
        "fp_control",
        ("fp.control", "numeric", "The control register of the main thread."),
        (
            "fp.control.unmasked",
            "latent",
            "Floating-point exceptions that stop the program instead of giving NaN or infinity.",
        ),
        ("fp.control.*", "numeric", "A bit of the main thread's control register."),
        ("fp.x87_control", "latent", "Precision and rounding of the old x87 unit, which long double uses."),
    ),
    *_rows(
        "fp_threads",
        ("fp.new_thread", "numeric", "The control register a new thread inherits."),
        ("fp.workers_started.*", "informational", "Workers that did not exist before they were asked.", "never"),
        (
            "fp.workers.*",
            "numeric",
            "The control registers of the workers: they keep what was in force when the pool began.",
        ),
    ),
)

_PROCESS = _rows(
    "process",
    (
        "process.affinity",
        "performance",
        "The CPUs the main thread may use; runtimes loaded later size their pools by it.",
    ),
    ("process.affinity.threads", "performance", "The CPUs the other threads may use."),
    ("process.threads.count", "performance", "Threads in the process: pools that were started."),
    ("process.threads.names", "performance", "Names of the threads."),
    ("process.random_state", "numeric", "The state of Python's own generator: another stream of numbers follows."),
    ("process.hash_probe", "latent", "String hashing: the order of sets of strings."),
    ("process.decimal", "numeric", "Python's decimal arithmetic: precision, rounding, traps of new contexts."),
    ("process.locale.numeric", "latent", "How C code parses and prints decimals: 1,5 or 1.5."),
    ("process.locale.*", "informational", "One category of the C locale."),
    ("process.start_method", "latent", "How multiprocessing starts workers: what they inherit."),
    ("process.cwd", "latent", "Relative paths lead elsewhere."),
    ("process.umask", "informational", "Permissions of new files."),
    ("process.nice", "performance", "Priority of the process."),
    ("process.scheduler", "performance", "Scheduling policy of the process."),
    ("process.personality", "informational", "Kernel personality: address space randomisation, legacy behaviour."),
    ("process.thp.process", "performance", "Transparent huge pages for this process."),
    ("process.memory_nodes", "performance", "NUMA nodes memory may come from."),
    ("process.no_new_privileges", "informational", "Set by sandboxes."),
    ("process.limit.stack_size", "latent", "Stack of new native threads; a small one crashes deep kernels."),
    ("process.limit.*", "informational", "A resource limit, soft/hard."),
    ("process.dlopen_flags", "latent", "With RTLD_GLOBAL every extension module's symbols leak into later libraries."),
    ("process.flags", "informational", "The interpreter's command-line switches."),
    ("process.switch_interval", "performance", "How often Python threads take turns."),
    ("process.recursion_limit", "informational", "Depth at which Python gives up."),
    ("process.int_max_str_digits", "informational", "Longest integer that is converted to or from text."),
    ("process.path", "latent", "Where later imports are looked for: another version of a module may be found.", "set"),
    ("process.hook.import", "latent", "Something replaced __import__."),
    ("process.hook.meta_path", "latent", "Who may decide what an import loads, in order."),
    ("process.hook.path_hooks", "latent", "Who may decide what an import loads from a path entry."),
    ("process.hook.trace", "performance", "A trace function slows every line."),
    ("process.hook.profile", "performance", "A profile function slows every call."),
    ("process.hook.monitoring", "performance", "Tools that watch execution."),
    ("process.hook.threading_*", "performance", "Trace or profile functions for new threads."),
    ("process.hook.*", "informational", "A hook of the interpreter that was replaced."),
    ("process.warnings.filters", "informational", "A warning may become an error, or silent."),
    ("process.warnings.*", "informational", "How warnings are shown."),
    ("process.gc.*", "performance", "When garbage is collected."),
    ("process.atexit.count", "informational", "Functions that run at exit.", "never"),
    (
        "process.signals.python",
        "latent",
        "Handlers in Python; one for SIGFPE or SIGINT changes what a failure looks like.",
    ),
    ("process.signals.*", "informational", "Signals with a native handler, ignored, or blocked."),
    *(
        (f"process.{part}", "informational", "This part of the process could not be read.", "never")
        for part in ("status", "threads", "kernel", "limits", "interpreter", "hooks", "loaded_modules")
    ),
)

_MODULES = _rows(
    "modules",
    ("modules.count", "informational", "Python modules loaded.", "never"),
    (
        "modules.new",
        "informational",
        "Top-level modules whose import began since the last snapshot, in that order.",
        "never",
    ),
)

_TORCH = (
    *_rows(
        "torch_late",
        ("torch.cpu.*", "numeric", "The instruction set torch and oneDNN settled on."),
        ("torch.build.config", "informational", "Digest of what torch was built with."),
        (
            "torch.build.libraries",
            "informational",
            "The numerical libraries torch names, the MKL it is bound to among them.",
        ),
        ("torch.cudnn.version", "numeric", "The version of cuDNN."),
        ("torch.cuda.cublas*", "numeric", "cuBLAS workspaces: their size decides which algorithms may be chosen."),
        ("torch.cuda.capturing", "latent", "Whether a CUDA graph was being captured."),
        ("torch.cuda.device", "latent", "The current device."),
        ("torch.alloc.custom", "performance", "An allocator of somebody's own serves device memory."),
        ("torch.alloc.parsed", "performance", "The allocator's settings as it understood them."),
        ("torch.alloc.segments", "informational", "The allocator's segments could not be read.", "never"),
        ("torch.alloc.[0-9]*", "performance", "Statistics and fragmentation of one device's memory."),
    ),
    *_rows(
        "torch_state",
        ("torch.version", "informational", "The version of torch."),
        ("torch.build.*", "informational", "The build of torch."),
        ("torch.threads.intra", "numeric", "Threads per operator: how sums, products and factorisations are split."),
        ("torch.threads.inter", "performance", "Threads that run operators side by side."),
        (
            "torch.deterministic.*",
            "numeric",
            "Whether nondeterministic kernels are avoided, and what fills uninitialised memory.",
        ),
        ("torch.fp32.*", "numeric", "Whether float32 products may be computed in TF32 or bfloat16."),
        ("torch.reduced.*", "numeric", "Whether half-precision products may be summed in half precision."),
        ("torch.cudnn.*", "numeric", "Which cuDNN algorithms may be chosen."),
        ("torch.backend.opt_einsum*", "numeric", "The order in which einsum contracts."),
        ("torch.backend.*", "numeric", "Which library carries out products, factorisations and convolutions."),
        ("torch.sdp.*", "numeric", "Which implementation of attention may be chosen, and in which order."),
        ("torch.mode.default_dtype", "numeric", "The precision of new tensors."),
        ("torch.mode.default_device", "numeric", "The device of new tensors."),
        ("torch.mode.autocast*", "numeric", "Operators run in lower precision."),
        ("torch.mode.function_modes", "latent", "Python code that sees every function call of torch."),
        ("torch.mode.dispatch_modes", "latent", "Python code that sees every operator."),
        ("torch.mode.*", "latent", "Gradient, inference, anomaly or compiler mode."),
        ("torch.rng.*", "numeric", "The state of torch's generators: another stream of numbers follows."),
        ("torch.alloc.*", "performance", "Which allocator serves device memory, and with which settings."),
        ("torch.cuda.sync_debug", "informational", "Whether synchronisations warn or fail."),
        ("torch.cuda.initialised", "latent", "Whether CUDA was started: variables set from then on are not seen."),
        ("torch.multiprocessing.sharing", "informational", "How tensors travel between processes."),
        ("torch.print_options", "informational", "How tensors are printed."),
        ("torch.inductor", "informational", "torch.compile's configuration is not loaded."),
        ("torch.inductor.*", "numeric", "How torch.compile generates code."),
        ("torch.dynamo", "informational", "torch.compile's front end is not loaded."),
        ("torch.dynamo.*", "latent", "What torch.compile captures."),
    ),
)

_NUMPY = _rows(
    "numpy_state",
    ("numpy.version", "informational", "The version of numpy."),
    ("numpy.errstate.*", "latent", "Whether a floating-point error warns, raises or is ignored."),
    ("numpy.errcall", "latent", "A function called on floating-point errors.", "masked"),
    ("numpy.print_options", "informational", "How arrays are printed."),
    ("numpy.buffer_size", "latent", "How long casting loops are: where sums are split."),
    ("numpy.cpu.*", "numeric", "Which CPU features numpy's kernels use."),
    ("numpy.alloc.*", "performance", "How numpy allocates memory."),
    ("numpy.promotion", "numeric", "The rule by which mixed types are promoted."),
    ("numpy.rng", "numeric", "The state of numpy's legacy generator: another stream of numbers follows."),
)

_CUPY = (
    *_rows(
        "cupy_state",
        ("cupy.version", "informational", "The version of cupy."),
        ("cupy.accelerator.*", "numeric", "Whether reductions and products go through CUB or cuTENSOR."),
        ("cupy.alloc.allocator", "performance", "Who serves device memory: cupy's pool, the driver, or torch."),
        ("cupy.runtime.static_version", "informational", "The CUDA runtime linked into cupy."),
        (
            "cupy.per_thread_stream",
            "latent",
            "Whether each thread has a default stream of its own: what is ordered with what.",
        ),
        ("cupy.rng", "numeric", "Devices that already have a generator."),
        ("cupy.preload", "latent", "CUDA libraries cupy loaded at import.", "masked"),
        ("cupy.fft.nd_planning", "numeric", "Whether FFTs over several axes are planned as one."),
        ("cupy.fft.multi_gpu", "numeric", "Whether FFTs are spread over devices."),
    ),
    *_rows(
        "cupy_late",
        ("cupy.compute_type.*", "numeric", "The precision products are computed in."),
        ("cupy.devices", "informational", "Devices cupy sees."),
        ("cupy.driver", "informational", "The driver's CUDA version, as cupy sees it."),
        ("cupy.pool.*", "performance", "Sizes and limits of cupy's memory pools."),
        ("cupy.fft.plan_cache_size", "informational", "Plans in cupy's cache."),
        ("cupy.stream.is_default", "latent", "Whether the current stream is the default one."),
        ("cupy.cublas*", "numeric", "Modes of cupy's cuBLAS handle."),
    ),
)

_COMPUTE = (
    *_rows(
        "openmp_late",
        ("openmp.*libiomp5*", "numeric", "A setting of Intel's OpenMP runtime, which is asked after the outputs only."),
        ("openmp.*libomp*", "numeric", "A setting of LLVM's OpenMP runtime, which is asked after the outputs only."),
    ),
    *_rows(
        "openmp",
        ("openmp.*.max_threads", "numeric", "Threads of this runtime: how work and sums are split."),
        ("openmp.*.dynamic", "numeric", "Whether this runtime picks the number of threads by the load."),
        ("openmp.*.schedule", "numeric", "How loops are split over threads."),
        ("openmp.*.max_active_levels", "latent", "Whether parallel regions may nest."),
        ("openmp.*", "performance", "A setting of this OpenMP runtime."),
    ),
    *_rows(
        "blas",
        ("blas.openblas.*.core", "numeric", "The CPU whose kernels this OpenBLAS uses."),
        ("blas.openblas.*.threads", "numeric", "Threads of this OpenBLAS: how products are split."),
        ("blas.openblas.*.processors", "performance", "CPUs this OpenBLAS counted when it was loaded."),
        ("blas.openblas.*", "numeric", "Version, build and threading of this OpenBLAS."),
        ("blas.mkl.*.version", "numeric", "The version of this MKL."),
        ("blas.mkl.*.threads", "numeric", "Threads of this MKL: how products are split."),
        ("blas.mkl.*.dynamic", "numeric", "Whether this MKL may use fewer threads than allowed."),
    ),
    *_rows(
        "blas_late", ("blas.mkl.*.cbwr", "numeric", "MKL's reproducibility mode: which instruction set it keeps to.")
    ),
    *_rows(
        "cuda",
        ("cuda.version.cudart", "latent", "Versions of the CUDA runtimes in the process."),
        ("cuda.version.cupti", "informational", "Versions of CUPTI in the process."),
        ("cuda.version.*", "numeric", "Versions of this CUDA library's copies, by file."),
        ("cuda.context.module_loading", "performance", "Whether kernels are loaded lazily."),
        ("cuda.context*", "informational", "Whether the driver was started, and which devices have a context."),
    ),
    *_rows(
        "gpu",
        ("gpu.driver", "informational", "The version of NVIDIA's driver."),
        ("gpu.*.name", "numeric", "Another GPU: other kernels are chosen."),
        ("gpu.*.capability", "numeric", "The compute capability kernels are chosen by."),
        ("gpu.*.mig", "numeric", "Whether the GPU is divided: kernels are chosen by the number of multiprocessors."),
        ("gpu.*.ecc", "informational", "Whether memory errors are corrected."),
        ("gpu.*.compute_mode", "latent", "How many processes may use the GPU at once."),
        ("gpu.*", "performance", "A mode of this GPU, as the driver's management library tells."),
    ),
    *_rows("others", ("others.*", "numeric", "Threads or switches of another numerical library.")),
)

_HOST = _rows(
    "host",
    ("host.cpu.*", "numeric", "Another CPU: other kernels are chosen."),
    ("host.libm.*", "numeric", "The variant of this libm function that was chosen for the CPU."),
    ("host.libc.*", "numeric", "The version of the C library, and so of libm."),
    ("host.cpus", "performance", "CPUs of the machine."),
    ("host.cgroup.*", "performance", "Limits of the container."),
    ("host.thp.enabled", "performance", "Transparent huge pages."),
    ("host.governor", "performance", "How the CPU's frequency is governed."),
    ("host.*", "informational", "A fact about the machine or its kernel."),
)

_PATCHES = _rows(
    "patches",
    ("patches.digest.*", "latent", "Digest over replaced functions and aliases of a namespace."),
    ("patches.*", "numeric", "Another package put its own function in the place of this one."),
)

KEYS: tuple[KeyInfo, ...] = (
    *_ENVIRON,
    *_ENVIRON_ALL,
    *_LIBRARIES,
    *_OBJECTS,
    *_BINDINGS,
    *_FP,
    *_PROCESS,
    *_MODULES,
    *_TORCH,
    *_NUMPY,
    *_CUPY,
    *_COMPUTE,
    *_HOST,
    *_PATCHES,
)
"""All rows, more special ones before more general ones."""

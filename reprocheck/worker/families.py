"""Library families: which exported symbol shows that an object provides one, and whose symbol a name is.

A family is what may be there twice, and then matters: two cuBLAS, two OpenMP runtimes, two BLAS.
"""

__all__ = ["MARKERS", "PROVES", "family", "stem"]

_BLAS = ("gemm", "gemv", "axpy", "scal", "trsm", "syrk", "ger", "nrm2", "trsv", "symm")
_LAPACK = (
    *("gesv", "getrf", "getrs", "getri", "potrf", "potrs", "gesdd", "gesvd", "geqrf", "orgqr", "ungqr", "syevd"),
    *("heevd", "syevr", "heevr", "geev", "gelsd", "gelsy", "trtrs", "sytrf"),
)
_MALLOC = ("malloc", "free", "calloc", "realloc", "posix_memalign", "aligned_alloc", "memalign")
_LIBM = (
    *("exp", "expf", "exp2", "exp2f", "log", "logf", "log2", "pow", "powf", "sin", "sinf", "cos", "cosf", "sincos"),
    *("tan", "tanf", "tanh", "tanhf", "erf", "erff", "cbrt", "log1p", "log1pf", "expm1", "fma", "fmaf", "hypot"),
)
_VML = ("vmsExp", "vmdExp", "vmsLn", "vmdLn", "vmsSin", "vmdSin", "vmsTanh", "vmdTanh", "vsExp", "vdExp")


def _fortran(names):
    """A routine under all spellings: reference, 64-bit integers, numpy's and scipy's own OpenBLAS."""
    for name in names:
        for kind in "sdcz":
            base = kind + name
            yield from (base + "_", base + "_64_", base + "64_", "scipy_" + base + "_", "scipy_" + base + "_64_")


_EXACT = {
    **{name.encode(): "malloc" for name in _MALLOC},
    **{name.encode(): "libm" for name in _LIBM},
    **{name.encode(): "mkl" for name in _VML},
    **{name.encode(): "blas" for name in _fortran(_BLAS)},
    **{name.encode(): "lapack" for name in _fortran(_LAPACK)},
}

_PREFIXES = {
    b"cublasLt": "cublaslt",
    b"cublasXt": "cublas",
    b"cublas": "cublas",
    b"cudnn": "cudnn",
    b"cufft": "cufft",
    b"curand": "curand",
    b"cusolver": "cusolver",
    b"cusparseLt": "cusparselt",
    b"cusparse": "cusparse",
    b"cutensor": "cutensor",
    b"cupti": "cupti",
    b"nvrtc": "nvrtc",
    b"nvJitLink": "nvjitlink",
    b"__nvJitLink": "nvjitlink",
    b"nccl": "nccl",
    b"GOMP_": "openmp",
    b"omp_": "openmp",
    b"__kmpc_": "openmp",
    b"MKL_": "mkl",
    b"mkl_": "mkl",
    b"Dfti": "mkl",
    b"cblas_": "blas",
    b"scipy_cblas_": "blas",
    b"LAPACKE_": "lapack",
    b"openblas_": "openblas",
    b"scipy_openblas_": "openblas",
    b"dnnl_": "onednn",
    b"fftw_": "fftw",
    b"fftwf_": "fftw",
}
_ANY = tuple(_PREFIXES)

MARKERS = {
    "blas": ("sgemm_", "dgemm_64_", "cblas_sgemm", "scipy_cblas_sgemm64_", "scipy_sgemm_64_", "scipy_sgemm_"),
    "cublas": ("cublasCreate_v2",),
    "cublaslt": ("cublasLtCreate",),
    "cuda-driver": ("cuInit",),
    "cudart": ("cudaMalloc",),
    "cudnn": ("cudnnCreate",),
    "cufft": ("cufftPlan1d",),
    "cupti": ("cuptiGetVersion",),
    "curand": ("curandCreateGenerator",),
    "cusolver": ("cusolverDnCreate",),
    "cusparse": ("cusparseCreate",),
    "cusparselt": ("cusparseLtInit",),
    "cutensor": ("cutensorCreate",),
    "fftw": ("fftw_execute", "fftwf_execute"),
    "lapack": ("sgetrf_", "sgesv_", "dgesv_64_", "scipy_sgesv_64_", "scipy_sgesv_"),
    "libm": ("expm1",),
    "malloc": ("malloc",),
    "mkl": ("MKL_Get_Version_String", "mkl_get_version_string"),
    "nccl": ("ncclCommInitRank",),
    "nvjitlink": ("nvJitLinkVersion",),
    "nvrtc": ("nvrtcCompileProgram",),
    "onednn": ("dnnl_version",),
    "openblas": (
        "openblas_get_config",
        "openblas_get_config64_",
        "scipy_openblas_get_config",
        "scipy_openblas_get_config64_",
    ),
    "openmp": ("GOMP_parallel", "__kmpc_fork_call"),
    "tbb": ("TBB_runtime_interface_version",),
}
"""Family -> symbols; an object that exports one of them provides the family."""

PROVES = {symbol: kind for kind, symbols in MARKERS.items() for symbol in symbols}
"""Such a symbol -> the family."""


def family(symbol):
    """The family whose symbol this is (bytes), or None."""
    found = _EXACT.get(symbol)
    if found is not None or not symbol.startswith(_ANY):
        return _cudart(symbol) if found is None else found
    for prefix, owner in _PREFIXES.items():
        if symbol.startswith(prefix):
            return owner
    return None


def _cudart(symbol):
    """`cudaMalloc`, `__cudaRegisterFatBinary`; not `cuda_info` of somebody's own."""
    bare = symbol[2:] if symbol.startswith(b"__") else symbol
    return "cudart" if bare.startswith(b"cuda") and bare[4:5].isupper() else None


def stem(file):
    """`libcublas` of `/x/libcublas-1a2b3c4d.so.13.1`: a library's name without version or auditwheel's hash."""
    base = file.rpartition("/")[2].partition(".so")[0]
    head, dash, tail = base.rpartition("-")
    if dash and len(tail) == 8 and all(char in "0123456789abcdef" for char in tail):
        return head
    return base

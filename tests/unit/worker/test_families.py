# The worker has no annotations: it runs on interpreters that would have to load `typing` for them.
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import pytest

from reprocheck.worker import families


@pytest.mark.parametrize(
    ("symbol", "family"),
    [
        ("cublasSgemm_v2", "cublas"),
        ("cublasLtMatmul", "cublaslt"),
        ("cublasXtSgemm", "cublas"),
        ("cudnnConvolutionForward", "cudnn"),
        ("cusparseLtMatmul", "cusparselt"),
        ("cusparseSpMM", "cusparse"),
        ("cudaMalloc", "cudart"),
        ("__cudaRegisterFatBinary", "cudart"),
        ("cuda_info", None),
        ("__cudart", None),
        ("GOMP_parallel", "openmp"),
        ("omp_get_max_threads", "openmp"),
        ("__kmpc_fork_call", "openmp"),
        ("sgemm_", "blas"),
        ("dgemm_64_", "blas"),
        ("scipy_dgemm_64_", "blas"),
        ("cblas_ddot", "blas"),
        ("sgetrf_", "lapack"),
        ("LAPACKE_dgesv", "lapack"),
        ("vmsExp", "mkl"),
        ("DftiComputeForward", "mkl"),
        ("MKL_Get_Max_Threads", "mkl"),
        ("malloc", "malloc"),
        ("mallopt", None),
        ("expf", "libm"),
        ("explain", None),
        ("_ZN2at4_ops3addE", None),
        ("", None),
    ],
)
def test_whose_symbol(symbol: str, family: str | None) -> None:
    assert families.family(symbol.encode()) == family


@pytest.mark.parametrize(
    ("file", "stem"),
    [
        ("/usr/lib/libgomp.so.1", "libgomp"),
        ("/x/libgomp-e985bcbb.so.1.0.0", "libgomp"),
        ("libscipy_openblas64_-32a4b2a6.so", "libscipy_openblas64_"),
        ("/x/libcublasLt.so.13", "libcublasLt"),
        ("libfoo-bar.so", "libfoo-bar"),
        ("_umath_linalg.cpython-311-x86_64-linux-gnu.so", "_umath_linalg.cpython-311-x86_64-linux-gnu"),
    ],
)
def test_stem(file: str, stem: str) -> None:
    assert families.stem(file) == stem


def test_every_marker_proves_one_family() -> None:
    symbols = [symbol for markers in families.MARKERS.values() for symbol in markers]
    assert len(symbols) == len(set(symbols)) == len(families.PROVES)


def test_markers_belong_to_their_family() -> None:
    for symbol, kind in families.PROVES.items():
        assert families.family(symbol.encode()) in (kind, None), symbol

"""Lines as the libraries print them, of real runs."""

from __future__ import annotations

import pytest

from reprocheck.explain.locate.verbose import Reader

MKL_2024 = (
    "MKL_VERBOSE oneMKL 2024.0 Update 2 Product build 20240605 for Intel(R) 64 architecture Intel(R) Architecture "
    "processors, Lnx 2.60GHz lp64 gnu_thread"
)
MKL_2026 = (
    "MKL_VERBOSE oneMKL 2026 Update 2 Product build 20260915 for Intel(R) 64 architecture Intel(R) Advanced Vector "
    "Extensions 512 (Intel(R) AVX-512) enabled processors, Lnx 2.60GHz lp64 intel_thread"
)
SGEMM = (
    "MKL_VERBOSE SGEMM(N,N,32,64,128,0x7ffce5b1be80,0x557bddd45040,32,0x557bddd31340,128,0x7ffce5b1bea0,0x557bddd265c0,"
    "32) 29.57ms CNR:OFF Dyn:1 FastMM:1 TID:0  NThr:2"
)
DNNL_INFO = (
    "onednn_verbose,v1,info,oneDNN v3.12.0 (commit 80afa71049cd69a3df32adcccb623b12cd7baa22)",
    "onednn_verbose,v1,info,cpu,runtime:OpenMP,nthr:2",
    "onednn_verbose,v1,info,cpu,isa:Intel AVX-512 with Intel DL Boost and bfloat16 support",
    "onednn_verbose,v1,primitive,info,template:operation,engine,primitive,implementation,problem_desc,exec_time",
)
DNNL_MATMUL = (
    "onednn_verbose,v1,primitive,exec,cpu,matmul,brg_matmul:avx512_core_bf16,undef,src:bf16::blocked:ab::f0 "
    "wei:bf16::blocked:ab::f0 dst:bf16::blocked:ab::f0,attr-scratchpad:user,,64x128:128x32,0.118164"
)


def test_mkl_call() -> None:
    assert Reader().kernels([MKL_2024, SGEMM]) == (
        "MKL 2024.2 (20240605, gnu_thread): SGEMM(N,N,32,64,128,32,128,32) CNR:OFF Dyn:1 FastMM:1 NThr:2",
    )


def test_pointers_times_and_thread_numbers_are_dropped() -> None:
    other = SGEMM.replace("0x7ffce5b1be80", "0x7f0000000000").replace("29.57ms", "3.1us").replace("TID:0", "TID:4")

    assert Reader().kernels([SGEMM]) == Reader().kernels([other])


def test_threads_and_shapes_are_kept() -> None:
    assert Reader().kernels([SGEMM]) != Reader().kernels([SGEMM.replace("NThr:2", "NThr:1")])
    assert Reader().kernels([SGEMM]) != Reader().kernels([SGEMM.replace("32,64,128", "32,64,127")])


def test_the_version_that_introduced_itself_last_counts() -> None:
    first, second = Reader().kernels([MKL_2024, SGEMM, MKL_2026, SGEMM])

    assert first.startswith("MKL 2024.2 (20240605, gnu_thread):")
    assert second.startswith("MKL 2026.2 (20260915, Advanced Vector Extensions 512, intel_thread):")


def test_onednn() -> None:
    (kernel,) = Reader().kernels([*DNNL_INFO, DNNL_MATMUL])

    library, _, rest = kernel.partition(": ")
    assert library == "oneDNN v3.12.0 (Intel AVX-512 with Intel DL Boost and bfloat16 support)"
    assert rest.startswith("cpu,matmul,brg_matmul:avx512_core_bf16,undef,src:bf16")
    assert rest.endswith("64x128:128x32"), "the time is dropped"


@pytest.mark.parametrize("text", ["", "hello", "MKL_VERBOSE", "onednn_verbose,v1", "MKL_VERBOSE oneMKL"])
def test_other_text_is_no_kernel(text: str) -> None:
    assert Reader().kernels([text]) == ()


def test_cuda_kernels_are_taken_as_they_are() -> None:
    assert Reader().kernels(["cuda sm90_xmma_gemm_f32f32"]) == ("cuda sm90_xmma_gemm_f32f32",)

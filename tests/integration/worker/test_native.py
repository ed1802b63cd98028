"""Native libraries built on the spot: two with one SONAME, symbols in the global scope, constructors that do things."""

from __future__ import annotations

import platform
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from .conftest import Observer

CC = shutil.which("cc")
pytestmark = pytest.mark.skipif(CC is None, reason="needs a C compiler")


def compile_c(folder: Path, name: str, source: str, *flags: str) -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    code = folder / (path.name + ".c")
    code.write_text(source)
    command = [str(CC), "-shared", "-fPIC", "-O1", str(code), "-o", str(path), *flags]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"the compiler can't: {done.stderr[:200]}")
    return str(path)


def loads(*paths: str, mode: str = "ctypes.DEFAULT_MODE") -> str:
    return "import ctypes\n" + "".join(f"ctypes.CDLL({path!r}, mode={mode})\n" for path in paths)


@pytest.fixture
def pair(observer: Observer) -> Observer:
    """Two libblas.so.9, each with a consumer that finds it by RUNPATH, as toolboxes bring their own."""
    folder = observer.folder
    for letter in "ab":
        source = f"float sgemm_(void) {{ return {ord(letter)}.0f; }}\n"
        compile_c(folder, f"{letter}/libblas.so.9", source, "-Wl,-soname,libblas.so.9")
        (folder / letter / "libblas.so").symlink_to("libblas.so.9")
        source = "float sgemm_(void); float compute(void) { return sgemm_(); }\n"
        link = [f"-L{folder / letter}", "-lblas", "-Wl,-rpath,$ORIGIN", "-Wl,--enable-new-dtags"]
        consumer = compile_c(folder, f"{letter}/libconsumer_{letter}.so", source, *link)
        observer.write(f"toolbox_{letter}.py", loads(consumer))
    return observer


@pytest.mark.parametrize("order", [("toolbox_a", "toolbox_b"), ("toolbox_b", "toolbox_a")])
def test_the_first_copy_of_a_soname_serves_all(pair: Observer, order: tuple[str, str]) -> None:
    found = pair.run(order)["phases"]["t2"]
    first = str(pair.folder / order[0][-1] / "libblas.so.9")
    assert found["libraries.family.blas"] == [first]
    assert found["libraries.binding.libconsumer_a.so.blas"] == first
    assert found["libraries.binding.libconsumer_b.so.blas"] == first


def test_two_files_with_one_soname(pair: Observer) -> None:
    both = [str(pair.folder / letter / "libblas.so.9") for letter in "ab"]
    pair.write("both.py", loads(*both))
    found = pair.run(["both", "toolbox_b"])["phases"]["t2"]
    assert found["libraries.duplicate.soname.libblas.so.9"] == both
    assert found["libraries.duplicate.family.blas"] == both
    assert found["libraries.binding.libconsumer_b.so.blas"] == both[0]


def test_global_scope_and_who_put_it_there(pair: Observer) -> None:
    library = str(pair.folder / "a" / "libblas.so.9")
    pair.write("leaky.py", loads(library, mode="ctypes.RTLD_GLOBAL"))
    found = pair.run(["json", "leaky"])
    assert "libraries.scope.blas" not in found["phases"]["t1:json"]
    assert found["phases"]["t2"]["libraries.scope.blas"] == library
    assert library in found["phases"]["t1:leaky"]["libraries.scope.global"]
    assert library not in found["phases"]["t1:json"]["libraries.scope.global"]


def test_two_runtimes_of_openmp(observer: Observer) -> None:
    sources = {"libgomp-1.so": "void GOMP_parallel(void) {}", "libomp-2.so": "void __kmpc_fork_call(void) {}"}
    paths = [compile_c(observer.folder, name, source) for name, source in sources.items()]
    observer.write("toolbox.py", loads(*paths))
    assert observer.run(["toolbox"])["phases"]["t2"]["libraries.duplicate.family.openmp"] == paths


def test_lazy_binding_is_called_unbound(observer: Observer) -> None:
    source = "float sgemm_(void) { return 1; }"
    compile_c(observer.folder, "libblas.so.9", source, "-Wl,-soname,libblas.so.9")
    source = "float sgemm_(void); float compute(void) { return sgemm_(); }"
    link = ["-Wl,-z,lazy", f"-L{observer.folder}", "-l:libblas.so.9", "-Wl,-rpath,$ORIGIN"]
    consumer = compile_c(observer.folder, "liblazy.so", source, *link)
    observer.write("toolbox.py", f"import _ctypes\n_ctypes.dlopen({consumer!r}, 1)\n")  # RTLD_LAZY
    assert observer.run(["toolbox"])["phases"]["t2"]["libraries.binding.liblazy.so.blas"] == "unbound"


def blamed(observer: Observer, key: str) -> tuple[str, str]:
    """(module, source line) that blame names for a change made by C code."""
    first = observer.run(["base", "toolbox"], blame={"keys": [key], "modules": []})
    modules = [event["module"] for event in first if event["kind"] == "change"]
    second = observer.run(["base", "toolbox"], blame={"keys": [key], "modules": modules})
    (change,) = [event for event in second if event["kind"] == "change"]
    return modules[0], Path(change["file"]).read_text().splitlines()[change["line"] - 1]


CONSTRUCTOR = "__attribute__((constructor)) static void go(void) {"
CONSTRUCTORS = {
    "environ.c.OMP_NUM_THREADS": '#include <stdlib.h>\nDO { setenv("OMP_NUM_THREADS", "1", 1); }',
    "process.affinity": "#define _GNU_SOURCE\n#include <sched.h>\nDO { cpu_set_t s; sched_getaffinity(0, sizeof s, &s);"
    " int n = 0; while (!CPU_ISSET(n, &s)) n++; CPU_ZERO(&s); CPU_SET(n, &s); sched_setaffinity(0, sizeof s, &s); }",
    "process.umask": "#include <sys/stat.h>\nDO { umask(077); }",
    "process.locale.numeric": '#include <locale.h>\nDO { setlocale(LC_NUMERIC, "C.UTF-8"); }',
    "process.signals.caught": "#include <signal.h>\nstatic void h(int s) {}\nDO { signal(SIGUSR2, h); }",
}
if platform.machine() == "x86_64":
    CONSTRUCTORS["fp.ftz"] = "#include <xmmintrin.h>\nDO { _mm_setcsr(_mm_getcsr() | 0x8040); }"


@pytest.mark.parametrize("key", CONSTRUCTORS)
def test_what_a_constructor_does_is_seen_and_blamed(observer: Observer, key: str) -> None:
    source = CONSTRUCTORS[key].replace("DO {", CONSTRUCTOR)
    library = compile_c(observer.folder, "libdoes.so", source)
    observer.write("toolbox.py", f"import ctypes\nx = 1\nlibrary = ctypes.CDLL({library!r})\ny = 2\n")
    observer.write("base.py", "import locale\n")
    phases = observer.run(["base", "toolbox"])["phases"]
    assert phases["t1:toolbox"][key] != phases["t1:base"].get(key)
    assert blamed(observer, key) == ("toolbox", f"library = ctypes.CDLL({library!r})")


def test_fast_math_library_before_and_after_the_workers(observer: Observer) -> None:
    """Workers keep what was in force when they were started: the reader of their registers shows the split."""
    if platform.machine() != "x86_64":
        pytest.skip("MXCSR is x86's")
    source = """
    int start(void) {
        int n = 0;
        #pragma omp parallel num_threads(2)
        {
            #pragma omp atomic
            n++;
        }
        return n;
    }"""
    pool = compile_c(observer.folder, "libpool.so", source, "-fopenmp")
    source = CONSTRUCTORS["fp.ftz"].replace("DO {", CONSTRUCTOR)
    flush = compile_c(observer.folder, "libflush.so", source)
    observer.write("pool.py", f"import ctypes\nassert ctypes.CDLL({pool!r}).start() == 2\n")
    observer.write("flush.py", loads(flush))
    env = {"OMP_NUM_THREADS": "2", "OMP_DYNAMIC": "false"}

    def workers(*order: str) -> tuple[Any, Any]:
        found = observer.run(order, env)["phases"]["t3"]
        (key,) = [key for key in found if key.startswith("fp.workers.")]
        return found["fp.control"], found[key]

    assert workers("pool", "flush") == ("0x9fc0", {"0x1f80": 1})
    assert workers("flush", "pool") == ("0x9fc0", {"0x9fc0": 1})


FAKE_CUBLAS = """
int cublasCreate_v2(void *h) { return 0; }
int cublasSgemm_v2(void) { return VERSION; }
int cublasGetProperty(int which, int *value) { *value = (int[]){13, VERSION, 1}[which]; return 0; }
"""
FAKE_DRIVER = """
int cuInit(unsigned flags) { return 0; }
int cuDriverGetVersion(int *v) { *v = 13000; return 0; }
int cuDeviceGetCount(int *n) { *n = COUNT; return RESULT; }
int cuDevicePrimaryCtxGetState(int d, unsigned *flags, int *active) { *flags = 4; *active = d; return 0; }
int cuModuleGetLoadingMode(int *mode) { *mode = 2; return 0; }
"""


def test_the_cublas_of_a_consumer_depends_on_the_order(observer: Observer) -> None:
    """The mission's cause in miniature: a wheel's cuBLAS, a toolkit's, and a libtorch_cuda that wants the wheel's."""
    folder = observer.folder
    for place, version in (("wheel", 1), ("toolkit", 4)):
        source = FAKE_CUBLAS.replace("VERSION", str(version))
        compile_c(folder, f"{place}/libcublas.so.13", source, "-Wl,-soname,libcublas.so.13")
    consumer = compile_c(
        folder,
        "torch/lib/libtorch_cuda.so",
        "int cublasSgemm_v2(void); int compute(void) { return cublasSgemm_v2(); }",
        *(f"-L{folder / 'wheel'}", "-l:libcublas.so.13", "-Wl,-rpath,$ORIGIN/../../wheel"),
    )
    toolkit = str(folder / "toolkit" / "libcublas.so.13")
    observer.write("a_cupy.py", loads(toolkit))
    observer.write("a_torch.py", loads(str(folder / "wheel" / "libcublas.so.13"), consumer))
    key = "libraries.binding.libtorch_cuda.so.cublas"
    first = observer.run(["a_cupy", "a_torch"])
    second = observer.run(["a_torch", "a_cupy"])
    assert first["phases"]["t2"][key] == toolkit
    assert second["phases"]["t2"][key] == str(folder / "wheel" / "libcublas.so.13")
    assert len(first["phases"]["t2"]["libraries.duplicate.soname.libcublas.so.13"]) == 2
    assert sorted(first["phases"]["t2"]["cuda.version.cublas"].values()) == ["13.1.1", "13.4.1"]
    (loader,) = [one for one in first["events"] if one["kind"] == "library" and one["name"] == toolkit]
    assert (Path(loader["file"]).name, loader["line"], loader["module"]) == ("a_cupy.py", 2, "a_cupy")


@pytest.mark.parametrize(
    ("count", "result", "expected"),
    [
        (
            2,
            0,
            {"cuda.context.devices": 2, "cuda.context.1": {"active": 1, "flags": 4}, "cuda.context.module_loading": 2},
        ),
        (0, 3, {"cuda.context": "not initialised"}),
        (0, 100, {"cuda.context": {"error": "code 100"}}),
    ],
)
def test_context_of_the_driver(observer: Observer, count: int, result: int, expected: dict[str, Any]) -> None:
    source = FAKE_DRIVER.replace("COUNT", str(count)).replace("RESULT", str(result))
    observer.write("driver.py", loads(compile_c(observer.folder, "libcuda.so.1", source)))
    found = observer.run(["driver"])["phases"]["t2"]
    assert expected.items() <= found.items()
    assert list(found["cuda.version.cuda-driver"].values()) == [13000]

"""A toolbox changes one setting after the other at import: each is seen, at the right phase, and blamed on its line."""

from __future__ import annotations

import importlib.util
import platform
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from .conftest import Observer


class Item(NamedTuple):
    """One line of a toolbox, the key it changes, and the value afterwards (or a test of it)."""

    line: str
    key: str
    value: Any


def contains(part: str) -> Callable[[Any], bool]:
    return lambda value: part in repr(value)


def changed(value: Any) -> bool:
    return value is not None and not (isinstance(value, dict) and "error" in value)


X86 = platform.machine() == "x86_64"

PRELUDE = """\
import ctypes, decimal, functools, gc, locale, math, multiprocessing, os, random, resource, signal, sys, threading
import atexit, warnings
libc = ctypes.CDLL(None)
libm = ctypes.CDLL("libm.so.6")
def mine(*a, **k): return real_import(*a, **k)
real_import = __import__
class Finder:
    @staticmethod
    def find_spec(*_): return None
def hook(_): raise ImportError
def fp(bits):
    block = ctypes.create_string_buffer(64)
    libm.fegetenv(block)
    value = int.from_bytes(block.raw[28:32], "little") | bits
    return ctypes.create_string_buffer(block.raw[:28] + value.to_bytes(4, "little") + block.raw[32:])
"""

PLAIN = [
    Item('os.environ["OMP_NUM_THREADS"] = "1"', "environ.python.OMP_NUM_THREADS", "1"),
    Item('os.environ.setdefault("MKL_CBWR", "AVX2")', "environ.python.MKL_CBWR", "AVX2"),
    Item('os.environ["MY_PASSWORD"] = "hunter2"', "environ.python.MY_PASSWORD", contains("sha256:")),
    Item('del os.environ["NPY_DISABLE_CPU_FEATURES"]', "environ.python.NPY_DISABLE_CPU_FEATURES", "absent"),
    Item('libc.setenv(b"MKL_THREADING_LAYER", b"GNU", 1)', "environ.c.MKL_THREADING_LAYER", "GNU"),
    Item("os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})", "process.affinity", changed),
    Item("os.umask(0o027)", "process.umask", "0027"),
    Item('os.chdir("/")', "process.cwd", "/"),
    Item('locale.setlocale(locale.LC_NUMERIC, "C.UTF-8")', "process.locale.numeric", "C.UTF-8"),
    Item("random.seed(3)", "process.random_state", changed),
    Item("sys.setswitchinterval(0.25)", "process.switch_interval", 0.25),
    Item("sys.setrecursionlimit(3000)", "process.recursion_limit", 3000),
    Item("sys.setdlopenflags(0x102)", "process.dlopen_flags", 0x102),
    Item("gc.set_threshold(500, 5, 5)", "process.gc.threshold", changed),
    Item("gc.disable()", "process.gc.enabled", False),
    Item("sys.excepthook = mine", "process.hook.except", "toolbox.runtime.mine"),
    Item("sys.displayhook = mine", "process.hook.display", "toolbox.runtime.mine"),
    Item("__builtins__['__import__'] = mine", "process.hook.import", "toolbox.runtime.mine"),
    Item("sys.meta_path.append(Finder)", "process.hook.meta_path", contains("toolbox.runtime.Finder")),
    Item("sys.path_hooks.append(hook)", "process.hook.path_hooks", contains("toolbox.runtime.hook")),
    Item('warnings.filterwarnings("error", "numeric")', "process.warnings.filters", contains("error:numeric")),
    Item("warnings.formatwarning = mine", "process.warnings.format", "toolbox.runtime.mine"),
    Item("signal.signal(signal.SIGUSR1, mine)", "process.signals.python", contains("toolbox.runtime.mine")),
    Item('multiprocessing.set_start_method("spawn")', "process.start_method", "spawn"),
    Item("resource.setrlimit(resource.RLIMIT_CORE, (0, 0))", "process.limit.core_file_size", "0/0"),
    Item("os.nice(1)", "process.nice", changed),
    Item('sys.path.append("/elsewhere")', "process.path", contains("/elsewhere")),
    Item("decimal.DefaultContext.prec = 50", "process.decimal", contains("prec=50")),
    Item("threading.Thread(target=threading.Event().wait, daemon=True).start()", "process.threads.count", 2),
    Item("sys.unraisablehook = mine", "process.hook.unraisable", "toolbox.runtime.mine"),
    Item("math.exp = mine", "patches.math.exp", contains("toolbox.runtime.mine")),
    Item("os.getcwd = functools.partial(mine, 1)", "patches.os.getcwd", contains("toolbox.runtime.mine")),
    Item("random.random = math.sin and mine", "patches.random.random", contains("toolbox.runtime.mine")),
    Item("ctypes.CDLL(EXTRA, mode=ctypes.RTLD_GLOBAL)", "libraries.scope.global", contains("_extra.so")),
]
if X86:
    PLAIN += [
        Item("libm.fesetenv(fp(0x8000))", "fp.ftz", True),
        Item("libm.fesetenv(fp(0x40))", "fp.daz", True),
        Item("libm.fesetround(0x800)", "fp.rounding", "up"),
    ]
if hasattr(sys, "set_int_max_str_digits"):
    PLAIN.append(Item("sys.set_int_max_str_digits(5000)", "process.int_max_str_digits", 5000))

TORCH_PRELUDE = """\
import numpy as np
import torch
def mine(*a, **k): return None
"""

TORCH = [
    Item("torch.set_num_threads(1)", "torch.threads.intra", 1),
    Item("torch.set_num_interop_threads(3)", "torch.threads.inter", 3),
    Item("torch.set_default_dtype(torch.float64)", "torch.mode.default_dtype", "torch.float64"),
    Item('torch.set_default_device("meta")', "torch.mode.default_device", "meta"),
    Item("torch.set_grad_enabled(False)", "torch.mode.grad", False),
    Item("torch.autograd.set_detect_anomaly(True)", "torch.mode.anomaly", True),
    Item('torch.set_float32_matmul_precision("medium")', "torch.fp32.mkldnn.matmul", "bf16"),
    Item('torch.backends.cudnn.rnn.fp32_precision = "ieee"', "torch.fp32.cuda.rnn", "ieee"),
    Item("torch._C._set_deterministic_algorithms(True)", "torch.deterministic.algorithms", True),
    Item(
        "torch.utils.deterministic.fill_uninitialized_memory = False", "torch.deterministic.fill_uninitialized", False
    ),
    Item("torch.backends.cudnn.benchmark = True", "torch.cudnn.benchmark", True),
    Item("torch.backends.cudnn.enabled = False", "torch.cudnn.enabled", False),
    Item("torch.backends.mkldnn.set_flags(False)", "torch.backend.mkldnn", False),
    Item("torch.backends.cuda.enable_flash_sdp(False)", "torch.sdp.flash", False),
    Item("torch._C._set_cublas_allow_fp16_reduced_precision_reduction(False)", "torch.reduced.cublas_fp16", changed),
    Item("torch.manual_seed(7)", "torch.rng.initial_seed", 7),
    Item('torch.rand(1, device="cpu")', "torch.rng.cpu", changed),
    Item("torch.set_printoptions(precision=2)", "torch.print_options", contains("'precision': 2")),
    Item('torch.multiprocessing.set_sharing_strategy("file_system")', "torch.multiprocessing.sharing", "file_system"),
    Item('np.seterr(over="raise")', "numpy.errstate.over", "raise"),
    Item("np.set_printoptions(precision=3)", "numpy.print_options", contains("'precision': 3")),
    Item("np.setbufsize(16384)", "numpy.buffer_size", 16384),
    Item("np.random.seed(3)", "numpy.rng", contains("sha256:")),
    Item("torch.save = mine", "patches.torch.save", contains("toolbox.runtime.mine")),
    Item("torch.nn.functional.gelu = mine", "patches.torch.nn.functional.gelu", contains("toolbox.runtime.mine")),
    Item("torch.Tensor.sum = mine", "patches.torch.Tensor.sum", contains("toolbox.runtime.mine")),
    Item("torch.nn.Module.__call__ = mine", "patches.torch.nn.Module.__call__", contains("toolbox.runtime.mine")),
    Item("np.linalg.svd = mine", "patches.numpy.linalg.svd", contains("toolbox.runtime.mine")),
]
if X86:
    TORCH.append(Item("torch.set_flush_denormal(True)", "fp.ftz", True))

CUPY_PRELUDE = """\
import cupy
"""
CUPY = [
    Item("cupy.cuda.set_allocator(None)", "cupy.alloc.allocator", contains("_malloc")),
    Item("cupy._core.set_routine_accelerators([])", "cupy.accelerator.routine", []),
    Item("cupy._core.set_reduction_accelerators([])", "cupy.accelerator.reduction", []),
    Item("cupy.fft.config.enable_nd_planning = False", "cupy.fft.nd_planning", False),
    Item("cupy.dot = lambda a, b: None", "patches.cupy.dot", contains("toolbox.runtime.setup.<locals>.<lambda>")),
]

GROUPS = {
    "plain": (PRELUDE, PLAIN, ()),
    "torch": (TORCH_PRELUDE, TORCH, ("torch",)),
    "cupy": (CUPY_PRELUDE, CUPY, ("cupy",)),
}
CASES = [(group, item) for group, (_, items, _) in GROUPS.items() for item in items]


class Seen(NamedTuple):
    """What the readers, and both passes of blame, said of one toolbox."""

    file: str
    before: str
    phases: dict[str, dict[str, Any]]
    modules: dict[str, str]
    lines: dict[str, tuple[str, int]]


def _copy_of_an_extension(folder: Path) -> str:
    """A shared object that nobody has loaded."""
    import _ctypes
    import shutil

    shutil.copy(_ctypes.__file__, folder / "_extra.so")
    return str(folder / "_extra.so")


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Seen]:
    known: dict[str, Seen] = {}

    def get(group: str) -> Seen:
        if group not in known:
            known[group] = observe(tmp_path_factory.mktemp(group), group)
        return known[group]

    return get


def observe(folder: Path, group: str) -> Seen:
    prelude, items, libraries = GROUPS[group]
    for library in libraries:
        if importlib.util.find_spec(library) is None:
            pytest.skip(f"{library} is not installed")
    observer = Observer(folder)
    extra = f"EXTRA = {_copy_of_an_extension(folder)!r}\n" if group == "plain" else ""
    # What changes things is a function in one file; the body that is executing meanwhile is in another.
    changes = "".join(f"    {item.line}\n" for item in items)
    file = observer.write("toolbox/runtime.py", prelude + extra + "def setup():\n" + changes)
    observer.write("toolbox/__init__.py", "from toolbox import runtime\nruntime.setup()\n")
    observer.write("base.py", prelude)
    env = {"NPY_DISABLE_CPU_FEATURES": ""}
    subjects = ["base", "toolbox"]
    told = observer.run(subjects, env)
    keys = [item.key for item in items]
    first = observer.run(subjects, env, blame={"keys": keys, "modules": []})
    modules = {event["name"]: event["module"] for event in first if event["kind"] == "change"}
    second = observer.run(subjects, env, blame={"keys": keys, "modules": sorted(set(modules.values()))})
    lines = {event["name"]: (event["file"], event["line"]) for event in second if event["kind"] == "change"}
    return Seen(str(file), "t1:base", told["phases"], modules, lines)


@pytest.mark.parametrize(("group", "item"), CASES, ids=[f"{group}-{item.key}" for group, item in CASES])
def test_seen_and_blamed(seen: Callable[[str], Seen], group: str, item: Item) -> None:
    told = seen(group)
    phase = next(phase for phase in ("t1:toolbox", "t2") if item.key in told.phases[phase])
    before, after = told.phases[told.before].get(item.key), told.phases[phase][item.key]
    assert after != before
    assert item.value(after) if callable(item.value) else after == item.value
    assert told.modules[item.key] == "toolbox"
    file, line = told.lines[item.key]
    assert file == told.file
    assert Path(file).read_text().splitlines()[line - 1].strip() == item.line


def test_there_are_enough() -> None:
    assert len(CASES) >= 60

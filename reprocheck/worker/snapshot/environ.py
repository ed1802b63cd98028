"""The environment, three ways: as Python sees it, as C sees it, and as it was at exec.

C libraries read theirs with `getenv` when they are loaded or first used, so a variable that some library set with
`setenv` matters and is not in `os.environ`; one set through `os.environ` reaches both.

Only variables that a numerical library reads are shown with their value. Of all others a snapshot says no more
than that they changed since exec, with a digest of what they changed to.
"""

import posix
import sys

from .. import elf

__all__ = ["name", "phases", "read", "shown", "visible"]

name = "environ"
phases = ("t0", "t1", "t2", "t3")

_PREFIXES = (
    *("OMP_", "GOMP_", "KMP_", "MKL_", "OPENBLAS_", "GOTO_", "BLIS_", "FLEXIBLAS", "VECLIB_", "NUMEXPR_", "NUMBA_"),
    *("NPY_", "NUMPY_", "ATEN_", "ONEDNN_", "DNNL_", "MKLDNN_", "TORCH", "PYTORCH", "CUDA_", "CUBLAS", "CUDNN_"),
    *("CUPY_", "CUTENSOR_", "NVIDIA_TF32", "NVRTC_", "NCCL_", "TRITON_", "XLA_", "TF_", "TF2_", "JAX_", "TBB_"),
    *(
        "LD_",
        "MALLOC_",
        "GLIBC_TUNABLES",
        "MEMKIND_",
        "PYTHON",
        "LANG",
        "LC_",
        "TZ",
        "KINETO_",
        "HSA_",
        "HIP_",
        "ROCR_",
    ),
)
# Names under those prefixes that hold credentials all the same (`TF_VAR_…` is Terraform's).
_SECRET = ("SECRET", "TOKEN", "PASSW", "CREDENTIAL", "AUTH", "APIKEY", "_KEY", "TF_VAR_", "TF_CLI_")

_start: dict[str, str] = {}
_table: list[int] = []


def visible(variable, value=""):
    """True when `variable` may be kept with its value: a numerical library reads it and it holds no secret."""
    upper = variable.upper()
    if not upper.startswith(_PREFIXES) or any(word in upper for word in _SECRET):
        return False
    return not ("://" in value and "@" in value)


def shown(variable, value):
    """What a record may hold of `value`: itself, or its digest."""
    if visible(variable, value):
        return value
    from .. import digest

    return digest.short(value)


def read():
    """`python.X` for visible and for changed variables; `c.X` where C's view differs; `start.X` where exec's did."""
    python = _python()
    start = at_start()
    found = {}
    for variable, value in python.items():
        if visible(variable, value) or start.get(variable) != value:
            found["python." + variable] = shown(variable, value)
    for variable, value in start.items():
        now = python.get(variable)
        if now != value:
            found["start." + variable] = shown(variable, value)
            if now is None:
                found["python." + variable] = "absent"
    for variable in python:
        if variable not in start:
            found["start." + variable] = "absent"
    try:
        native = in_c()
    except elf.ElfError as error:
        found["c"] = {"error": "ElfError: %s" % error}
        return found
    for variable, value in native.items():
        if python.get(variable) != value:
            found["c." + variable] = shown(variable, value)
    for variable in python:
        if variable not in native:
            found["c." + variable] = "absent"
    return found


def _python():
    environ = sys.modules["os"].environ
    return {str(variable): str(value) for variable, value in environ.items()}


def _split(entries):
    decode = sys.modules["os"].fsdecode
    found = {}
    for entry in entries:
        variable, equals, value = entry.partition(b"=")
        if equals:
            found.setdefault(decode(variable), decode(value))  # `getenv` returns the first one, too
    return found


def at_start():
    """Name -> value at exec. Read once: a process may write over that memory (setproctitle does)."""
    if not _start:
        fd = posix.open("/proc/self/environ", posix.O_RDONLY | posix.O_CLOEXEC)
        parts = []
        try:
            while True:
                part = posix.read(fd, 1 << 17)
                if not part:
                    break
                parts.append(part)
        finally:
            posix.close(fd)
        _start.update(_split(b"".join(parts).split(b"\0")))
    return _start


def in_c():
    """Name -> value as `getenv` would find it.

    Raises `elf.ElfError` where the C library's `environ` can't be found.
    """
    with elf.Memory() as memory:
        if not _table:
            _table.append(_find(memory))
        vector = memory.words(_table[0], 1)[0]
        pointers = []
        while vector:
            words = memoryview(memory.some(vector, 2048)[: 2048 & ~7]).cast("Q").tolist()
            if not words or len(pointers) > 100_000:
                raise elf.ElfError("the environment has no end")
            if 0 in words:
                pointers += words[: words.index(0)]
                break
            pointers += words
            vector += 8 * len(words)
        return _split(_strings(memory, pointers))


def _find(memory):
    loaded = elf.objects(memory)
    try:
        order = elf.global_scope(memory, loaded)
    except elf.ElfError:
        order = loaded
    for one in order:
        address = one.symbol(memory, "environ")
        if address is not None:
            return address
    raise elf.ElfError("no loaded object exports environ")


def _strings(memory, pointers):
    block, base = b"", 0
    for pointer in pointers:
        at = pointer - base
        end = block.find(b"\0", at) if 0 <= at < len(block) else -1
        if end < 0:
            # The strings of exec lie one after the other: one read serves many.
            size = 8192
            while True:
                block, base, at = memory.some(pointer, size), pointer, 0
                end = block.find(b"\0")
                if end >= 0:
                    break
                if len(block) < size:
                    raise elf.ElfError("a variable at %#x has no end" % pointer)
                size *= 8
        yield block[at:end]

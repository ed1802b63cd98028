"""Which copy of each library family a consumer is really bound to, from its global offset table.

`binding.torch/lib/libtorch_cpu.so.openmp` is the one OpenMP runtime that torch calls, whatever else is mapped.
"""

from .. import elf, elf_got, families
from .objects import exports, tidy

__all__ = ["bound", "labels", "name", "phases", "read"]

name = "libraries"
phases = ("t2", "t3")

_ALWAYS = ("libtorch_cpu", "libtorch_cuda", "libtorch_cuda_linalg", "libc10_cuda", "_multiarray_umath", "_umath_linalg")
_STEMS = (
    *("libgomp", "libiomp5", "libomp", "libblas", "liblapack", "libopenblas", "libscipy_openblas", "libflexiblas"),
    *("libmkl_rt", "libcublas", "libcublasLt", "libcudart", "libcudnn", "libcufft", "libcurand", "libcusolver"),
    *("libcusparse", "libnvrtc", "libnccl", "libcutensor", "libdnnl", "libfftw3", "libfftw3f"),
)
# Libraries of a family's own: how they are bound to one another is their makers' affair, and MKL's is 20 ms of reading.
_INNER = ("libmkl_", "libcudnn_", "libiomp5", "libomp", "libgomp", "libtorch_python", "libtorch_global_deps")
# What a consumer may define itself and others may take over, as libmkl_rt does with libtorch_cpu's static MKL.
_EXPORTED = ("sgemm_", "sgetrf_", "vmsExp", "DftiComputeForward")
_MOST = 200


def read():
    """`binding.CONSUMER.FAMILY`: a path; path -> number of symbols where there are several; `unbound` if still lazy."""
    found = {}
    with elf.Memory() as memory:
        loaded = elf.objects(memory)
        owners = elf_got.Owners(memory, loaded)
        providers = [one for one in loaded if exports(memory, one)]
        consumers = [one for one in loaded if one.path and _consumes(memory, one)]
        if len(consumers) > _MOST:
            found["binding.unread"] = len(consumers) - _MOST
        short = labels(loaded)
        for one in consumers[:_MOST]:
            prefix = "binding." + short[one] + "."
            try:
                counts = elf_got.bindings(memory, one, owners, providers, _EXPORTED)
            except elf.ElfError as error:
                found[prefix[:-1]] = {"error": "ElfError: %s" % error}
                continue
            for kind, paths in counts.items():
                tidied = {tidy(path) if path else "(program)": number for path, number in paths.items()}
                found[prefix + kind] = next(iter(tidied)) if len(tidied) == 1 else tidied
    return found


def bound(memory, consumer, kind):
    """The objects that a loaded `consumer` is bound to for a family, most used first."""
    loaded = elf.objects(memory)
    owners = elf_got.Owners(memory, loaded)
    providers = [one for one in loaded if exports(memory, one)]
    counts = elf_got.bindings(memory, consumer, owners, providers, _EXPORTED).get(kind, {})
    paths = sorted(counts, key=counts.__getitem__, reverse=True)
    return [one for path in paths for one in loaded if one.path == path]


def labels(loaded):
    """Object -> its short name: its path below site-packages, or its file's name; the whole path where not unique."""
    short = {one: _label(one.path) for one in loaded}
    taken = {}
    for text in short.values():
        taken[text] = taken.get(text, 0) + 1
    return {one: text if taken[text] == 1 else tidy(one.path) for one, text in short.items()}


def _label(path):
    """A file's path below site-packages, or its name; without the extension's ABI tag."""
    path = tidy(path)
    for root in ("/site-packages/", "/dist-packages/", "/lib-dynload/"):
        found, tail = path.rpartition(root)[1:]
        if found:
            path = tail
            break
    else:
        path = path.rpartition("/")[2]
    head, tag, _ = path.partition(".cpython-")
    return head + ".so" if tag else path


def _consumes(memory, one):
    known = one.facts.get("consumer")
    if known is None:
        stem = families.stem(one.path)
        if stem.startswith(_INNER):
            known = False
        elif stem.partition(".")[0] in _ALWAYS:
            known = True
        else:
            try:
                known = any(families.stem(needed) in _STEMS for needed in one.names(memory)[1])
            except elf.ElfError:
                known = False
            # A family's own library that needs another one of the family (libcublas and libcublasLt) is a consumer.
            known = known or (stem in _STEMS and bool(exports(memory, one)) and not stem.startswith("libmkl"))
        one.facts["consumer"] = known
    return known

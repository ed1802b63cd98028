"""Outputs: what a workload left, taken apart into named arrays and written as single-tensor safetensors files.

`Writer.save` writes at once, so that memory stays flat and a later crash loses nothing. Libraries are never
imported here: a value of torch, cupy or numpy can only exist when its library is loaded.

Format: https://huggingface.co/docs/safetensors (8 bytes header length, JSON header, data). The tensor is called
`value`; a dtype the format lacks is stored in a plain one and named in `__metadata__.dtype`.
"""

import posix
import sys

from . import leaves
from .jsonl import dumps
from .leaves import Unsupported

__all__ = ["StorageError", "Unsupported", "Writer"]

# A container of this many leaves is a mistake or an attack on the disk, not an output.
MAX_OUTPUTS = 1_000_000


class StorageError(BaseException):
    """The disk is full or not writable: our fault, not the workload's, so not for its `except Exception`."""


class Writer:
    """Writes outputs into a folder, one file each, and tells the record about every one."""

    def __init__(self, folder, lines):
        """Create `folder`; `lines` is the record under way."""
        posix.mkdir(folder, 0o755)
        self._folder = folder
        self._lines = lines
        self._seen = {}
        self.count = 0

    def save(self, name, value, root=False):
        """Write every array in `value`; raises `Unsupported` naming the first that cannot be compared.

        With `root`, a dict's keys become the names themselves: `{"loss": …}` gives `loss`, not `result.loss`.
        """
        name = str(name)
        prefix = "" if root and leaves.is_container(value) else name
        for path, leaf in leaves.flatten(prefix, value):
            self._write(path or name, leaf)

    def save_globals(self, namespace):
        """Write the arrays, tensors and numbers among a script's globals; tells about the values left out."""
        for name, value in list(namespace.items()):
            reason = leaves.why_not_global(name, value)
            if reason == "":
                continue
            if reason is None:
                try:
                    found = list(leaves.flatten(name, value))
                except Unsupported as error:
                    reason = str(error)
                else:
                    for path, leaf in found:
                        self._write(path, leaf)
                    continue
            self._lines.write("skipped", name=name, reason=reason)

    def _write(self, name, leaf):
        if self.count >= MAX_OUTPUTS:
            raise Unsupported("more than %d outputs: record fewer, larger arrays" % MAX_OUTPUTS)
        times = self._seen.get(name, 0)
        self._seen[name] = times + 1
        if times:
            name = "%s#%d" % (name, times)
        file = "%06d.safetensors" % self.count
        self.count += 1
        header = {}
        if leaf.dtype != leaf.plain_dtype:
            header["__metadata__"] = {"dtype": leaf.dtype}
        header["value"] = {
            "dtype": leaf.stored,
            "shape": list(leaf.stored_shape),
            "data_offsets": [0, leaf.nbytes],
        }
        head = dumps(header).encode("ascii")
        head += b" " * (-len(head) % 8)
        try:
            self._store(file, len(head).to_bytes(8, "little") + head, leaf)
        except OSError as error:
            raise StorageError("output `%s` could not be stored: %s" % (name, error.strerror)) from error
        self._lines.write(
            "output",
            name=name,
            dtype=leaf.dtype,
            shape=list(leaf.shape),
            file=file,
            nbytes=leaf.nbytes,
            python=leaf.python,
        )

    def _store(self, file, head, leaf):
        flags = posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL | getattr(posix, "O_CLOEXEC", 0)
        fd = posix.open(self._folder + "/" + file, flags, 0o644)
        try:
            _write_all(fd, memoryview(head))
            for view in leaf.views():
                _write_all(fd, view)
                del view
        finally:
            posix.close(fd)


def _write_all(fd, view):
    # Linux writes at most 0x7ffff000 bytes a call.
    start = 0
    while start < len(view):
        start += posix.write(fd, view[start : start + (1 << 30)])


if sys.byteorder != "little":
    raise ImportError("reprocheck's worker writes little-endian files only")

"""Sums of words of tensors that were digested a moment ago: what one operator returns the next is given.

A tensor's sum is used again while the tensor is the same object, its version counter stands where it stood, and no
traced operator has written to its storage since. A view that only reshapes has the sum of what it views. Writes that
torch does not know of (another library's kernel on shared memory) are not seen; whoever needs to be sure asks for
`exact`, and nothing is remembered.
"""

import weakref

__all__ = ["Memory"]

_PURGE = 20_000


class Memory:
    """Remembers sums for tensors, by identity."""

    def __init__(self, exact=False):
        """`exact`: remember nothing."""
        self._exact = exact
        self._entries = {}
        self._writes = {}
        self._time = 0

    def find(self, tensor):
        """The sum of the tensor's words if it is known, else None."""
        entry = self._entries.get(id(tensor))
        if entry is None or entry[0]() is not tensor or entry[4] < self._writes.get(entry[3], -1):
            return None
        try:
            return entry[2] if entry[1] == tensor._version else None
        except RuntimeError:
            # Inference tensors count no versions.
            return None

    def add(self, tensor, total, written=False):
        """Remember a sum; `written` by an operator that is still under way, which will count one version more."""
        if self._exact or total is None:
            return
        try:
            version = tensor._version + written
            storage = tensor.untyped_storage()._cdata
        except (RuntimeError, NotImplementedError):
            return
        if len(self._entries) > _PURGE:
            self._entries = {key: entry for key, entry in self._entries.items() if entry[0]() is not None}
        self._entries[id(tensor)] = (weakref.ref(tensor), version, total, storage, self._time)

    def wrote(self, tensor):
        """What was known of the tensor's storage is out of date."""
        self._time += 1
        # Its storage may be another one now.
        self._entries.pop(id(tensor), None)
        if len(self._writes) > _PURGE:
            self._writes.clear()
            self._entries.clear()
        try:
            self._writes[tensor.untyped_storage()._cdata] = self._time
        except (RuntimeError, NotImplementedError):
            self._entries.clear()

    def carry(self, source, view):
        """`view` shows all of `source` in the same order: it has the same sum."""
        if source.is_contiguous() and view.is_contiguous() and source.numel() == view.numel():
            total = self.find(source)
            if total is not None:
                self.add(view, total)

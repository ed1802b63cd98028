"""A stand-in for cupy where there is no GPU: the types and names that the trace looks at, computed by numpy.

`plant.bump` names the function whose result is a little off.
"""

import contextlib
import types

import numpy
import plant

__version__ = "14.2.0"


def bumped(name, array):
    if getattr(plant, "bump", None) == name:
        array = numpy.array(array)
        array.reshape(-1)[0] = numpy.nextafter(array.reshape(-1)[0], numpy.inf)
    return ndarray(array)


class ndarray:
    __module__ = "cupy"

    def __init__(self, array):
        self._array = numpy.asarray(array)
        self.dtype, self.shape, self.size = self._array.dtype, self._array.shape, self._array.size
        self.flags, self.device = self._array.flags, types.SimpleNamespace(id=0)
        self.nbytes = self._array.nbytes

    def __getitem__(self, key):
        return ndarray(self._array[key])

    def reshape(self, *shape):
        return ndarray(self._array.reshape(*shape))

    def view(self, dtype):
        return ndarray(self._array.view(dtype))

    def sum(self, axis=None):
        return ndarray(self._array.sum(axis))

    def __mul__(self, other):
        return ndarray(self._array * getattr(other, "_array", other))

    def __add__(self, other):
        return ndarray(self._array + getattr(other, "_array", other))

    __radd__ = __add__
    __rmul__ = __mul__

    def __matmul__(self, other):
        return bumped("matmul", self._array @ other._array)

    def __float__(self):
        return float(self._array)

    def __int__(self):
        return int(self._array)

    def tolist(self):
        return self._array.tolist()

    def get(self):
        return self._array


def asarray(values, dtype=None):
    return ndarray(numpy.asarray(getattr(values, "_array", values), dtype))


def ascontiguousarray(values):
    return ndarray(numpy.ascontiguousarray(values._array))


def stack(arrays):
    return ndarray(numpy.stack([array._array for array in arrays]))


def exp(values):
    return ndarray(numpy.exp(values._array))


class RawKernel:
    __module__ = "cupy._core.raw"

    def __init__(self, code, name):
        self.name = name

    def __call__(self, grid, block, args):
        a, x, y = args
        y._array += a * x._array
        y._array[:] = bumped("kernel", y._array)._array


linalg = types.ModuleType("cupy.linalg")
exec("def solve(a, b): return bumped('solve', numpy.linalg.solve(a._array, b._array))", globals())
solve.__module__ = "cupy.linalg"  # noqa: F821 - made by the line above
linalg.solve = solve  # noqa: F821
cuda = types.SimpleNamespace(is_available=lambda: False, Device=contextlib.nullcontext)

"""A fingerprint of an array that is computed where the array lives, exact and independent of the order of summation.

The array's bits, in C order whatever its strides, are read as signed words: one per element of up to 4 bytes, else 4
bytes each, low bytes first. The fingerprint is the sum of word * key(position) modulo 2^64, with odd keys that
splitmix64 (https://prng.di.unimi.it/splitmix64.c) makes from the position. Integer addition is associative, so any
reduction order on any device gives the same value. dtype and shape are mixed in at the end.

Collisions. A change of a single word is always seen, since an odd key has an inverse modulo 2^64. For two different
arrays of one dtype and shape, chosen without knowledge of the keys, the sum is multilinear hashing of 32-bit words with
63-bit keys (https://arxiv.org/abs/1202.4961): they collide with a probability of at most 2^-32 inside one block of
words and of at most 2^-27 over several blocks, whose keys are products of two. These bounds are reached only by changes
that are all in the words' top bits (signs flipped in pairs); changes that touch low bits collide with about 2^-63.
Swaps, transpositions, sign flips, zeros' signs and NaN payloads are changes of words like any other. It is no secure
hash.

Memory: the products of a few blocks at a time, 2 MiB on a CPU and 64 MiB on a device, whatever the array's size.
"""

import math
import operator
import sys

__all__ = ["array_digest", "array_total", "dtype_name", "finish", "tensor_digest", "tensor_sum"]

BLOCK = 1 << 15
"""Words that share a multiplier: 256 KiB of products, which stay in a core's cache."""
_CPU_BLOCKS, _DEVICE_BLOCKS = 8, 256
"""Blocks at a time: torch's threads share them, and 2 MiB of products still come from memory that is at hand."""
_MASK = (1 << 64) - 1
_MULTIPLIERS = 1 << 40
"""Positions from here on give the blocks' multipliers; no array is that long."""

_spaces: dict[object, object] = {}
_heads: dict[tuple[str, tuple[int, ...]], int] = {}


def tensor_digest(tensor):
    """16 digits for a torch tensor of any dtype, layout and device; None where it has no values (meta, fake)."""
    total = tensor_sum(tensor)
    return None if total is None else finish(total, dtype_name(tensor), tensor.shape)


def array_digest(array):
    """16 digits for a numpy or cupy array or numpy scalar; None for objects, which have no bits of their own."""
    total = array_total(array)
    return None if total is None else finish(total, dtype_name(array), array.shape)


def array_total(array):
    """The sum of words of a numpy or cupy array or numpy scalar, as `array_sum`."""
    if type(array).__module__.partition(".")[0] != "cupy":
        numpy = sys.modules["numpy"]
        return array_sum(numpy, numpy.asarray(array))
    cupy = sys.modules["cupy"]
    with cupy.cuda.Device(array.device.id):
        return array_sum(cupy, array)


def dtype_name(value):
    """An array's dtype as torch and numpy both spell it: `float32`, `bfloat16`, `complex64`."""
    name = str(value.dtype)
    return name.removeprefix("torch.")


def finish(total, dtype, shape):
    """16 hexadecimal digits of a sum of words, with dtype and shape mixed in."""
    key = (dtype, tuple(shape))
    head = _heads.get(key)
    if head is None:
        head = 0xCBF29CE484222325
        for code in ("%s%r" % key).encode("ascii", "replace"):
            head = ((head ^ code) * 0x100000001B3) & _MASK
        if len(_heads) > 10_000:
            _heads.clear()
        _heads[key] = head
    return "%016x" % _splitmix64((int(total) & _MASK) ^ head)


def tensor_sum(tensor):
    """The sum of words of a torch tensor: an int, or for one on a device a 0-dim tensor there, not waited for.

    None for tensors without values. Dispatch modes have to be off.
    """
    torch = sys.modules["torch"]
    if type(tensor) is not torch.Tensor and type(tensor) is not torch.nn.Parameter:
        flatten = getattr(tensor, "__tensor_flatten__", None)
        if flatten is not None:
            return _sum_of_parts([tensor_sum(getattr(tensor, name)) for name in flatten()[0]])
        if hasattr(tensor, "fake_mode"):
            return None
        tensor = tensor.as_subclass(torch.Tensor)
    if tensor.requires_grad:
        tensor = tensor.detach()
    if tensor.is_meta:
        return None
    if tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_nested:
        return _sum_of_parts([tensor_sum(part) for part in _tensor_parts(torch, tensor)])
    width = tensor.element_size()
    word = torch.int8 if width == 1 else torch.int16 if width == 2 else torch.int32
    space = _spaces.get(tensor.device) or _torch_space(torch, tensor.device)
    bits_apart = tensor.is_conj() or tensor.is_neg()
    words = tensor.numel() * ((width + 3) // 4)
    if words <= BLOCK and not bits_apart:
        # The common case, without a loop.
        total = (tensor.contiguous().view(-1).view(word) * space.keys[:words]).sum()
        return space.settle(total)

    def flat(piece):
        if bits_apart:
            piece = piece.resolve_conj().resolve_neg()
        return piece.contiguous().view(-1).view(word)

    whole = tensor.is_contiguous() and not bits_apart
    limit = tensor.numel() if whole else space.group * BLOCK * 4 // max(4, width)
    return _fold(space, ((flat(piece), at * ((width + 3) // 4)) for piece, at in _pieces(tensor, limit)))


def array_sum(xp, array):
    """The sum of words of an array of module `xp` (numpy or cupy): an int, or a 0-dim cupy array. None for objects."""
    dtype = array.dtype
    if dtype.hasobject or dtype.char == "T":
        return None
    if dtype.names:
        return _sum_of_parts([array_sum(xp, array[name]) for name in dtype.names])
    if not dtype.itemsize or not array.size:
        return 0
    # An x87 long double fills 10 of its 16 bytes; what the others hold is no part of the value.
    padded = dtype.kind in "fc" and dtype.itemsize in (16, 32) and dtype.itemsize != 16 * (dtype.kind == "c")
    if padded:
        word, per_element = "i2", 5 * dtype.itemsize // 16
    elif dtype.itemsize % 4 == 0:
        word, per_element = "i4", dtype.itemsize // 4
    elif dtype.itemsize == 2:
        word, per_element = "i2", 1
    else:
        word, per_element = "i1", dtype.itemsize

    def flat(piece):
        words = xp.ascontiguousarray(piece).reshape(-1).view(word)
        return xp.ascontiguousarray(words.reshape(-1, 8)[:, :5]).reshape(-1) if padded else words

    device = "numpy" if xp.__name__ == "numpy" else ("cupy", array.device.id)
    space = _spaces.get(device) or _array_space(xp, device)
    whole = array.flags.c_contiguous and not padded
    limit = array.size if whole else max(1, space.group * BLOCK // per_element)
    return _fold(space, ((flat(piece), at * per_element) for piece, at in _pieces(array, limit)))


class _Space:
    """Where sums are taken: the keys there, and how products and numbers are made of them."""

    __slots__ = ("_known", "_make", "group", "keys", "multiply", "settle")

    def __init__(self, make, group, multiply, settle):
        """`make` puts a list of integers there; `settle` turns a sum into what is added up."""
        self._make = make
        self._known = {}
        self.keys = make([_odd(position) for position in range(BLOCK)])
        self.group = group
        """Blocks whose products are made at a time."""
        self.multiply = multiply
        self.settle = settle

    def multipliers(self, block, count):
        """The multipliers of so many blocks."""
        found = self._known.get((block, count))
        if found is None:
            if len(self._known) > 1000:
                self._known.clear()
            found = self._known[block, count] = self._make([_multiplier(block + index) for index in range(count)])
        return found


def _torch_space(torch, device):
    def make(values):
        return torch.tensor(values, dtype=torch.int64, device=device)

    if device.type == "cpu":
        # Memory of its own for the products: fresh pages for each would cost more than the arithmetic.
        buffer = torch.empty(_CPU_BLOCKS * BLOCK, dtype=torch.int64)

        def multiply(words, keys):
            return torch.mul(words, keys, out=buffer[: words.numel()].view(words.shape))

        space = _Space(make, _CPU_BLOCKS, multiply, torch.Tensor.item)
    else:
        space = _Space(make, _DEVICE_BLOCKS, torch.mul, torch.Tensor.detach)
    _spaces[device] = space
    return space


def _array_space(xp, device):
    def make(values):
        return xp.asarray(values, dtype="i8")

    cpu = xp.__name__ == "numpy"
    space = _Space(make, 1 if cpu else _DEVICE_BLOCKS, operator.mul, int if cpu else lambda total: total)
    _spaces[device] = space
    return space


def _fold(space, pieces):
    """Sum over `(flat words, position of the first)`."""
    total = 0
    for words, position in pieces:
        start, size = 0, words.shape[0]
        while start < size:
            block, offset = divmod(position + start, BLOCK)
            count = 0 if offset else min(space.group, (size - start) // BLOCK)
            if count > 1:
                rows = words[start : start + count * BLOCK].reshape(count, BLOCK)
                sums = space.multiply(rows, space.keys).sum(-1)
                total = total + space.settle((sums * space.multipliers(block, count)).sum())
                start += count * BLOCK
            else:
                length = min(BLOCK - offset, size - start)
                value = space.multiply(words[start : start + length], space.keys[offset : offset + length]).sum()
                total = total + space.settle(value) * _multiplier(block)
                start += length
    return total


def _pieces(array, limit, at=0):
    """Parts of at most `limit` elements with the position of their first, in C order."""
    shape = array.shape
    size = math.prod(shape)
    if size <= limit:
        if size:
            yield array, at
        return
    inner = size // shape[0]
    if inner > limit:
        for index in range(shape[0]):
            yield from _pieces(array[index], limit, at + index * inner)
        return
    rows = limit // inner
    for start in range(0, shape[0], rows):
        yield array[start : start + rows], at + start * inner


def _tensor_parts(torch, tensor):
    """The plain tensors that make up a sparse, quantised or nested one."""
    from ..leaves import _torch_parts

    return [part if hasattr(part, "layout") else torch.tensor(part) for _, part in _torch_parts(torch, tensor)]


def _sum_of_parts(sums):
    if any(part is None for part in sums):
        return None
    return sum(int(part) * _odd(_MULTIPLIERS - 1 - index) for index, part in enumerate(sums))


def _multiplier(block):
    return _odd(_MULTIPLIERS + block) if block else 1


def _odd(position):
    """The key of a position, as a signed 64-bit integer."""
    key = _splitmix64(position) | 1
    return key - (1 << 64) if key >> 63 else key


def _splitmix64(number):
    number = (number + 0x9E3779B97F4A7C15) & _MASK
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & _MASK
    return number ^ (number >> 31)

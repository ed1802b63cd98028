"""Taking a value apart: containers into named leaves, a leaf into a dtype, a shape and its bytes."""

import ctypes
import sys

from . import streaming

# Logical dtype -> dtype of the safetensors format that stores it as it is.
PLAIN = {
    "bool": "BOOL",
    "uint8": "U8",
    "uint16": "U16",
    "uint32": "U32",
    "uint64": "U64",
    "int8": "I8",
    "int16": "I16",
    "int32": "I32",
    "int64": "I64",
    "float16": "F16",
    "bfloat16": "BF16",
    "float32": "F32",
    "float64": "F64",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
}
# Complex numbers are stored as pairs: one more axis of length 2.
PAIRS = {"complex32": "F16", "complex64": "F32", "complex128": "F64"}
# One byte an element, no name in the format.
BYTES = ("float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn_x2")
TEXT = ("str", "bytes", "int", "none")
MAX_DEPTH = 64
MAX_NAME = 40


class Unsupported(TypeError):
    """A value of this kind cannot be compared; the message names it and says what to do."""


class Leaf:
    """One array ready to be written: logical `dtype` and `shape`, how it is `stored`, its bytes and its owner."""

    __slots__ = (
        "_keep",
        "_parts",
        "_whole",
        "dtype",
        "nbytes",
        "plain_dtype",
        "python",
        "shape",
        "stored",
        "stored_shape",
    )

    def __init__(self, dtype, shape, data, python, keep=None, nbytes=None, parts=None):
        """`data` is a flat byte view; `keep` is whatever must stay alive for it.

        What is large and must be copied to be flat has no `data`, but `nbytes` and a function that yields its `parts`.
        """
        self.dtype = dtype
        self.shape = tuple(shape)
        self._whole = memoryview(data).cast("B") if memoryview(data).nbytes else memoryview(b"")
        self._parts = parts
        self.nbytes = self._whole.nbytes if parts is None else nbytes
        self.python = python
        self._keep = keep
        self.plain_dtype = dtype if dtype in PLAIN else None
        self.stored_shape = self.shape
        if dtype in PLAIN:
            self.stored = PLAIN[dtype]
        elif dtype in PAIRS:
            self.stored = PAIRS[dtype]
            self.stored_shape = (*self.shape, 2)
        elif dtype.startswith(("datetime64", "timedelta64")):
            self.stored = "I64"
        elif dtype in ("longdouble", "binary128"):
            self.stored = "U8"
            self.stored_shape = (*self.shape, 16)
        elif dtype in BYTES or dtype in TEXT:
            self.stored = "U8"
        else:
            raise Unsupported("dtype `%s`" % dtype)

    def views(self):
        """Yield the bytes to store, in views that are valid until the next one."""
        if self._parts is None:
            yield self._whole
        else:
            yield from self._parts()


def is_container(value):
    """True for what `flatten` takes apart by key or position."""
    return isinstance(value, (dict, list, tuple)) or _is_mapping(value) or _fields(value) is not None


def _is_mapping(value):
    return hasattr(value, "keys") and hasattr(value, "__getitem__") and not hasattr(value, "dtype")


def _fields(value):
    fields = getattr(type(value), "__dataclass_fields__", None)
    return list(fields) if fields is not None and not isinstance(value, type) else None


def flatten(name, value, depth=0):
    """Yield `(path, Leaf)` for every array in `value`; nested keys read `a.b[0]`. Raises `Unsupported`."""
    if depth > MAX_DEPTH:
        # A container that contains itself has a name of that many parts.
        short = name if len(name) <= MAX_NAME else name[:MAX_NAME] + "…"
        raise Unsupported("output `%s` is nested more than %d levels deep, or contains itself" % (short, MAX_DEPTH))
    depth += 1
    if isinstance(value, dict) or _is_mapping(value):
        for key in list(value.keys()):
            yield from flatten(_join(name, key), value[key], depth)
    elif isinstance(value, tuple) and getattr(type(value), "_fields", None):
        for field in type(value)._fields:
            yield from flatten(_join(name, field), getattr(value, field), depth)
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from flatten("%s[%d]" % (name, index), item, depth)
    elif _fields(value) is not None:
        for field in _fields(value):
            yield from flatten(_join(name, field), getattr(value, field), depth)
    else:
        parts = _parts(value)
        if parts is not None:
            for part, item in parts:
                yield from flatten(_join(name, part), item, depth)
        else:
            yield name, _leaf(name, value)


def _join(name, key):
    if not isinstance(key, str):
        return "%s[%r]" % (name, key)
    return name + "." + key if name else key


def why_not_global(name, value):
    """For a script's global: None if it is an output, "" if nobody would expect it, else why it was left out."""
    if name.startswith("__") or isinstance(value, (type(sys), type)) or type(value).__name__ in _CODE:
        return ""
    if value is None or isinstance(value, (str, bytes)):
        return ""
    if isinstance(value, (bool, int, float, complex, dict, list, tuple)):
        return None
    if getattr(type(value), "dtype", None) is not None or hasattr(type(value), "__dlpack__"):
        return None
    if _parts(value) is not None or _fields(value) is not None:
        return None
    if callable(value):
        return ""
    return "a %s: not an array, tensor or number" % _type_name(value)


_CODE = ("function", "builtin_function_or_method", "_Feature", "method", "partial")


def _type_name(value):
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else kind.__module__ + "." + kind.__qualname__


def _parts(value):
    """Named parts of sparse, quantised, masked and structured arrays and of anything with a `state_dict`."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, getattr(torch, "Tensor", ())):
        return _torch_parts(torch, value)
    module = type(value).__module__
    if module.startswith(("scipy.sparse", "cupyx.scipy.sparse")) and hasattr(value, "format"):
        if value.format in ("csr", "csc", "bsr"):
            return [(part, getattr(value, part)) for part in ("indptr", "indices", "data")]
        if value.format == "dia":
            return [("offsets", value.offsets), ("data", value.data)]
        coo = value.tocoo()
        return [("row", coo.row), ("col", coo.col), ("data", coo.data)]
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, getattr(numpy, "ndarray", ())):
        if hasattr(value, "mask") and module.startswith("numpy.ma"):
            return [("data", numpy.asarray(value.data)), ("mask", numpy.ma.getmaskarray(value))]
        if value.dtype.names:
            return [(field, value[field]) for field in value.dtype.names]
    state_dict = getattr(value, "state_dict", None)
    if callable(state_dict) and not isinstance(value, type):
        return list(state_dict().items())
    return None


def _torch_parts(torch, value):
    if getattr(value, "is_quantized", False):
        if value.qscheme() in (torch.per_channel_affine, torch.per_channel_affine_float_qparams):
            scale, zero = value.q_per_channel_scales(), value.q_per_channel_zero_points()
        else:
            scale, zero = value.q_scale(), value.q_zero_point()
        return [("int_repr", value.int_repr()), ("scale", scale), ("zero_point", zero)]
    if getattr(value, "is_nested", False):
        return [("[%d]" % index, item) for index, item in enumerate(value.unbind())]
    layout = value.layout
    if layout == torch.strided:
        return None
    value = value.detach()
    if layout == torch.sparse_coo:
        return [("indices", value._indices()), ("values", value._values())]
    if layout in (torch.sparse_csr, torch.sparse_bsr):
        rows = [("crow_indices", value.crow_indices()), ("col_indices", value.col_indices())]
        return [*rows, ("values", value.values())]
    if layout in (torch.sparse_csc, torch.sparse_bsc):
        columns = [("ccol_indices", value.ccol_indices()), ("row_indices", value.row_indices())]
        return [*columns, ("values", value.values())]
    return [("dense", value.to_dense())]


def _leaf(name, value):
    try:
        return _plain_leaf(value)
    except Unsupported as error:
        raise Unsupported(
            "output `%s` is %s, which cannot be compared; record arrays, tensors, numbers, strings or containers of "
            "them" % (name, error)
        ) from None


def _plain_leaf(value):
    kind = type(value)
    if value is None:
        return Leaf("none", (0,), b"", "None")
    if kind is bool:
        return Leaf("bool", (), bytes([value]), "bool")
    if kind is int or (isinstance(value, int) and not hasattr(value, "dtype")):
        if -(2**63) <= value < 2**63:
            return Leaf("int64", (), int(value).to_bytes(8, "little", signed=True), "int")
        return _text("int", str(int(value)), "int")
    if isinstance(value, float) and not hasattr(value, "dtype"):
        return Leaf("float64", (), bytes(ctypes.c_double(value)), "float")
    if isinstance(value, complex) and not hasattr(value, "dtype"):
        pair = bytes(ctypes.c_double(value.real)) + bytes(ctypes.c_double(value.imag))
        return Leaf("complex128", (), pair, "complex")
    if isinstance(value, str) and not hasattr(value, "dtype"):
        return _text("str", value, "str")
    if isinstance(value, (bytes, bytearray)) and not hasattr(value, "dtype"):
        return Leaf("bytes", (len(value),), bytes(value), kind.__name__)
    if kind.__module__ in ("decimal", "fractions", "_decimal"):
        return _text("str", str(value), kind.__name__)

    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, getattr(torch, "Tensor", ())):
        return _torch_leaf(value)
    if torch is not None and isinstance(value, (getattr(torch, "dtype", ()), getattr(torch, "Size", ()))):
        return _text("str", str(value), _type_name(value))
    if kind.__module__.partition(".")[0] == "cupy" and hasattr(value, "get"):
        return _cupy_leaf(sys.modules["numpy"], value)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        if isinstance(value, getattr(numpy, "generic", ())):
            return _numpy_leaf(numpy, numpy.asarray(value), _type_name(value))
        if isinstance(value, getattr(numpy, "ndarray", ())):
            return _numpy_leaf(numpy, value, _type_name(value))
    if hasattr(kind, "__dlpack__"):
        return _dlpack_leaf(torch, numpy, value)
    return _buffer_leaf(value)


def _text(dtype, text, python):
    data = text.encode("utf-8", "surrogatepass")
    return Leaf(dtype, (len(data),), data, python)


def _torch_leaf(value):
    tensor = value.detach()
    device = tensor.device.type
    if device == "meta" or type(tensor).__name__ == "FakeTensor":
        raise Unsupported("a tensor on the meta device, which has no values")
    python = _type_name(value).replace("torch.nn.parameter.", "torch.nn.")
    if device != "cpu":
        python = "%s[%s]" % (python, tensor.device)
    nbytes = tensor.numel() * tensor.element_size()
    dtype = str(tensor.dtype).partition(".")[2]
    dtype = {"half": "float16"}.get(dtype, dtype)
    if nbytes > streaming.PART and (
        device != "cpu" or not tensor.is_contiguous() or tensor.is_conj() or tensor.is_neg()
    ):

        def parts():
            return streaming.parts(tensor, nbytes, _torch_flat)

        return Leaf(dtype, tuple(tensor.shape), b"", python, tensor, nbytes, parts)
    data, owner = _torch_flat(tensor)
    return Leaf(dtype, tuple(tensor.shape), data, python, owner)


def _torch_flat(tensor):
    """(the tensor's bytes in C order, what keeps them alive)."""
    tensor = tensor.resolve_conj().resolve_neg()
    if tensor.device.type != "cpu":
        tensor = tensor.cpu()
    tensor = tensor.contiguous()
    nbytes = tensor.numel() * tensor.element_size()
    data = (ctypes.c_char * nbytes).from_address(tensor.data_ptr()) if nbytes else b""
    return memoryview(data).cast("B") if nbytes else b"", tensor


def _cupy_leaf(numpy, array):
    python = "cupy.ndarray[%s]" % array.device.id
    if array.nbytes <= streaming.PART or array.dtype.kind not in _SIMPLE:
        return _numpy_leaf(numpy, array.get(), python)

    def flat(part):
        held = numpy.ascontiguousarray(part.get()).reshape(-1)
        return memoryview(held.view(numpy.uint8)), held

    def parts():
        return streaming.parts(array, array.nbytes, flat)

    return Leaf(array.dtype.name, array.shape, b"", python, array, array.nbytes, parts)


# Kinds of dtype whose elements are stored as they are in memory.
_SIMPLE = "biufc"


def _numpy_leaf(numpy, array, python):
    shape = array.shape
    dtype = array.dtype
    if dtype.kind == "O" or dtype.name.startswith("StringDType"):
        raise Unsupported("a numpy array of dtype `%s`" % dtype)
    if _streams(numpy, array):
        return _numpy_stream(numpy, array, python)
    if not dtype.isnative:
        array = array.astype(dtype.newbyteorder("="))
        dtype = array.dtype
    array = numpy.ascontiguousarray(array).reshape(-1)
    data = array.view(numpy.uint8) if array.size and dtype.itemsize else b""
    if dtype.kind in "US":
        return Leaf("bytes", (memoryview(data).nbytes,), data, python + "[" + dtype.str + "]", array)
    name = dtype.name
    if dtype.kind in "mM":
        name = dtype.str[1:].replace("m8", "timedelta64").replace("M8", "datetime64")
    elif dtype in (numpy.longdouble, numpy.clongdouble) and numpy.dtype(numpy.longdouble).itemsize == 16:
        if dtype.kind == "c":
            array = numpy.stack([array.real, array.imag], -1).reshape(-1)
            shape = (*shape, 2)
        data = _without_padding(numpy, array)
        name = "longdouble" if numpy.finfo(numpy.longdouble).nmant == 63 else "binary128"
        return Leaf(name, shape, data, python, data)
    return Leaf(name, shape, data, python, array)


def _streams(numpy, array):
    """Whether the array is large, has to be copied to be flat, and is stored element by element as it is."""
    dtype = array.dtype
    plain = dtype.kind in _SIMPLE and dtype not in (numpy.longdouble, numpy.clongdouble)
    return plain and array.nbytes > streaming.PART and not (dtype.isnative and array.flags.c_contiguous)


def _numpy_stream(numpy, array, python):
    native = array.dtype.newbyteorder("=")
    # Of a subclass (`matrix`) a row need not have fewer axes.
    plain = numpy.asarray(array)

    def flat(part):
        held = numpy.ascontiguousarray(part, dtype=native).reshape(-1)
        return memoryview(held.view(numpy.uint8)), held

    def parts():
        return streaming.parts(plain, plain.nbytes, flat)

    return Leaf(native.name, plain.shape, b"", python, plain, plain.nbytes, parts)


def _without_padding(numpy, array):
    """Bytes of long doubles; x86's 80 bits fill 10 of 16 bytes, and what is in the rest is chance."""
    data = array.view(numpy.uint8).reshape(-1, 16).copy()
    if numpy.finfo(numpy.longdouble).nmant == 63:
        data[:, 10:] = 0
    return data.reshape(-1)


def _dlpack_leaf(torch, numpy, value):
    python = _type_name(value)
    device = value.__dlpack_device__()[0] if hasattr(value, "__dlpack_device__") else 1
    if torch is not None:
        leaf = _torch_leaf(torch.from_dlpack(value))
    elif numpy is not None and int(device) in (1, 3) and hasattr(numpy, "from_dlpack"):
        leaf = _numpy_leaf(numpy, numpy.from_dlpack(value), python)
    else:
        from . import dlpack

        try:
            leaf = Leaf(*dlpack.read(value), python, value)
        except dlpack.NotReadable as error:
            raise Unsupported("a %s (%s)" % (python, error)) from None
    leaf.python = python
    return leaf


# struct format character -> kind, for the buffer protocol (`array.array`, ctypes arrays, `memoryview`).
_BUFFER_KINDS = {"?": "bool", "c": "uint", "e": "float", "f": "float", "d": "float"}
_BUFFER_KINDS.update(dict.fromkeys("bhilqn", "int"))
_BUFFER_KINDS.update(dict.fromkeys("BHILQN", "uint"))


def _buffer_leaf(value):
    try:
        view = memoryview(value)
    except TypeError:
        raise Unsupported("a `%s`" % _type_name(value)) from None
    code = view.format.lstrip("@=<")
    kind = _BUFFER_KINDS.get(code)
    if kind is None:
        raise Unsupported("a `%s` with buffer format `%s`" % (_type_name(value), view.format))
    dtype = kind if kind == "bool" else "%s%d" % (kind, 8 * view.itemsize)
    return Leaf(dtype, view.shape, view.tobytes(), _type_name(value))

"""Reading a DLPack capsule on the CPU without numpy or torch.

Layout: https://dmlc.github.io/dlpack/latest/c_api.html. The capsule is not consumed (not renamed), so its own
destructor frees it.
"""

import ctypes

CODES = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex", 6: "bool"}


class NotReadable(Exception):
    """Why this capsule cannot be read here."""


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


def read(value):
    """`(dtype, shape, bytes)` of an object with `__dlpack__`, copied; raises `NotReadable`."""
    capsule = value.__dlpack__()
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype = ctypes.c_void_p
    get.argtypes = [ctypes.py_object, ctypes.c_char_p]
    tensor = _Tensor.from_address(get(capsule, b"dltensor"))
    if tensor.device_type not in (1, 3):
        raise NotReadable("on DLPack device type %d" % tensor.device_type)
    kind = CODES.get(tensor.code)
    if kind is None or tensor.lanes != 1 or tensor.bits % 8:
        raise NotReadable("DLPack type code %d with %d bits" % (tensor.code, tensor.bits))
    dtype = "bool" if kind == "bool" else "%s%d" % (kind, tensor.bits)
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    item = tensor.bits // 8
    base = (tensor.data or 0) + tensor.byte_offset
    strides = [tensor.strides[i] for i in range(tensor.ndim)] if tensor.strides else None
    return dtype, shape, _gather(base, shape, strides, item)


def _gather(base, shape, strides, item):
    size = 1
    dense = []
    for length in reversed(shape):
        dense.insert(0, size)
        size *= length
    if size == 0:
        return b""
    if strides is None or all(s == d or n == 1 for s, d, n in zip(strides, dense, shape)):
        return ctypes.string_at(base, size * item)
    rows = [base]
    for length, stride in zip(shape, strides):
        rows = [row + i * stride * item for row in rows for i in range(length)]
    return b"".join([ctypes.string_at(row, item) for row in rows])

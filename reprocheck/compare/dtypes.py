"""The one table of dtypes: what each is called, how a stored object holds it, how its elements are read.

A stored object is a safetensors file with a single tensor. Its format knows fewer dtypes than the libraries do, so a
dtype may be stored in another one: `code` is the safetensors name of the storage, `axes` are the storage axes that
follow the logical shape (complex numbers are pairs), and where `native` is False the file's `__metadata__.dtype`
holds the logical name.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import Literal

from reprocheck.compare.floats import FloatFormat

__all__ = ["TABLE", "DType", "from_storage", "lookup"]

Kind = Literal["float", "integer", "time", "exact", "text"]


@dataclass(frozen=True, slots=True)
class DType:
    """A logical dtype. Two dtypes are the same when their names are."""

    name: str
    kind: Kind
    """`float` (complex too), `integer`, `time` (64-bit with NaT), `exact` (equal or not), `text` (a run of bytes)."""
    itemsize: int
    """Bytes of one element, padding included."""
    code: str = ""
    """Safetensors dtype of the storage; empty for what no stored object holds."""
    axes: tuple[int, ...] = ()
    native: bool = False
    """True when `code` alone says what the dtype is."""
    parts: int = 1
    """Numbers in one element: 2 for complex, and for the two 4-bit floats of a byte."""
    form: FloatFormat | None = None
    """Layout of one part (kind `float`)."""
    signed: bool = False
    """Kind `integer`: two's complement."""
    tolerant: bool = False
    """True when tolerances apply; otherwise only equal bits agree."""


def _float(
    form: FloatFormat, code: str, *, name: str = "", parts: int = 1, axes: tuple[int, ...] = (), native: bool = False
) -> DType:
    size = 16 if form.wide else max(8, form.width * parts) // 8
    return DType(
        name or form.name, "float", size, code, axes=axes, native=native, parts=parts, form=form, tolerant=True
    )


def _integer(name: str, code: str) -> DType:
    size = int(name.lstrip("uint")) // 8
    return DType(name, "integer", size, code, native=True, signed=name[0] == "i", tolerant=True)


_F16 = FloatFormat("float16", 5, 10, 15)
_F32 = FloatFormat("float32", 8, 23, 127)
_F64 = FloatFormat("float64", 11, 52, 1023)
_TEXT = ("str", "bytes", "int", "none")

TABLE: dict[str, DType] = {
    dtype.name: dtype
    for dtype in (
        DType("bool", "exact", 1, "BOOL", native=True),
        *(_integer(f"uint{bits}", f"U{bits}") for bits in (8, 16, 32, 64)),
        *(_integer(f"int{bits}", f"I{bits}") for bits in (8, 16, 32, 64)),
        _float(_F16, "F16", native=True),
        _float(FloatFormat("bfloat16", 8, 7, 127), "BF16", native=True),
        _float(_F32, "F32", native=True),
        _float(_F64, "F64", native=True),
        _float(FloatFormat("float8_e4m3fn", 4, 3, 7, "all-ones"), "F8_E4M3", native=True),
        _float(FloatFormat("float8_e5m2", 5, 2, 15), "F8_E5M2", native=True),
        _float(FloatFormat("float8_e4m3fnuz", 4, 3, 8, "negative-zero"), "U8"),
        _float(FloatFormat("float8_e5m2fnuz", 5, 2, 16, "negative-zero"), "U8"),
        _float(FloatFormat("float8_e8m0fnu", 8, 0, 127, "all-ones", signed=False, subnormal=False), "U8"),
        _float(FloatFormat("float4_e2m1fn", 2, 1, 1, "none"), "U8", name="float4_e2m1fn_x2", parts=2),
        _float(_F16, "F16", name="complex32", parts=2, axes=(2,)),
        _float(_F32, "F32", name="complex64", parts=2, axes=(2,)),
        _float(_F64, "F64", name="complex128", parts=2, axes=(2,)),
        # x86: 10 bytes of value and 6 of padding, which are not compared.
        _float(FloatFormat("longdouble", 15, 63, 16383, integer_bit=True), "U8", axes=(16,)),
        # aarch64's long double.
        _float(FloatFormat("binary128", 15, 112, 16383), "U8", axes=(16,)),
        *(DType(name, "text", 1, "U8") for name in _TEXT),
    )
}
"""Every dtype but `datetime64[…]` and `timedelta64[…]`, by name."""

# Names the format has and our own objects do not use: what other programs write.
_FOREIGN = {
    "F8_E8M0": "float8_e8m0fnu",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "F4": "float4_e2m1fn_x2",
    "C64": "complex64",
}
_NATIVE = {dtype.code: dtype for dtype in TABLE.values() if dtype.native}
_TIME = re.compile(r"(datetime64|timedelta64)(\[([1-9][0-9]{0,8})?(Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\])?")

if sys.byteorder != "little":
    raise ImportError("reprocheck reads arrays as little-endian memory and does not run on a big-endian machine")


def lookup(name: str) -> DType | None:
    """The dtype of that name; None for one that reprocheck does not compare."""
    known = TABLE.get(name)
    if known is None and (match := _TIME.fullmatch(name)):
        # A point in time has no origin to be relative to, a span does.
        return DType(name, "time", 8, "I64", tolerant=match[1] == "timedelta64")
    return known


def from_storage(code: str, shape: tuple[int, ...], name: str | None) -> tuple[DType, tuple[int, ...]]:
    """Logical dtype and shape of a stored tensor; `name` is its `__metadata__.dtype`, None to go by `code` alone.

    Raises:
        ValueError: the storage does not hold such a dtype (the text completes "tensor x …").
    """
    if name is None:
        dtype = _NATIVE.get(code) or TABLE.get(_FOREIGN.get(code, ""))
        if dtype is None:
            raise ValueError(f"has dtype {code}, which reprocheck does not compare")
        if code == "F4":
            if not shape or shape[-1] % 2:
                raise ValueError("has 4-bit elements whose last axis does not fill whole bytes")
            shape = (*shape[:-1], shape[-1] // 2)
        return dtype, shape
    dtype = lookup(name)
    if dtype is None:
        raise ValueError(f"claims the unknown dtype {name[:40]!r}")
    axes = dtype.axes
    if code != dtype.code or (axes and shape[-len(axes) :] != axes) or (dtype.kind == "text" and len(shape) != 1):
        raise ValueError(f"is stored as {code} with shape {list(shape)}, which cannot hold {dtype.name}")
    return dtype, shape[: len(shape) - len(axes)]

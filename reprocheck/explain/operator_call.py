"""The operator at which two orders part, as a call that a plain script can make: expression, and recorded inputs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reprocheck.compare.source import Source
from reprocheck.errors import StoreError
from reprocheck.explain.locate.reading import KEPT, Operator, read_trace
from reprocheck.model import Output, Record, Study
from reprocheck.store.objects import TRACE, ObjectStore

__all__ = ["MOST_BYTES", "Array", "Call", "expression", "operator_call"]

MOST_BYTES = 256 << 20
"""Inputs larger than that, together, are not handed out."""
_LISTS = ("aten::cat", "aten::stack", "aten::hstack", "aten::vstack", "aten::block_diag")
"""Operators that take one list of tensors, which an operator's record does not tell from several tensors."""


@dataclass(frozen=True)
class Array:
    """One input: where it lives, what it is, and its elements in C order."""

    library: str
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    """In elements; None when contiguous."""
    device: str
    data: bytes


@dataclass(frozen=True)
class Call:
    """A call of one operator with inputs that were equal in both orders."""

    operator: str
    modules: tuple[str, ...]
    """What the script imports to make it, after the order's own imports."""
    expression: str
    """Python that makes the call; the inputs are `a[0]`, `a[1]`, …."""
    arrays: tuple[Array, ...]
    place: str | None

    @property
    def nbytes(self) -> int:
        """Bytes of all inputs."""
        return sum(len(array.data) for array in self.arrays)


def operator_call(study: Study, records: Sequence[Record], objects: ObjectStore) -> Call | None:
    """The call of the study's origin, from the trial that kept its values.

    None where no operator with equal inputs was found, where its inputs were not kept or are too large, or where the
    record does not tell how it was called.
    """
    origin, traced = study.origin, study.traced
    if origin is None or traced is None or origin.kind != "operator" or not origin.inputs_equal:
        return None
    wanted = {"op": origin.index}
    kept = next(
        (
            record
            for record in reversed(records)
            if record.ok
            and record.trace is not None
            and record.trial.order == traced.orders[0]
            and (record.trial.trace or {}).get("keep") == wanted
        ),
        None,
    )
    if kept is None or kept.trace is None:
        return None
    outputs = {output.name.removeprefix(KEPT): output for output in kept.outputs if output.name.startswith(KEPT + "in")}
    try:
        trace = read_trace(objects.path(kept.trace, TRACE))
        item = next((item for item in trace.operators if item.number == origin.index), None)
        if item is None or not item.inputs or len(outputs) != len(item.inputs):
            return None
        kept_in_order = [outputs[f"in[{number}]"] for number in range(len(outputs))]
        if sum(output.nbytes for output in kept_in_order) > MOST_BYTES:
            return None
        text = expression(item)
        if text is None:
            return None
        arrays = tuple(_array(*pair, objects) for pair in zip(kept_in_order, item.inputs, strict=True))
    except (StoreError, KeyError):
        return None
    modules, code = text
    needed = (*modules, *(array.library for array in arrays))
    place = f"{origin.file.rpartition('/')[2]}:{origin.line}" if origin.file else None
    return Call(origin.operator, tuple(dict.fromkeys(needed)), code, arrays, place)


def _array(output: Output, fact: object, objects: ObjectStore) -> Array:
    source = Source.from_object(objects.path(output.digest))
    library, _, rest = output.python.partition(".")
    device = re.search(r"\[(.+)\]", rest)
    return Array(
        library=library if library in ("torch", "numpy", "cupy") else "numpy",
        dtype=output.dtype,
        shape=output.shape,
        strides=getattr(fact, "strides", None),
        device=device[1] if device else "cpu",
        data=source.open().read(0, source.size).tobytes() if source.size else b"",
    )


def expression(item: Operator) -> tuple[tuple[str, ...], str] | None:
    """(modules to import, Python) of a recorded operator; None where its record does not tell how it was called."""
    names = [f"a[{number}]" for number in range(len(item.inputs))]
    if item.name.startswith("aten::"):
        code = _torch(item, names)
        return None if code is None else (("torch",), code)
    library, _, sign = item.name.partition(" ")
    if sign:
        operands = [*names, *_split(item.arguments)]
        if len(operands) > 2:
            return None
        return (library,), f" {sign} ".join(operands) if len(operands) == 2 else f"{sign}{operands[0]}"
    library = item.name.partition(".")[0]
    if item.name == "torch.compile" or not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+", item.name):
        return None
    rest = _split(item.arguments)
    if ".ndarray." in item.name:
        return (library,), f"{names[0]}.{item.name.rpartition('.')[2]}({', '.join([*names[1:], *rest])})"
    module = item.name.rpartition(".")[0] if library not in ("numpy", "cupy", "torch") else library
    return (module,), f"{item.name}({', '.join([*names, *rest])})"


def _torch(item: Operator, names: Sequence[str]) -> str | None:
    """`torch.ops.aten.sum.dim_IntList(a[0], [1], False)`: `_` in a record is a tensor, and left out at its end."""
    name, _, overload = item.name.removeprefix("aten::").partition(".")
    left = list(names)
    if item.name.partition(".")[0] in _LISTS:
        left = [f"[{', '.join(names)}]"]
    words: list[str] = []
    named: list[str] = []
    for part in _split(item.arguments):
        word, _, value = part.rpartition("=") if re.match(r"[a-z_]\w*=", part) else ("", "", part)
        if value == "_":
            if not left:
                return None
            value = left.pop(0)
        elif value in ("cpu", "meta") or re.fullmatch(r"cuda(:\d+)?", value):
            value = f"torch.device({value!r})"
        elif "_" in re.findall(r"\w+", value):
            return None
        if word:
            named.append(f"{word}={value}")
        else:
            words.append(value)
    return f"torch.ops.aten.{name}.{overload or 'default'}({', '.join([*words, *left, *named])})"


def _split(text: str) -> list[str]:
    """The arguments of a record's text, split at commas outside brackets and quotes."""
    return [part.strip() for part in _parts(text) if part.strip()]


def _parts(text: str) -> Iterator[str]:
    depth, quote, start = 0, "", 0
    for at, sign in enumerate(text):
        if quote:
            quote = "" if sign == quote and text[at - 1] != "\\" else quote
        elif sign in "'\"":
            quote = sign
        elif sign in "[(":
            depth += 1
        elif sign in "])":
            depth -= 1
        elif sign == "," and depth == 0:
            yield text[start:at]
            start = at + 1
    yield text[start:]

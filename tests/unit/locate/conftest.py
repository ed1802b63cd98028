"""Traces made by hand."""

from __future__ import annotations

from typing import Any

import pytest

from reprocheck.explain.locate.reading import Fact, LineStep, Operator, Place, Trace


class Make:
    """Shorthand for records of traces."""

    @staticmethod
    def fact(digest: str | None, dtype: str = "float32", shape: tuple[int, ...] = (2,), **more: Any) -> Fact:
        return Fact(dtype=dtype, shape=shape, digest=digest, **more)

    @classmethod
    def op(cls, name: str, inputs: str = "", outputs: str = "", line: int = 1, **more: Any) -> Operator:
        """An operator whose inputs and outputs have the digests in these words."""
        return Operator(
            number=0,
            name=name,
            inputs=tuple(cls.fact(word) for word in inputs.split()),
            outputs=tuple(cls.fact(word) for word in outputs.split()),
            place=Place(file="/w/work.py", line=line, function="run"),
            **more,
        )

    @staticmethod
    def trace(*operators: Operator, lines: tuple[LineStep, ...] = ()) -> Trace:
        import msgspec

        numbered = tuple(msgspec.structs.replace(item, number=number) for number, item in enumerate(operators))
        return Trace(modes=("lines", "ops"), libraries={}, operators=numbered, lines=lines)

    @classmethod
    def line(cls, line: int, /, *, call: int = 1, loops: tuple[tuple[int, int], ...] = (), **values: Any) -> LineStep:
        """A step that set the variables given; `first` and `changed` take dicts of their own."""
        first, changed = values.pop("first", {}), values.pop("changed", {})

        def facts(found: dict[str, str]) -> dict[str, Fact]:
            return {name: cls.fact(digest) for name, digest in found.items()}

        return LineStep(
            number=line,
            place=Place(file="/w/work.py", line=line, function="run"),
            call=call,
            loops=tuple((Place(file="/w/work.py", line=at), count) for at, count in loops),
            first=facts(first),
            after=facts(values),
            changed=facts(changed),
        )


@pytest.fixture
def make() -> type[Make]:
    return Make

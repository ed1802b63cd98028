"""JSON lines without `json`: what any reader makes of them."""

from __future__ import annotations

import json
import posix
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from reprocheck.worker.jsonl import Lines, dumps

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(values)
def test_what_goes_in_comes_out(value: Any) -> None:
    assert json.loads(dumps(value)) == value


@given(st.text(st.characters(categories=["Cs", "Lu", "Cc"])))
def test_any_text_makes_a_line_that_can_be_read(text: str) -> None:
    """Lone surrogates too: file names and messages can hold them."""
    line = dumps({"name": text})

    assert line.isascii()
    assert "\n" not in line
    assert msgspec.json.decode(line)["name"] == "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text)


def test_numbers_json_has_not() -> None:
    assert [json.loads(dumps(value)) for value in (float("nan"), float("inf"), -float("inf"))] == ["nan", "inf", "-inf"]


def test_other_types_are_written_as_what_they_derive_from() -> None:
    class Name(str):
        __slots__ = ()

    class Number(int):
        pass

    assert dumps([Name("x"), Number(3), (1, 2), {1: 2}, object]) == '["x",3,[1,2],{"1":2},"<class \'object\'>"]'


def test_lines_are_whole_and_in_sequence(tmp_path: Path) -> None:
    lines = Lines(str(tmp_path / "phases"), time.perf_counter, time.perf_counter())
    lines.write("start", value=1)
    lines.write("end", text="é\n")

    found = [json.loads(line) for line in (tmp_path / "phases").read_text().splitlines()]
    assert [line["what"] for line in found] == ["start", "end"]
    assert found[1]["text"] == "é\n"
    assert 0 <= found[0]["at"] <= found[1]["at"]


def test_many_lines_are_one_write_each_with_its_own_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = Lines(str(tmp_path / "phases"), time.perf_counter, time.perf_counter())
    written: list[int] = []
    write = posix.write

    def counted(fd: int, data: memoryview) -> int:
        written.append(fd)
        return write(fd, data)

    monkeypatch.setattr(posix, "write", counted)
    lines.write_all("event", [])
    lines.write_all("event", [{"at": float(number), "name": f"module{number}"} for number in range(200)])

    found = [json.loads(line) for line in (tmp_path / "phases").read_text().splitlines()]
    assert [(line["what"], line["at"], line["name"]) for line in found] == [
        ("event", float(number), f"module{number}") for number in range(200)
    ]
    assert len(written) == 1

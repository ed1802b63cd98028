from __future__ import annotations

import itertools
import json
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from reprocheck.errors import StoreError, UsageError
from reprocheck.store.safetensors import MAX_HEADER, Tensor, map_bytes, read_header


def write(path: Path, header: object, data: bytes = b"", *, length: int | None = None) -> Path:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes((len(text) if length is None else length).to_bytes(8, "little") + text + data)
    return path


def tensor(code: str = "F32", shape: object = (2,), offsets: object = (0, 8)) -> dict[str, object]:
    return {"dtype": code, "shape": shape, "data_offsets": offsets}


def test_several_tensors_with_metadata(tmp_path: Path) -> None:
    header = {"__metadata__": {"format": "pt"}, "b": tensor(offsets=(4, 12)), "a": tensor("U8", [4], [0, 4])}
    file = read_header(write(tmp_path / "f", header, bytes(range(12))))
    assert file.metadata == {"format": "pt"}
    base = file.tensors["a"].start
    assert file.tensors == {"b": Tensor("F32", (2,), base + 4, base + 12), "a": Tensor("U8", (4,), base, base + 4)}
    _, data = map_bytes(file.path, file.tensors["a"].start, file.tensors["a"].stop)
    assert data.tobytes() == bytes(range(4))


def test_empty_and_scalar_tensors(tmp_path: Path) -> None:
    header = {"s": tensor("F64", [], [0, 8]), "e": tensor("F32", [3, 0], [8, 8]), "f": tensor("I8", [0], [0, 0])}
    file = read_header(write(tmp_path / "f", header, bytes(8)))
    assert file.tensors["s"].shape == ()
    assert map_bytes(file.path, file.tensors["e"].start, file.tensors["e"].stop) == (None, memoryview(b""))


def test_a_file_without_tensors(tmp_path: Path) -> None:
    assert read_header(write(tmp_path / "f", {})).tensors == {}


def test_files_of_the_formats_own_library_are_read(tmp_path: Path) -> None:
    library = pytest.importorskip("safetensors.numpy")
    arrays = {
        "w": np.arange(6, dtype=np.float32).reshape(2, 3),
        "b": np.array([True, False, True]),
        "z": np.zeros((0, 4)),
    }
    path = tmp_path / "lib.safetensors"
    library.save_file(arrays, path, metadata={"k": "v"})
    file = read_header(path)
    assert file.metadata == {"k": "v"}
    for name, array in arrays.items():
        found = file.tensors[name]
        assert found.shape == array.shape
        assert map_bytes(path, found.start, found.stop)[1].tobytes() == array.tobytes()


BAD = {
    "empty file": (b"", None, "ends before"),
    "length beyond the file": (b"{}", 3, "ends before"),
    "length of all ones": (b"{}", 2**64 - 1, "ends before"),
    "not JSON": (b"{'a': 1}", None, "not valid JSON"),
    "not UTF-8": (b'{"\xff": 1}', None, "not valid JSON"),
    "a list": ([], None, "not a JSON object"),
    "nested too deeply": (b'{"a":' + b"[" * 100_000, None, "nested too deeply"),
    "a name twice": (b'{"a": {}, "a": {}}', None, "twice"),
    "metadata that is no map": ({"__metadata__": []}, None, "map of strings"),
    "metadata that is no string": ({"__metadata__": {"a": 1}}, None, "map of strings"),
    "tensor that is a string": ({"a": "F32"}, None, "not described"),
    "tensor without offsets": ({"a": {"dtype": "F32", "shape": []}}, None, "not described"),
    "tensor with more": ({"a": tensor() | {"x": 1}}, None, "not described"),
    "unknown dtype": ({"a": tensor("F31")}, None, "unknown dtype"),
    "dtype that is a list": ({"a": tensor() | {"dtype": ["F32"]}}, None, "unknown dtype"),
    "negative size": ({"a": tensor(shape=[-2])}, None, "not a list"),
    "boolean size": ({"a": tensor("U8", [True], [0, 1])}, None, "not a list"),
    "fractional size": ({"a": tensor(shape=[2.0])}, None, "not a list"),
    "huge size": ({"a": tensor(shape=[2**63])}, None, "not a list"),
    "too many axes": ({"a": tensor(shape=[1] * 65)}, None, "not a list"),
    "one offset": ({"a": tensor(offsets=[0])}, None, "begin and an end"),
    "offsets backwards": ({"a": tensor(offsets=[8, 0])}, None, "begin and an end"),
    "too few bytes": ({"a": tensor(shape=[3])}, None, "takes"),
    "shape that overflows": ({"a": tensor(shape=[2**62, 2**62])}, None, "takes"),
    "bytes missing": ({"a": tensor(shape=[4], offsets=[0, 16])}, None, "the file at byte"),
    "bytes left over": ({"a": tensor(shape=[1], offsets=[0, 4])}, None, "the file at byte"),
    "a hole": ({"a": tensor(shape=[1], offsets=[4, 8])}, None, "does not begin"),
    "an overlap": ({"a": tensor(), "b": tensor()}, None, "does not begin"),
    "6-bit elements cut": ({"a": tensor("F6_E2M3", [1], [0, 1])}, None, "takes"),
}


@pytest.mark.parametrize("name", BAD)
def test_damage_is_named_in_one_sentence(name: str, tmp_path: Path) -> None:
    header, length, words = BAD[name]
    path = tmp_path / "bad.safetensors"
    if name == "empty file":
        path.write_bytes(b"")
    else:
        write(path, header, bytes(8) if name != "length beyond the file" else b"", length=length)
    with pytest.raises(StoreError, match=words) as caught:
        read_header(path)
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    assert len(message) < 600
    assert isinstance(caught.value, UsageError)


def test_a_long_header_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.write((MAX_HEADER + 1).to_bytes(8, "little"))
        file.truncate(MAX_HEADER + 1000)
    with pytest.raises(StoreError, match="more than the 100000000"):
        read_header(path)
    small = write(tmp_path / "small", {"a": tensor()}, bytes(8))
    with pytest.raises(StoreError, match="more than the 8"):
        read_header(small, max_header=8)


def test_what_is_not_a_file(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="No such file"):
        read_header(tmp_path / "missing")
    with pytest.raises(StoreError, match="not a regular file"):
        read_header(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(StoreError, match="not a regular file"):
        read_header(tmp_path / "pipe")
    with pytest.raises(StoreError, match="can't be read"):
        read_header(Path("a\0b"))


def test_a_file_that_shrinks_after_its_header_was_read(tmp_path: Path) -> None:
    path = write(tmp_path / "f", {"a": tensor()}, bytes(8))
    found = read_header(path).tensors["a"]
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(StoreError, match="became shorter"):
        map_bytes(path, found.start, found.stop)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_mutated_files_are_read_or_refused(data: st.DataObject, tmp_path: Path) -> None:
    path = write(tmp_path / "f", {"a": tensor(), "b": tensor("U8", [3, 1], [8, 11])}, bytes(range(11)))
    raw = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(raw[: data.draw(st.integers(0, len(raw)))])
    try:
        file = read_header(path)
    except StoreError:
        return
    size = path.stat().st_size
    spans = sorted((found.start, found.stop) for found in file.tensors.values())
    assert all(0 < start <= stop <= size for start, stop in spans)
    assert all(before[1] == after[0] for before, after in itertools.pairwise(spans))

from __future__ import annotations

import io
import json
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reprocheck.compare.arrays import compare, compare_maps
from reprocheck.compare.files import open_file
from reprocheck.compare.source import Source
from reprocheck.errors import UsageError
from reprocheck.model import Tolerance

EXACT = Tolerance()
ARRAYS: dict[str, Any] = {
    "w": np.arange(6, dtype=np.float32).reshape(2, 3),
    "b": np.array([True, False]),
    "c": np.array([1 + 2j]),
    "e": np.zeros((0, 3)),
    "s": np.float64(3.0),
    "f": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "big": np.arange(4, dtype=">i4"),
    "names": np.array(["a", "bc"]),
    "when": np.array(["2026-12-01"], "datetime64[D]"),
}


def test_npz(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", **ARRAYS)
    np.savez_compressed(tmp_path / "b.npz", **ARRAYS)
    a, b = open_file(tmp_path / "a.npz"), open_file(tmp_path / "b.npz")
    assert list(a) == list(ARRAYS)
    assert len(b) == len(ARRAYS)
    found = compare_maps(a, b, lambda _: EXACT)
    assert {difference.kind for difference in found.values()} == {"equal"}
    assert found["big"].dtype == "int32"
    with pytest.raises(KeyError):
        a["missing"]


@pytest.mark.parametrize("name", ARRAYS)
def test_npy(name: str, tmp_path: Path) -> None:
    array = np.asarray(ARRAYS[name])
    np.save(tmp_path / "a.npy", array)
    opened = open_file(tmp_path / "a.npy")
    assert list(opened) == ["value"]
    source = opened["value"]
    assert source.shape == array.shape
    plain = array.astype(array.dtype.newbyteorder("="))
    assert source.open().read(0, source.size).tobytes() == plain.tobytes()


def test_byte_order_and_layout_do_not_count(tmp_path: Path) -> None:
    array = np.random.default_rng(0).standard_normal((300, 200))
    for file, form in (("a", array), ("b", np.asfortranarray(array)), ("c", array.astype(">f8"))):
        np.save(tmp_path / f"{file}.npy", form)
    a, b, c = (open_file(tmp_path / f"{file}.npy")["value"] for file in "abc")
    assert compare(b, a, EXACT).kind == "equal"
    assert compare(c, a, EXACT, chunk_bytes=1000).kind == "equal"


def safetensors(path: Path, header: dict[str, object], data: bytes) -> Path:
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def test_safetensors(tmp_path: Path) -> None:
    header = {
        "__metadata__": {"dtype": "whatever it means to its writer"},
        "a": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]},
        "z": {"dtype": "C64", "shape": [1], "data_offsets": [4, 12]},
    }
    opened = open_file(safetensors(tmp_path / "x.safetensors", header, bytes(12)))
    assert list(opened) == ["a", "z"]
    assert len(opened) == 2
    assert (opened["a"].dtype.name, opened["z"].dtype.name) == ("bfloat16", "complex64")


def test_a_stored_output_keeps_its_dtype(tmp_path: Path) -> None:
    header = {"__metadata__": {"dtype": "str"}, "value": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}}
    opened = open_file(safetensors(tmp_path / "x.safetensors", header, b"hi"))
    assert opened["value"].dtype.name == "str"


def refused(path: Path, *words: str) -> None:
    def first() -> Source:
        opened = open_file(path)
        return opened[next(iter(opened))]

    with pytest.raises(UsageError) as caught:
        first()
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    for word in words:
        assert word in message


def test_paths_that_cannot_be_opened(tmp_path: Path) -> None:
    refused(tmp_path, "folder")
    refused(tmp_path / "missing.npz", "does not exist")
    os.mkfifo(tmp_path / "pipe.npy")
    refused(tmp_path / "pipe.npy", "regular file")
    (tmp_path / "x.txt").write_text("1")
    refused(tmp_path / "x.txt", "not a .safetensors, .npz or .npy file")


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".safetensors"])
@pytest.mark.parametrize(
    "content", [b"", b"garbage", b"\x93NUMPY\x01\x00\xff\xff{", b"PK\x03\x04garbage", b"\x80\x04K\x01."]
)
def test_damaged_files_are_named_in_one_sentence(suffix: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / f"x{suffix}"
    path.write_bytes(content)
    refused(path)


def test_pickles_are_never_loaded(tmp_path: Path) -> None:
    np.save(tmp_path / "o.npy", np.array([{"a": 1}], dtype=object))
    refused(tmp_path / "o.npy", "never unpickled")
    np.savez(tmp_path / "o.npz", x=np.array([None], dtype=object))
    refused(tmp_path / "o.npz", "'x'", "never unpickled")
    (tmp_path / "p.npy").write_bytes(pickle.dumps([1, 2]))
    refused(tmp_path / "p.npy")


def test_truncated_arrays(tmp_path: Path) -> None:
    np.save(tmp_path / "t.npy", np.arange(1000))
    raw = (tmp_path / "t.npy").read_bytes()
    (tmp_path / "t.npy").write_bytes(raw[:-1])
    refused(tmp_path / "t.npy")
    with zipfile.ZipFile(tmp_path / "t.npz", "w") as archive:
        archive.writestr("x.npy", raw[:-1])
    refused(tmp_path / "t.npz", "'x'")


def test_a_header_that_claims_the_moon(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": "<f8", "fortran_order": False, "shape": (2**50,)})
    with zipfile.ZipFile(tmp_path / "m.npz", "w") as archive:
        archive.writestr("x.npy", buffer.getvalue())
    refused(tmp_path / "m.npz", "'x'")
    (tmp_path / "m.npy").write_bytes(buffer.getvalue())
    refused(tmp_path / "m.npy")


def test_archives_with_other_things_in_them(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("notes.txt", "hello")
    refused(tmp_path / "a.npz", "notes.txt")
    np.savez(tmp_path / "b.npz", x=np.arange(3))
    (tmp_path / "b.npz").rename(tmp_path / "b.npy")
    refused(tmp_path / "b.npy", "magic string")


def test_dtypes_that_are_not_compared(tmp_path: Path) -> None:
    np.savez(tmp_path / "d.npz", x=np.zeros(2, [("a", "<f4"), ("b", "<i2")]))
    refused(tmp_path / "d.npz", "'x'", "does not compare")
    np.save(tmp_path / "v.npy", np.zeros(2, "V3"))
    refused(tmp_path / "v.npy", "does not compare")

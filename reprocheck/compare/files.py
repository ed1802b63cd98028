"""Arrays in other people's files: `.safetensors`, `.npz` and `.npy`, as untrusted input and without pickle."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reprocheck.compare.source import OBJECT_TENSOR, Source
from reprocheck.errors import UsageError
from reprocheck.store.safetensors import SafetensorsFile, read_header

__all__ = ["open_file"]


def open_file(path: Path) -> Mapping[str, Source]:
    """The arrays in a file, by name; nothing but headers is read until one is asked for.

    A `.npy` file holds one array, called `value`. A member of a compressed `.npz` is in memory while it is compared.

    Raises:
        UsageError: the file is missing, damaged, or of no known kind; asking for an array raises it too, when that
            array holds Python objects or a dtype that is not compared.
    """
    if path.is_dir():
        raise UsageError(f"{path} is a folder; name a .safetensors, .npz or .npy file.")
    if not path.exists():
        raise UsageError(f"{path} does not exist; name a .safetensors, .npz or .npy file.")
    if not path.is_file():  # opening a pipe or a device would block or act
        raise UsageError(f"{path} is not a regular file; name a .safetensors, .npz or .npy file.")
    match path.suffix.lower():
        case ".safetensors":
            file = read_header(path)
            if set(file.tensors) == {OBJECT_TENSOR} and "dtype" in file.metadata:
                return {OBJECT_TENSOR: Source.from_object(path)}
            return _Tensors(file)
        case ".npz":
            return _Archive(path)
        case ".npy":
            return {OBJECT_TENSOR: _npy(path)}
        case _:
            raise UsageError(f"{path} is not a .safetensors, .npz or .npy file; save the arrays as one of these.")


class _Tensors(Mapping[str, Source]):
    """The tensors of a safetensors file."""

    def __init__(self, file: SafetensorsFile) -> None:
        self._file = file

    def __getitem__(self, name: str) -> Source:
        return Source.from_tensor(self._file, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._file.tensors)

    def __len__(self) -> int:
        return len(self._file.tensors)


class _Archive(Mapping[str, Source]):
    """The arrays of a `.npz` file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            with zipfile.ZipFile(path) as archive:
                members = archive.namelist()
        except (OSError, zipfile.BadZipFile, ValueError) as error:
            raise _unreadable(path, error) from error
        for member in members:
            if not member.endswith(".npy"):
                raise UsageError(f"{path} holds {member[:80]!r}, which is not a .npy array; save it by numpy.savez.")
        self._members = dict.fromkeys(member.removesuffix(".npy") for member in members)

    def __getitem__(self, name: str) -> Source:
        if name not in self._members:
            raise KeyError(name)
        try:
            with zipfile.ZipFile(self._path) as archive, archive.open(f"{name}.npy") as member:
                array: NDArray[Any] = np.lib.format.read_array(member, allow_pickle=False)
        except Exception as error:
            raise _unreadable(f"{self._path}: array {name[:80]!r}", error) from error
        return _checked(array, f"{self._path}: array {name[:80]!r}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)


def _npy(path: Path) -> Source:
    try:
        # Not numpy.load, which would go by the content and open archives and pickles too.
        array = np.lib.format.open_memmap(path, mode="r")
    except Exception as error:
        raise _unreadable(path, error) from error
    source = _checked(array, str(path))
    if array.flags.c_contiguous and array.dtype.isnative and array.size:
        return Source.from_mapped(path, array.offset, source.dtype, source.shape)
    return source


def _checked(array: NDArray[Any], label: str) -> Source:
    try:
        return Source.from_numpy(array)
    except TypeError as error:
        raise UsageError(f"{label} {error}; save it in another dtype.") from None


def _unreadable(label: object, error: Exception) -> UsageError:
    # numpy's words for a damaged header run over several lines.
    reason = (getattr(error, "strerror", None) or str(error) or type(error).__name__).partition("\n")[0][:160]
    if "allow_pickle" in reason or "Python objects" in reason:
        return UsageError(f"{label} holds Python objects, which are never unpickled; save plain arrays.")
    return UsageError(f"{label} can't be read ({reason}); it is damaged or not what its name says, so save it again.")

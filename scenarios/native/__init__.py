"""Small C libraries for the scenarios `ftz_pool` and `soname`, compiled when first needed.

The submodules are the subjects of those scenarios, so this package loads nothing but the standard library. What it
builds is kept in the user's cache folder, in a folder whose name changes with the sources and the compiler.
"""

from __future__ import annotations

import ctypes
import os
from importlib.util import source_hash
from pathlib import Path

__all__ = ["compiled", "vendor"]

HERE = Path(__file__).resolve().parent


def compiled(source: str, library: str, *options: str) -> Path:
    """The shared library `library` (a path below the cache folder), made from `source`, a C file of this folder.

    Built by `$CC` (default `cc`) unless it is there already. Raises RuntimeError, in one sentence, when there is no
    compiler or it fails.
    """
    path = _cache() / library
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        _compile(HERE / source, path, options)
    return path


def vendor(accumulator: str) -> ctypes.CDLL:
    """What a vendor ships: a library with `scaled_dot`, and in the same folder the `libdot.so.1` that it needs.

    `accumulator` is the C type in which that vendor's `libdot.so.1` adds up.
    """
    dot = compiled("dot.c", f"{accumulator}/libdot.so.1", f"-DACCUMULATOR={accumulator}", "-Wl,-soname,libdot.so.1")
    path = compiled("vendor.c", f"{accumulator}/libvendor.so", str(dot), "-Wl,-rpath,$ORIGIN")
    library = ctypes.CDLL(str(path))
    library.scaled_dot.restype = ctypes.c_float
    library.scaled_dot.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int]
    return library


def _compiler() -> str:
    return os.environ.get("CC", "cc")


def _cache() -> Path:
    """Where libraries built from these very sources by this compiler belong."""
    text = b"".join(file.read_bytes() for file in sorted(HERE.glob("*.[ch]"))) + Path(__file__).read_bytes()
    base = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    return base / "reprocheck-scenarios" / source_hash(text + _compiler().encode()).hex()


def _compile(source: Path, path: Path, options: tuple[str, ...]) -> None:
    import shutil
    import subprocess

    if shutil.which(_compiler()) is None:
        raise RuntimeError(f"This scenario needs a C compiler and there is no `{_compiler()}`: install gcc or set CC.")
    # Two trials may build at once: each writes a file of its own, the rename is atomic, the contents are the same.
    unfinished = path.with_suffix(f".{os.getpid()}")
    command = [_compiler(), "-shared", "-fPIC", "-O2", str(source), *options, "-o", str(unfinished)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"`{' '.join(command)}` failed: {done.stderr.strip()}")
    unfinished.replace(path)

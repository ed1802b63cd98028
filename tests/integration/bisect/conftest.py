"""A house that releases a toolbox: tiny wheels written by tests, and bisections of them, all offline."""

from __future__ import annotations

import base64
import hashlib
import textwrap
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from reprocheck.bisect.installers import Sources
from reprocheck.bisect.question import Question
from reprocheck.bisect.records import Report
from reprocheck.bisect.run import bisect

Sources_ = Mapping[str, str]


class House:
    """A folder with a workload, and one with the releases of what it uses."""

    def __init__(self, folder: Path, cache: Path) -> None:
        self.folder = folder / "here"
        self.wheels = folder / "wheels"
        self.cache = cache
        self.said: list[str] = []
        self.folder.mkdir()
        self.wheels.mkdir()

    def write(self, **modules: str) -> None:
        """Modules next to the workload."""
        for name, source in modules.items():
            (self.folder / f"{name}.py").write_text(textwrap.dedent(source), encoding="utf-8")

    def release(
        self,
        version: str,
        source: str | Sources_,
        *,
        name: str = "tool",
        requires: Sequence[str] = (),
        python: str = "",
        tag: str = "py3-none-any",
    ) -> None:
        """A wheel; `source` is the package's `__init__.py`, or its files."""
        info = f"{name}-{version}.dist-info"
        files = {f"{name}/__init__.py": source} if isinstance(source, str) else dict(source)
        files = {path: textwrap.dedent(text) for path, text in files.items()}
        lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
        lines += [f"Requires-Python: {python}"] if python else []
        lines += [f"Requires-Dist: {one}" for one in requires]
        files[f"{info}/METADATA"] = "\n".join(lines) + "\n"
        files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: {tag}\n"
        rows = []
        for path, text in files.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
            rows.append(f"{path},sha256={digest},{len(text.encode())}\n")
        with zipfile.ZipFile(self.wheels / f"{name}-{version}-{tag}.whl", "w") as archive:
            for path, text in files.items():
                archive.writestr(path, text)
            archive.writestr(f"{info}/RECORD", "".join(rows) + f"{info}/RECORD,,\n")

    def releases(self, count: int, source: Callable[[int], str]) -> None:
        """Versions 1.0, 1.1, …, each with its number in it, so that no two have equal contents."""
        for number in range(count):
            self.release(f"1.{number}", textwrap.dedent(source(number)) + f"\nnumber = {number}\n")

    def bisect(self, **asked: Any) -> Report:
        """A bisection of `tool`, unless asked otherwise."""
        asked = {
            "kind": "versions",
            "package": "tool" if asked.get("kind", "versions") == "versions" else "",
            "workload": "" if asked.get("check") else "work.py::run",
            "sources": Sources(find_links=(str(self.wheels),), no_index=True),
            "cache": str(self.cache),
            "explain": False,
            **asked,
        }
        return bisect(Question(**asked), self.said.append, cwd=self.folder)


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("environments")


@pytest.fixture
def house(tmp_path: Path, cache: Path) -> House:
    return House(tmp_path, cache)

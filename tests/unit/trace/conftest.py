"""Tracing a module of the test's own in this process."""

from __future__ import annotations

import importlib.util
import itertools
import json
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from reprocheck.worker import trace

_numbers = itertools.count()


class Bench:
    """A folder with a workload; `trace` calls a function of it under a trace and gives the records."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.result: Any = None
        self.loaded: list[str] = []

    def write(self, source: str, name: str = "work.py") -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(source), encoding="utf-8")
        return path

    def load(self, path: Path) -> ModuleType:
        name = f"traced_{path.stem}_{next(_numbers)}"
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        self.loaded.append(name)
        spec.loader.exec_module(module)
        return module

    def trace(
        self, source: str, *modes: str, function: str = "run", subjects: tuple[str, ...] = (), **wanted: Any
    ) -> list[dict[str, Any]]:
        path = self.write(source)
        module = self.load(path)
        job = {
            "folder": str(self.folder),
            "target": {"kind": "function", "path": str(path), "module": None, "name": function},
            "subjects": list(subjects),
            "trace": {"modes": list(modes), **wanted},
        }
        running = trace.start(job, None)
        try:
            self.result = getattr(module, function)()
        finally:
            running.stop()
        lines = (self.folder / "trace.jsonl").read_text(encoding="utf-8").splitlines()
        return resolved([json.loads(line) for line in lines])


def resolved(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Records with (line, function) in place of site numbers."""
    sites = {record["id"]: (record["line"], record["function"]) for record in records if record["k"] == "site"}
    for record in records:
        for field in ("s", "via", "fs"):
            if record.get(field) is not None and record["k"] != "site":
                record[field] = sites[record[field]]
        if "it" in record:
            record["it"] = [(sites[site][0], count) for site, count in record["it"]]
    return records


def kinds(records: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [record for record in records if record["k"] == kind]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    before = sys.gettrace()
    yield made
    sys.settrace(before)
    for name in made.loaded:
        sys.modules.pop(name, None)


@pytest.fixture
def only() -> Callable[[list[dict[str, Any]], str], list[dict[str, Any]]]:
    return kinds

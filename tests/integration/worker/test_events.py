"""Events name the line that did it, and the body that was executing."""

from __future__ import annotations

import _ctypes
import shutil
from pathlib import Path
from typing import Any

import pytest

from .conftest import Observer


def events(observer: Observer, *subjects: str, kind: str, **env: str) -> list[dict[str, Any]]:
    return [event for event in observer.run(subjects, env)["events"] if event["kind"] == kind]


def place(event: dict[str, Any]) -> tuple[str, int | None, str | None]:
    return Path(event["file"]).name, event["line"], event["module"]


def test_environment_writes(observer: Observer) -> None:
    observer.write("toolbox/__init__.py", "from toolbox import runtime\nruntime.setup()\n")
    observer.write(
        "toolbox/runtime.py",
        "import os\n\ndef setup():\n    os.environ['OMP_NUM_THREADS'] = '1'\n"
        "    os.environ.setdefault('MKL_CBWR', 'AVX2')\n    del os.environ['MKL_CBWR']\n"
        "    os.environ['MY_TOKEN'] = 'hunter2'\n    os.putenv('KMP_AFFINITY', 'none')\n",
    )
    found = events(observer, "toolbox", kind="putenv")
    assert [(event["name"], event["value"]) for event in found][:2] == [("OMP_NUM_THREADS", "1"), ("MKL_CBWR", "AVX2")]
    assert [place(event) for event in found] == [("runtime.py", line, "toolbox") for line in (4, 5, 7, 8)]
    assert found[2]["value"].startswith("sha256:")
    (gone,) = events(observer, "toolbox", kind="unsetenv")
    assert (gone["name"], *place(gone)) == ("MKL_CBWR", "runtime.py", 6, "toolbox")


def test_only_the_first_import_of_a_module(observer: Observer) -> None:
    observer.write("leaf.py", "")
    observer.write("one.py", "import sys\nimport leaf\nimport leaf\n")
    observer.write(
        "two.py", "import one\nimport leaf\ntry:\n    import missing_module\nexcept ImportError:\n    pass\n"
    )
    found = events(observer, "two", kind="import")
    names = {event["name"]: place(event) for event in found}
    assert names["leaf"] == ("one.py", 2, "one")
    assert names["one"] == ("two.py", 1, "two")
    assert "missing_module" not in names
    assert len(found) == len(names)


def test_dlopen_and_the_library_it_brought(observer: Observer) -> None:
    library = str(observer.folder / "_copy.so")
    shutil.copy(_ctypes.__file__, library)
    observer.write("toolbox.py", f"import ctypes\n\nctypes.CDLL({library!r})\n")
    (opened,) = [event for event in events(observer, "toolbox", kind="dlopen") if event["name"] == library]
    assert place(opened) == ("toolbox.py", 3, "toolbox")
    brought = {event["name"]: event for event in events(observer, "toolbox", kind="library")}
    assert brought[library]["value"] == library
    assert place(brought[library]) == ("toolbox.py", 3, "toolbox")


def test_extension_modules_bring_their_libraries(observer: Observer) -> None:
    observer.write("toolbox.py", "x = 1\nimport ctypes\n")
    found = [event for event in events(observer, "toolbox", kind="library") if "_ctypes" in event["name"]]
    if not found:
        pytest.skip("_ctypes is built into this interpreter")
    assert found[0]["value"] == "_ctypes"


def test_our_own_readers_leave_no_event(observer: Observer) -> None:
    observer.write("toolbox.py", "")
    found = observer.run(["toolbox"])["events"]
    assert [event for event in found if event["kind"] in ("dlopen", "putenv", "error")] == []


def test_times_grow(observer: Observer) -> None:
    found = [event["at"] for event in observer.run(["json", "ctypes", "decimal"])["events"]]
    assert found == sorted(found)


def test_setters_are_told_with_the_line_outside_the_library(observer: Observer) -> None:
    observer.write("helper.py", "import random\ndef begin(n):\n    random.seed(n)\n")
    observer.write(
        "toolbox.py", "import helper, os, locale\nhelper.begin(3)\nos.umask(18)\nlocale.setlocale(locale.LC_ALL, 'C')\n"
    )
    found = observer.run(["json", "toolbox"], blame={"keys": [], "modules": []})
    setters = {event["name"]: event for event in found if event["kind"] == "setter"}
    assert place(setters["random.seed"]) == ("helper.py", 3, "toolbox")
    assert setters["random.seed"]["value"] == "a=3, version=2"
    assert place(setters["posix.umask"]) == ("toolbox.py", 3, "toolbox")
    assert place(setters["locale.setlocale"]) == ("toolbox.py", 4, "toolbox")
    assert place(setters["_locale.setlocale"]) == ("toolbox.py", 4, "toolbox")

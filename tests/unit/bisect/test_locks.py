"""Lock files of every kind, and the difference of two."""

from __future__ import annotations

from pathlib import Path

import pytest

from reprocheck.bisect.locks import changes, mixture, read_lock
from reprocheck.errors import UsageError

MARKERS = {
    "python_version": "3.11",
    "python_full_version": "3.11.7",
    "sys_platform": "linux",
    "platform_system": "Linux",
    "platform_machine": "x86_64",
    "os_name": "posix",
    "implementation_name": "cpython",
    "implementation_version": "3.11.7",
    "platform_python_implementation": "CPython",
    "platform_release": "6",
    "platform_version": "1",
    "extra": "",
}

UV = """
version = 1
[[package]]
name = "project"
version = "0.1.0"
source = { virtual = "." }
dependencies = [
    { name = "torch" },
    { name = "pywin32", marker = "sys_platform == 'win32'" },
    { name = "tool", extra = ["fast"] },
]
[package.dev-dependencies]
dev = [{ name = "pytest" }]
[[package]]
name = "torch"
version = "2.7.0"
source = { registry = "https://pypi.org/simple" }
dependencies = [{ name = "numpy" }]
[[package]]
name = "numpy"
version = "1.26.4"
source = { registry = "https://pypi.org/simple" }
resolution-markers = ["python_full_version < '3.10'"]
[[package]]
name = "numpy"
version = "2.2.6"
source = { registry = "https://pypi.org/simple" }
resolution-markers = ["python_full_version >= '3.10'"]
[[package]]
name = "pywin32"
version = "306"
source = { registry = "https://pypi.org/simple" }
[[package]]
name = "tool"
version = "1.0"
source = { git = "https://example.org/tool.git?rev=main#0123abc" }
[package.optional-dependencies]
fast = [{ name = "speed" }]
[[package]]
name = "speed"
version = "3.0"
source = { url = "https://example.org/speed-3.0-py3-none-any.whl" }
[[package]]
name = "pytest"
version = "8.4.0"
source = { registry = "https://pypi.org/simple" }
[[package]]
name = "unused"
version = "1"
source = { registry = "https://pypi.org/simple" }
"""

PYLOCK = """
lock-version = "1.0"
created-by = "pip"
[[packages]]
name = "torch"
version = "2.7.0"
[[packages]]
name = "pywin32"
version = "306"
marker = "sys_platform == 'win32'"
[[packages]]
name = "tool"
[packages.vcs]
type = "git"
url = "https://example.org/tool.git"
commit-id = "0123abc"
"""


def pins(folder: Path, name: str, text: str) -> dict[str, str]:
    (folder / name).write_text(text)
    return {pin.name: pin.requirement for pin in read_lock(folder / name, MARKERS).values()}


def test_a_requirements_file(tmp_path: Path) -> None:
    (tmp_path / "more.txt").write_text("einops==0.8.1\n")
    text = (
        "# made by a tool\n--index-url https://example.org/simple\n-r more.txt\n"
        "Torch[opt]==2.7.0 ; python_version >= '3.9' \\\n    --hash=sha256:abc \\\n    --hash=sha256:def\n"
        "pywin32==306 ; sys_platform == 'win32'\nlocal.thing == 1.0+cpu  # why\n"
    )

    assert pins(tmp_path, "r.txt", text) == {
        "einops": "einops==0.8.1",
        "torch": "torch==2.7.0",
        "local-thing": "local-thing==1.0+cpu",
    }


def test_pip_freeze(tmp_path: Path) -> None:
    text = "numpy==2.2.6\n-e git+https://example.org/tool.git@0123abc#egg=tool\nx @ file:///w/x-1-py3-none-any.whl\n"

    assert pins(tmp_path, "freeze", text) == {
        "numpy": "numpy==2.2.6",
        "tool": "tool @ git+https://example.org/tool.git@0123abc#egg=tool",
        "x": "x @ file:///w/x-1-py3-none-any.whl",
    }


def test_uv_lock_holds_what_is_needed_here(tmp_path: Path) -> None:
    assert pins(tmp_path, "uv.lock", UV) == {
        "torch": "torch==2.7.0",
        "numpy": "numpy==2.2.6",
        "tool": "tool @ git+https://example.org/tool.git@0123abc",
        "speed": "speed @ https://example.org/speed-3.0-py3-none-any.whl",
        "pytest": "pytest==8.4.0",
    }


def test_pylock(tmp_path: Path) -> None:
    assert pins(tmp_path, "pylock.toml", PYLOCK) == {
        "torch": "torch==2.7.0",
        "tool": "tool @ git+https://example.org/tool.git@0123abc",
    }


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("r.txt", "numpy>=1\n", "leaves the version of `numpy` open"),
        ("r.txt", "numpy==1.*\n", "leaves the version"),
        ("r.txt", "", "holds no pins"),
        ("r.txt", "numpy==1\nnumpy==2\n", "at 1 and at 2"),
        ("r.txt", "!!\n", "no requirement"),
        ("r.txt", "-r r.txt\n", "includes"),
        ("r.txt", "-r gone.txt\n", "cannot read"),
        ("uv.lock", "[[package\n", "not valid TOML"),
    ],
)
def test_what_is_no_lock(tmp_path: Path, name: str, text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        pins(tmp_path, name, text)


def test_the_difference_and_its_mixtures(tmp_path: Path) -> None:
    (tmp_path / "good.txt").write_text("a==1\nb==1\ngone==1\nsame==1\n")
    (tmp_path / "bad.txt").write_text("a==2\nb==2\nnew==1\nsame==1\n")
    good, bad = (read_lock(tmp_path / name, MARKERS) for name in ("good.txt", "bad.txt"))

    found = changes(good, bad)

    assert [(one.name, one.before, one.after) for one in found] == [
        ("a", "1", "2"),
        ("b", "1", "2"),
        ("gone", "1", "none"),
        ("new", "none", "1"),
    ]
    assert mixture(good, bad, frozenset()) == (("a==1", "b==1", "gone==1", "same==1"), ("new==1",))
    assert mixture(good, bad, frozenset({"a", "new"})) == (("a==2", "b==1", "gone==1", "new==1", "same==1"), ())
    assert mixture(good, bad, frozenset({"gone"})) == (("a==1", "b==1", "same==1"), ("gone==1", "new==1"))

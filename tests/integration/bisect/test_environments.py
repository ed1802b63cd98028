"""Environments: what they inherit, what they refuse, and which installer is taken."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from reprocheck.bisect.installers import Pip, Requirements, Resolution, Sources, Uv, choose
from reprocheck.bisect.interpreter import Interpreter, ask, wheel_tags
from reprocheck.bisect.records import Unavailable
from reprocheck.engine.environment import user_environment
from reprocheck.errors import HarnessError, UsageError
from tests.integration.bisect.conftest import House


def base(house: House) -> str:
    """An interpreter with a copy of `tool` of its own, and a package that no index has in this build."""
    folder = house.folder.parent / "base"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    packages = next(folder.glob("lib/python*/site-packages"))
    installed = {
        "tool": ("9.0", {"tool/__init__.py": "value = 9.0", "tool_extra.py": ""}),
        "huge": ("2.13.0+cpu", {"huge/__init__.py": "value = 0.5"}),
    }
    for name, (version, files) in installed.items():
        info = packages / f"{name}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (info / "RECORD").write_text("".join(f"{path},sha256=x,1\n" for path in files))
        for path, text in files.items():
            (packages / path).parent.mkdir(exist_ok=True)
            (packages / path).write_text(text)
    return str(folder / "bin" / "python")


@pytest.mark.parametrize("installer", ["auto", "pip"])
def test_everything_but_the_package_stays_as_it_is(house: House, installer: str) -> None:
    house.write(work="import tool, huge\ndef run():\n    return tool.value + huge.value\n")
    for number in range(4):
        needs = ["huge>=99"] if number == 2 else ["huge==2.13.0"]
        house.release(f"1.{number}", f"value = {float(number >= 3)}\nnumber = {number}\n", requires=needs)

    report = house.bisect(python=base(house), good="1.0", until="drift", runs=1, installer=installer)

    assert (report.last_good, report.first_bad) == ("1.1", "1.3")
    assert [(one.kind, one.versions) for one in report.untestable] in (
        [("dependency", ("1.2",))],
        [("run", ("1.2",))],
    )
    assert "huge" in report.untestable[0].reason
    assert report.blame is not None
    assert report.blame.also_changed == (), "huge is the same for all"
    assert any("tool_extra" in note for note in report.notes), (
        "what is left visible of the interpreter's own copy is told"
    )


def test_what_is_asked_for_and_there_is_not_installed_again(house: House) -> None:
    house.write(work="import tool, huge\ndef run():\n    return tool.value + huge.value\n")
    house.releases(3, lambda n: f"value = {float(n >= 2)}")

    report = house.bisect(python=base(house), good="1.0", until="drift", runs=1, requirements=("huge==2.13.0",))

    assert (report.last_good, report.first_bad) == ("1.1", "1.2")


def test_an_interpreter_that_is_none(tmp_path: Path) -> None:
    fake = script(tmp_path / "python", "echo 'Python 2.7'")

    with pytest.raises(UsageError, match=r"is no Python 3\.9 or later that runs"):
        ask(str(fake), user_environment())


def test_tags_of_this_interpreter_are_those_packaging_gives() -> None:
    from packaging.tags import sys_tags

    tags = wheel_tags(ask(sys.executable, user_environment()))

    assert {str(tag) for tag in sys_tags()} <= tags | {"x"}


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.fixture(scope="module")
def interpreter() -> Interpreter:
    return ask(sys.executable, user_environment())


def pip(folder: Path, text: str) -> Pip:
    program = script(folder / "pip", text)
    return Pip(sys.executable, Sources(), user_environment(), threading.Event(), host=[str(program)])


PIP_SAYS = """\
ERROR: Ignored the following yanked versions: 21.1.0, 22.0
ERROR: Ignored the following versions that require a different python version: 2.5 Requires-Python >=3; 1 Requires-Python <3
ERROR: Could not find a version that satisfies the requirement x===0+none (from versions: 1.0a1, 1.0, 2.0)
ERROR: No matching distribution found for x===0+none
"""  # noqa: E501 - as pip writes it


def test_what_pip_says_there_is(tmp_path: Path) -> None:
    (tmp_path / "said").write_text(PIP_SAYS)

    listing = pip(tmp_path, f"cat '{tmp_path}/said' >&2; exit 1").versions("x")

    assert listing.usable == ("1.0a1", "1.0", "2.0")
    assert listing.yanked == ("21.1.0", "22.0")
    assert listing.python == {"2.5": ">=3", "1": "<3"}


def test_a_package_nobody_has(tmp_path: Path) -> None:
    text = "echo 'ERROR: Could not find a version that satisfies x===0+none (from versions: none)' >&2; exit 1"

    with pytest.raises(UsageError, match="there is no package `x` as a wheel"):
        pip(tmp_path, text).versions("x")


def test_an_index_out_of_reach_says_nothing_about_versions(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="could not reach"):
        pip(tmp_path, "echo 'WARNING: Retrying after connection broken by NewConnectionError' >&2; exit 1").versions(
            "x"
        )


def uv(folder: Path, text: str) -> Uv:
    return Uv(str(script(folder / "uv", text)), Sources(), user_environment(), threading.Event())


def test_a_dry_run_of_uv(tmp_path: Path) -> None:
    found = uv(
        tmp_path,
        """[ "$1" = --version ] && echo 'uv 0.9.9' && exit
echo 'warning: `tool==1.0` is yanked (reason: "no")' >&2
echo '{"changes": [{"name": "Tool", "version": "1.0", "action": "installed"},
  {"name": "b", "action": "installed", "url": "file:///b"}]}'""",
    )

    result = found.resolve(Requirements(package="tool", wanted=("tool==1.0",)), tmp_path)

    assert found.version == "0.9.9"
    assert result == Resolution(packages={"tool": "1.0", "b": "file:///b"}, yanked=("tool",))


def test_a_uv_that_cannot_install(tmp_path: Path) -> None:
    text = "echo '  cause: Because tool==1.0 requires Python >=3.99 and you require tool==1.0' >&2; exit 1"

    result = uv(tmp_path, text).install(Requirements(package="tool", wanted=("tool==1.0",)), tmp_path)

    assert result == Unavailable(kind="python", reason="tool==1.0 requires Python >=3.99")


def test_a_setting_of_pips_that_uv_cannot_be_told_is_a_reason_for_pip(tmp_path: Path, interpreter: Interpreter) -> None:
    script(tmp_path / "uv", "echo 'uv 0.9.9'")
    variables = {**user_environment(), "PATH": f"{tmp_path}:/usr/bin:/bin"}

    for setting, name in (({}, "uv"), ({"PIP_CLIENT_CERT": "/key.pem"}, "pip")):
        found, lister = choose("auto", interpreter, Sources(), {**variables, **setting}, threading.Event())
        assert found.name == name
        assert lister is not None


def test_an_installer_that_is_not_there(interpreter: Interpreter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    variables = {**user_environment(), "PATH": "/nowhere"}

    with pytest.raises(UsageError, match="there is no uv on PATH"):
        choose("uv", interpreter, Sources(), variables, threading.Event())

"""The command: what it refuses, what it prints, and its exit statuses."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner, Result

from reprocheck.cli.bisect import command
from reprocheck.errors import UsageError
from tests.integration.bisect.conftest import House


def call(house: House, *arguments: str, monkeypatch: pytest.MonkeyPatch) -> Result:
    monkeypatch.chdir(house.folder)
    common = ["--no-index", "--find-links", str(house.wheels), "--cache", str(house.cache)]
    return CliRunner().invoke(command, [*arguments, *common], catch_exceptions=True)


def test_found(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    house.write(work="import tool\ndef run():\n    return tool.value\n")
    house.releases(5, lambda n: f"value = {float(n >= 3)}")
    arguments = ("work.py::run", "--package", "tool", "--good", "1.0", "--until", "drift", "--output", "json:r.json")

    result = call(house, *arguments, monkeypatch=monkeypatch)

    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("tool 1.3 is the first version in which the outputs differ")
    assert "about 3 more to run" in result.stderr or "more to run" in result.stderr
    document = json.loads((house.folder / "r.json").read_text())
    assert (document["schema"], document["first_bad"], document["last_good"]) == ("reprocheck/bisect", "1.3", "1.2")
    assert {"versions_run", "transitions", "factorial", "untestable", "condition", "posterior"} <= set(document)


def test_not_found(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    house.releases(3, lambda _: "")

    result = call(house, "--check", "true", "--package", "tool", "--good", "1.0", "-q", monkeypatch=monkeypatch)

    assert result.exit_code == 1
    assert result.stdout.startswith("no answer: the condition does not hold in either end")
    assert result.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("work.py",), "say what is searched"),
        (("work.py", "--package", "tool", "--good-lock", "a", "--bad-lock", "b"), "say what is searched"),
        (("work.py", "--good-lock", "a"), "give both --good-lock and --bad-lock"),
        (("--package", "tool"), "give either a workload or --check"),
        (("work.py", "--check", "true", "--package", "tool"), "give either a workload or --check"),
        (("--check", "true", "--package", "tool", "--until", "drift"), "the command decides"),
        (("--check", "true", "--package", "tool", "--output", "pdf:x"), "is not FORMAT:PATH"),
        (("--check", "true", "--package", "tool", "--env", "X"), "is not NAME=VALUE"),
        (("--check", "true", "--package", "tool", "--resume"), "no unfinished bisection"),
        (("--check", "true", "--repo", ".", "--build"), "add --package"),
        (("--check", "true", "--package", "tool", "--with", "???"), "is no requirement"),
    ],
)
def test_what_is_refused(house: House, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], says: str) -> None:
    house.write(work="import tool\n")
    house.releases(2, lambda _: "")

    result = call(house, *arguments, monkeypatch=monkeypatch)

    assert isinstance(result.exception, UsageError)
    assert says in str(result.exception)
    assert "\n" not in str(result.exception), "one sentence"

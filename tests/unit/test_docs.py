"""The documents say what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reprocheck.cli.main import COMMANDS, cli
from reprocheck.compare.verdict import EXIT_CODES
from reprocheck.explain.keys import markdown

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_table_of_captured_keys_is_the_codes() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    table = text.partition("<!-- keys -->")[2].partition("<!-- end of keys -->")[0]

    assert table.strip() == markdown().strip(), "put the output of `reprocheck state --keys` between the markers"


def test_the_readme_has_every_verdict_with_its_exit_code() -> None:
    rows = dict(re.findall(r"^\| `([a-z-]+)` \|.*\| (\d) \|$", README, re.MULTILINE))

    assert rows == {verdict: str(code) for verdict, code in EXIT_CODES.items()}


@pytest.mark.parametrize("line", re.findall(r"^\$ (reprocheck .*)$", README, re.MULTILINE))
def test_every_command_in_the_readme_is_one(line: str) -> None:
    """Words and options exist; what they do is tested with the commands themselves."""
    words = line.partition("#")[0].partition(" -- ")[0].split()
    assert words[1] in COMMANDS
    command = cli.get_command(cli.make_context("reprocheck", [], resilient_parsing=True), words[1])
    assert command is not None
    known = {option for parameter in command.params for option in parameter.opts}
    used = {word.partition("=")[0] for word in words[2:] if word.startswith("-") and word != "--"}
    assert used <= known | {"--help"}


def test_nothing_is_promised_for_later() -> None:
    for name in ("README.md", "ARCHITECTURE.md", "CHANGELOG.md"):
        assert not re.search(
            r"TODO|FIXME|under construction|<!-- (transcript|scenarios)", (ROOT / name).read_text("utf-8")
        ), name

"""Every scenario is listed, described, has the verdict it expects, stands in the README, and says what it needs."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any, get_args

import pytest
from click.testing import CliRunner

from reprocheck.cli.list import command, scenarios_in
from reprocheck.config import script_block
from reprocheck.model import Verdict
from reprocheck.plan.target import parse_target

ROOT = Path(__file__).parents[2]
SCENARIOS = {Path(row["target"]).stem: row for row in scenarios_in(ROOT / "scenarios")}
# Beside the scenarios lie what they share, what builds the toolbox's wheels, and tests for pytest.
HELPERS = {"battery", "conftest", "kit", "test_tokenizer_memory"}
DECIDED = get_args(Verdict)


def file_of(row: dict[str, Any]) -> Path:
    path = Path(row["target"])
    return path / "workload.py" if path.is_dir() else path


def test_nothing_in_the_folder_is_forgotten() -> None:
    files = {path.stem for path in (ROOT / "scenarios").glob("*.py")}
    folders = {path.parent.name for path in (ROOT / "scenarios").glob("*/workload.py")}

    assert set(SCENARIOS) == (files | folders) - HELPERS
    assert len(SCENARIOS) == 15


@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_each_says_what_it_shows_expects_and_needs(name: str) -> None:
    row = SCENARIOS[name]
    document = ast.get_docstring(ast.parse(file_of(row).read_text(encoding="utf-8")))

    assert row["expect"] in DECIDED
    assert 40 < len(row["story"]) < 130
    assert len(row["imports"]) >= 2
    assert document is not None
    assert "What it shows:" in document or document.count(".") > 3
    assert "What to expect:" in document
    assert "What it needs:" in document or "needs:" in document
    block = script_block(file_of(row))
    assert block is not None
    assert block.dependencies, "PEP 723: what must be installed"


@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_each_is_a_target(name: str) -> None:
    target = parse_target(SCENARIOS[name]["target"], ROOT)

    assert target.path == str(file_of(SCENARIOS[name]))
    assert target.name == "run"


def test_the_readmes_table_is_what_their_metadata_says() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z_]+)` \| ([^|]+) \| `([a-z-]+)` \| ([^|]+) \|$", readme, re.MULTILINE)

    assert {name: (imports, expect, story) for name, imports, expect, story in rows} == {
        name: (", ".join(row["imports"]), row["expect"], row["story"]) for name, row in SCENARIOS.items()
    }


def test_list_shows_them_with_their_stories() -> None:
    done = CliRunner().invoke(command, ["scenarios", "--scenarios", str(ROOT / "scenarios")])

    assert done.exit_code == 0, done.output
    for name, row in SCENARIOS.items():
        assert name in done.output
        assert row["story"] in done.output
        assert f"expect {row['expect']}" in done.output

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from reprocheck.config import ScriptBlock, script_block
from reprocheck.config.pep723 import _BLOCK
from reprocheck.errors import UsageError


def read(tmp_path: Path, text: str) -> ScriptBlock | None:
    path = tmp_path / "script.py"
    path.write_text(text, encoding="utf-8", newline="")
    return script_block(path)


def test_a_block_gives_dependencies_python_and_our_table(tmp_path: Path) -> None:
    text = """#!/usr/bin/env python3
\"\"\"A script.\"\"\"
# /// script
# requires-python = ">=3.11"
# dependencies = [
#   "torch==2.13.0",  # a comment in the comment
#   "cupy-cuda12x",
# ]
#
# [tool.reprocheck]
# imports = ["cupy", "torch"]
# [tool.other]
# x = 1
# ///

import torch
"""
    assert read(tmp_path, text) == ScriptBlock(
        dependencies=("torch==2.13.0", "cupy-cuda12x"),
        requires_python=">=3.11",
        options={"imports": ["cupy", "torch"]},
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "import torch\n",
        "# /// script\n# dependencies = []\n",  # unterminated: the specification says to ignore it
        "# /// script\n# dependencies = []\n\n# ///\n",  # the blank line is no comment, so the block ends unclosed
        "# /// script\nx = 1\n# ///\n",
        "# /// script\n# ///\n",  # nothing between the lines is no block either
        "# /// script\n#dependencies = []\n# ///\n",  # content starts with `# `
        "  # /// script\n  # x = 1\n  # ///\n",  # indented
        "# ///script\n# x = 1\n# ///\n",
        "# /// script \n# x = 1\n# ///\n",
        "# /// pyproject\n# x = 1\n# ///\n",  # another type
    ],
)
def test_what_is_no_script_block_is_ignored(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, text) is None


def test_an_empty_block_is_a_block(tmp_path: Path) -> None:
    assert read(tmp_path, "# /// script\n#\n# ///\n") == ScriptBlock()


def test_the_last_closing_line_of_a_run_of_comments_closes(tmp_path: Path) -> None:
    text = '# /// script\n# dependencies = ["""\n# ///\n# """]\n# ///\n'
    assert read(tmp_path, text) == ScriptBlock(dependencies=("///\n",))


def test_a_block_may_end_the_file_without_a_newline(tmp_path: Path) -> None:
    assert read(tmp_path, '# /// script\n# dependencies = ["a"]\n# ///') == ScriptBlock(dependencies=("a",))


def test_windows_line_ends_are_fine(tmp_path: Path) -> None:
    assert read(tmp_path, '# /// script\r\n# dependencies = ["a"]\r\n# ///\r\n') == ScriptBlock(dependencies=("a",))


def test_unicode_line_separators_are_content(tmp_path: Path) -> None:
    found = read(tmp_path, '# /// script\n# [tool.reprocheck]\n# story = "one\u2028two"\n# ///\n')
    assert found == ScriptBlock(options={"story": "one\u2028two"})


def test_other_types_of_blocks_stand_beside_it(tmp_path: Path) -> None:
    text = '# /// other\n# not toml\n# ///\n\n# /// script\n# dependencies = ["a"]\n# ///\n'
    assert read(tmp_path, text) == ScriptBlock(dependencies=("a",))


def test_the_encoding_the_file_declares_holds(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_bytes(
        '# coding: latin-1\n# /// script\n# [tool.reprocheck]\n# story = "grün"\n# ///\n'.encode("latin-1")
    )
    assert script_block(path) == ScriptBlock(options={"story": "grün"})
    path.write_bytes(b'\xef\xbb\xbf# /// script\n# dependencies = ["a"]\n# ///\n')
    assert script_block(path) == ScriptBlock(dependencies=("a",))


BLOCK = "# /// script\n# dependencies = []\n# ///\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{BLOCK}\n{BLOCK}", "has 2 `# /// script` blocks: keep one."),
        ("# /// script\n# dependencies = [\n# ///\n", "is not valid TOML ("),
        ("# /// script\n# dependencies = 'a'\n# ///\n", "`dependencies` in the block of"),
        ("# /// script\n# dependencies = [1]\n# ///\n", "`dependencies` in the block of"),
        ("# /// script\n# requires-python = 3.11\n# ///\n", "`requires-python` in the block of"),
        ("# /// script\n# tool = 1\n# ///\n", "`tool.reprocheck` in"),
        ("# /// script\n# tool.reprocheck = 1\n# ///\n", "`tool.reprocheck` in"),
    ],
)
def test_wrong_blocks_are_told_with_the_file(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UsageError) as error:
        read(tmp_path, text)
    assert said in str(error.value)
    assert str(tmp_path / "script.py") in str(error.value)
    assert "\n" not in str(error.value)


def test_files_that_cant_be_read_are_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        script_block(tmp_path / "none.py")
    path = tmp_path / "bad.py"
    for content in (b"x = '\xff'", b"# coding: nonsense\n"):
        path.write_bytes(content)
        with pytest.raises(UsageError, match="not text in the encoding it declares"):
            script_block(path)


LINES = st.lists(st.sampled_from(["# /// script", "# ///", "#", "# a = 1", "# b = 2", "", "x", "#c = 3"]), max_size=12)


@settings(max_examples=200, deadline=None)
@given(LINES)
def test_blocks_are_found_as_the_specification_words_it(lines: list[str]) -> None:
    """Against a line-by-line reading of the specification's text instead of its expression."""
    found = [match["content"].splitlines() for match in _BLOCK.finditer("\n".join(lines))]
    expected, i = [], 0
    while i < len(lines):
        if re.fullmatch(r"# /// script", lines[i]):
            end = i + 1
            while end < len(lines) and (lines[end] == "#" or lines[end].startswith("# ")):
                end += 1
            closing = [j for j in range(i + 2, end) if lines[j] == "# ///"]
            if closing:
                expected.append(lines[i + 1 : closing[-1]])
                i = closing[-1]
        i += 1
    assert found == expected

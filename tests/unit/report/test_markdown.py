"""Markdown: what it says, and that nothing a workload names becomes markup."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st
from markdown_it import MarkdownIt

from reprocheck.model import NotCompared, Remedy
from reprocheck.report.markdown import code, prose, studies_markdown, study_markdown
from reprocheck.report.plain import visible
from tests.samples import HOSTILE, full_study, make_run, tiny_study

RENDERER = MarkdownIt("commonmark").enable("table")


def inline(text: str) -> list[tuple[str, str]]:
    """Type and content of the inline tokens of one paragraph."""
    tokens = RENDERER.parse(text)
    assert [token.type for token in tokens] == ["paragraph_open", "inline", "paragraph_close"]
    return [(token.type, token.content) for token in tokens[1].children or []]


@given(st.text(alphabet=st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=80))
def test_a_name_is_one_code_span_whatever_is_in_it(name: str) -> None:
    assert inline(f"x {code(name)} y") == [
        ("text", "x "),
        ("code_inline", visible(name).replace("|", "\\|")),
        ("text", " y"),
    ]


@given(st.lists(st.text(alphabet="ab|`<>*_[]()!#@&\\", max_size=20), min_size=2, max_size=2))
def test_names_never_break_a_table(names: list[str]) -> None:
    table = f"| a | b |\n|---|---|\n| {code(names[0])} | {code(names[1])} |"

    cells = [token for token in RENDERER.parse(table) if token.type == "td_open"]

    assert len(cells) == 2


@given(st.text(alphabet="abc `<>*_[]()!#@&\\:/\n|~{}", max_size=60))
def test_a_sentence_has_no_markup_but_code(text: str) -> None:
    inlines = [child for token in RENDERER.parse("x " + prose(text)) for child in token.children or []]

    assert {child.type for child in inlines} <= {"text", "code_inline", "text_special", "softbreak"}
    told = "".join(child.content for child in inlines if child.type != "code_inline")
    assert "@" not in told.replace("@\u2060", "")


def test_it_says_what_a_person_asks(tmp_path: Path) -> None:
    text = study_markdown(full_study(tmp_path / "run"))

    wanted = [
        "### order-dependent: 3 of 4 outputs differ",
        "**What to do:** set `OMP_NUM_THREADS=1` before Python starts (tried: all 6 orders agree)",
        "| `mkl,toolbox,torch` | B | 3 |",
        "**Rule:** `toolbox` before `torch` gives group B",
        "**Where it starts**",
        "**Why**",
        "| `step.weights` | `float32[96, 64]` | 401 of 6,144 | 16 |",
        "Repeat it:",
    ]
    places = [text.find(part) for part in wanted]
    assert -1 not in places, wanted[places.index(-1)]
    assert places == sorted(places), "in the order in which it is asked"


def test_several_studies_have_a_table_of_contents(tmp_path: Path) -> None:
    text = studies_markdown([tiny_study(workload="fine.py"), full_study(tmp_path / "run")])

    assert text.startswith("## Import order: 1 of 2 workloads agree")
    assert text.index("`work.py::run`") < text.index("`fine.py`"), "the worst first"
    assert text.count("### ") == 1, "what agrees is not told at length"


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_names_stay_text(tmp_path: Path, hostile: str) -> None:
    one, two = np.arange(4.0), np.arange(4.0) * 3
    study = make_run(
        tmp_path / "run",
        {("a", "b"): [{hostile: one}], ("b", "a"): [{hostile: two}]},
        study={
            "workload": hostile,
            "remedy": Remedy(text=hostile, agrees=True, snippets={"shell": hostile + "\n```\n# out"}),
            "not_compared": (NotCompared(name=hostile, reason=hostile),),
        },
    )

    text = study_markdown(study)

    assert len(text) < 8000
    tokens = RENDERER.parse(text)
    assert not [
        t for t in tokens if t.type == "html_block" and "details" not in t.content and "summary" not in t.content
    ]
    kinds = {child.type for token in tokens for child in token.children or []}
    assert not kinds & {"link_open", "image"}
    for token in tokens:
        for child in token.children or []:
            if child.type == "html_inline":
                assert child.content in ("<summary>", "</summary>"), child.content

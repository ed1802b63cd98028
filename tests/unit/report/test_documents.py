"""One name a format; pages as files, with an index over several."""

from __future__ import annotations

import re
from pathlib import Path

import jsonschema
import msgspec
import numpy as np
import pytest

from reprocheck.errors import StoreError
from reprocheck.report.documents import FORMATS, document, write_html
from reprocheck.report.evidence import Evidence
from reprocheck.report.json import schema
from tests.samples import full_study, make_run, tiny_study


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("count", [1, 2])
def test_every_format_renders_one_study_and_several(tmp_path: Path, format_: str, count: int) -> None:
    evidence = [Evidence.of(full_study(tmp_path / "run")), Evidence(tiny_study())][:count]

    text = document(evidence, format_)

    assert "order-dependent" in text
    assert text.endswith("\n") or format_ == "html"


def test_json_is_what_its_schema_says(tmp_path: Path) -> None:
    text = document([Evidence.of(full_study(tmp_path / "run"))], "json")

    jsonschema.Draft202012Validator(schema()).validate(msgspec.json.decode(text))


def test_one_study_is_one_file(tmp_path: Path) -> None:
    written = write_html([Evidence.of(full_study(tmp_path / "run"))], tmp_path / "new/page.html")

    assert written == [tmp_path / "new/page.html"]
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["page.html"]


def test_several_are_an_index_with_links_that_lead_somewhere(tmp_path: Path) -> None:
    studies = [tiny_study(workload="fine.py"), full_study(tmp_path / "run")]
    file = tmp_path / "a b: index.html"

    written = write_html([Evidence.of(study) for study in studies], file)

    page = file.read_text()
    links = re.findall(r'href="([^#"]+)"', page)
    assert links == ["./a%20b%3A%20index.pages/002.html", "./a%20b%3A%20index.pages/001.html"], "the worst first"
    assert [path.name for path in written] == ["a b: index.html", "001.html", "002.html"]
    assert all(path.is_file() for path in written)
    assert "1 of 2 studies agree" in page


def test_an_index_shows_history(tmp_path: Path) -> None:
    runs = [
        make_run(
            tmp_path / str(day),
            {("a", "b"): [{"x": np.zeros(1)}], ("b", "a"): [{"x": np.full(1, float(day > 2))}]},
            study={"started": f"2026-11-0{day}T10:00:00+0000"},
        )
        for day in range(1, 6)
    ]

    write_html([Evidence.of(runs[-1])], tmp_path / "index.html", history=runs)

    page = (tmp_path / "index.html").read_text()
    assert "order-dependent since 2026-11-03 10:00, identical before" in page
    assert "<svg" in page


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(StoreError, match=r"cannot write `.*file/x\.html`"):
        write_html([Evidence(tiny_study())], tmp_path / "file/x.html")

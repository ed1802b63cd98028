"""`reprocheck report`, `diff` and `--output` as users type them, on runs of real interpreters."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import msgspec
import pytest

from tests.conftest import Lab

ROOT = Path(__file__).parents[3]


def reprocheck(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "reprocheck", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the run folders `good` and `bad`, and with what `run` itself wrote about the bad one."""
    lab = Lab(tmp_path_factory.mktemp("lab"))
    lab.write(
        state="value = None",
        a="import state\nif state.value is None: state.value = 1.0",
        b="import os, state\nif state.value is None: state.value = 1.5; os.environ['OMP_NUM_THREADS'] = '1'",
        work="import a, b, state\n\ndef run(): return {'x': [state.value] * 2, 'same': 1}\n",
        fine="import a, b\n\ndef run(): return 1.0\n",
    )
    outputs = [
        word for name in ("html", "sarif", "junit", "markdown") for word in ("--output", f"{name}:out/run.{name}")
    ]
    bad = reprocheck(
        lab.folder, "run", "work.py::run", "--imports", "a,b", "--no-explain", "--out", "runs/bad", *outputs
    )
    good = reprocheck(lab.folder, "run", "fine.py::run", "--imports", "a,b", "--no-explain", "--out", "runs/good")
    assert (bad.returncode, good.returncode) == (1, 0), bad.stderr + good.stderr
    return lab.folder


def test_run_writes_every_format_asked_for(folder: Path) -> None:
    html = (folder / "out/run.html").read_text(encoding="utf-8")
    assert "<code>b,a</code>" in html
    assert 'id="loading"' in html, "drawn from the run folder"
    assert ET.parse(folder / "out/run.junit").getroot().get("failures") == "1"
    results = msgspec.json.decode((folder / "out/run.sarif").read_bytes())["runs"][0]["results"]
    place = results[0]["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("work.py", 3)
    assert "### order-dependent" in (folder / "out/run.markdown").read_text(encoding="utf-8")


def test_a_stored_run_is_rendered_again(folder: Path) -> None:
    done = reprocheck(folder, "report", "runs/bad", "--html", "again.html")

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("order-dependent: 2 of 3 outputs differ")
    assert "wrote again.html" in done.stderr
    page = (folder / "again.html").read_text(encoding="utf-8")
    assert "set at <code>" in page, "the line that set the variable"
    assert "OMP_NUM_THREADS" in page.replace("<wbr>", "")


def test_a_folder_of_runs_becomes_an_index(folder: Path) -> None:
    done = reprocheck(folder, "report", "runs", "--html", "index.html", "--history", "runs", "--format", "json")

    assert done.returncode == 0, done.stderr
    assert [study["verdict"] for study in msgspec.json.decode(done.stdout)] == ["order-dependent", "identical"]
    page = (folder / "index.html").read_text(encoding="utf-8")
    assert page.index("order-dependent</span>") < page.index("identical</span>")
    assert sorted(path.name for path in (folder / "index.pages").iterdir()) == ["001.html", "002.html"]


def test_a_redacted_report_names_no_folder(folder: Path) -> None:
    done = reprocheck(folder, "report", "runs/bad", "--redact", "--html", "redacted.html", "--format", "markdown")

    page = (folder / "redacted.html").read_text(encoding="utf-8").replace("<wbr>", "")
    for text in (done.stdout, page):
        assert str(folder) not in text
        assert "work.py" in text

    done = reprocheck(folder, "report", "runs/bad", "--redact-names", "--format", "json")

    assert done.returncode == 0, done.stderr
    assert "work.py" not in done.stdout


def test_a_github_job_gets_annotations_and_a_summary(folder: Path) -> None:
    (folder / "work.py").touch()

    done = reprocheck(
        folder,
        "report",
        "runs/bad",
        "--format",
        "github",
        GITHUB_WORKSPACE=str(folder),
        GITHUB_STEP_SUMMARY=str(folder / "summary.md"),
    )

    assert done.stdout.startswith("::error file=work.py,line=3,title=reprocheck%3A order-dependent::")
    assert (folder / "summary.md").read_text().startswith("### order-dependent")


def test_diff_draws_too(folder: Path) -> None:
    records = sorted((folder / "runs/bad/records").iterdir())[:2]

    done = reprocheck(folder, "diff", *map(str, records), "--html", "diff.html")

    assert done.returncode == 1, done.stderr
    page = (folder / "diff.html").read_text(encoding="utf-8")
    assert "2 of 3 outputs differ" in page


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["gone"], "there is no `gone`"),
        (["runs/bad", "--output", "pdf:x"], "with a format out of text, json, markdown, junit, sarif, github, html"),
        (["runs/bad", "--html", "work.py/x.html"], "cannot write `work.py/x.html`"),
    ],
)
def test_bad_input_is_one_sentence(folder: Path, arguments: list[str], told: str) -> None:
    done = reprocheck(folder, "report", *arguments)

    assert done.returncode == 2
    assert told in done.stderr
    assert "Traceback" not in done.stderr

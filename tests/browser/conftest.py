"""The pages to look at, and the browser to look with. One browser serves all tests."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from reprocheck.compare.arrays import compare_maps
from reprocheck.compare.source import Source
from reprocheck.model import NotCompared, Remedy, Study, Tolerance
from reprocheck.report.documents import write_html, write_page
from reprocheck.report.evidence import Evidence
from reprocheck.report.html.comparison import diff_html
from reprocheck.report.redact import Redaction
from tests.browser.chromium import Chromium, Page, find_chromium
from tests.samples import HOSTILE, full_study, make_run, tiny_study

AXE = "axe-core@4"

PAGES = ("full", "redacted", "hostile", "tiny", "index", "diff")


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A page of every kind."""
    folder = tmp_path_factory.mktemp("pages")
    full = full_study(folder / "run")
    evidence = {
        "full": Evidence.of(full),
        "redacted": Evidence.of(full, redaction=Redaction(full, names=True)),
        "hostile": Evidence.of(_hostile(folder)),
        "tiny": Evidence(tiny_study()),
    }
    for name, item in evidence.items():
        write_html([item], folder / f"{name}.html")
    past = [
        tiny_study(workload="work.py::run", subjects=full.subjects, started=f"2026-11-{day:02}T10:00:00+0000")
        for day in range(1, 9)
    ]
    write_html(list(evidence.values()), folder / "index.html", history=past)
    rng = np.random.default_rng(3)
    reference = {"matrix": rng.normal(size=(300, 70)), "vector": rng.normal(size=500), "same": np.ones(3)}
    other = {**reference, "matrix": reference["matrix"] * (1 + 1e-12), "vector": reference["vector"] + 1e-9}
    sources = tuple({name: Source.from_numpy(value) for name, value in side.items()} for side in (other, reference))
    found = compare_maps(sources[0], sources[1], lambda _: Tolerance())
    write_page(folder / "diff.html", diff_html(found, ("a.npz", "b.npz"), (sources[0], sources[1])))
    return {name: folder / f"{name}.html" for name in PAGES}


def _hostile(folder: Path) -> Study:
    one, two = np.arange(6.0), np.arange(6.0) * 3
    return make_run(
        folder / "hostile",
        {("a", HOSTILE[0]): [dict.fromkeys(HOSTILE, one)], (HOSTILE[0], "a"): [dict.fromkeys(HOSTILE, two)]},
        study={
            "workload": HOSTILE[-1],
            "notes": HOSTILE,
            "not_compared": tuple(NotCompared(name=name, reason=name) for name in HOSTILE),
            "remedy": Remedy(text=HOSTILE[1], agrees=True, snippets=dict.fromkeys(HOSTILE, HOSTILE[2])),
        },
    )


@pytest.fixture(scope="session")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A page of a running browser."""
    program = find_chromium()
    if program is None:
        pytest.skip("no Chromium: `apt-get install chromium`, or name one with CHROMIUM")
    with Chromium(program, tmp_path_factory.mktemp("profile")) as chromium:
        yield chromium.page()


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The source of axe-core, fetched by npm."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("no npm, with which axe-core is fetched")
    folder = tmp_path_factory.mktemp("axe")
    done = subprocess.run([npm, "pack", "--silent", AXE], cwd=folder, capture_output=True, text=True, check=False)
    archive = next(folder.glob("axe-core-*.tgz"), None)
    if archive is None:
        pytest.skip(f"npm could not fetch {AXE}: {done.stderr.strip()[-300:]}")
    with tarfile.open(archive) as file:
        member = file.extractfile("package/axe.min.js")
        assert member is not None
        return member.read().decode()

"""What continuous integration reads: JUnit properties, GitHub's annotations and job summary."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plugin.conftest import Inner

pytest_plugins = ["pytester"]


@pytest.mark.parametrize("workers", [None, 2])
def test_github(inner: Inner, monkeypatch: pytest.MonkeyPatch, workers: int | None) -> None:
    summary = Path(inner.path / "summary.md")
    summary.write_text("# earlier\n")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    inner.write(
        test_it="""
            import pytest
            from reprocheck import DivergenceError

            @pytest.mark.parametrize("name", ["a|b"])
            def test_same(reprocheck, name):
                reprocheck("work.py::same", imports=["a", "b"], repeat=1, observer=False).assert_identical()

            @pytest.mark.xfail(raises=DivergenceError)
            def test_known(reprocheck):
                reprocheck("work.py::differs", imports=["a", "b"]).assert_identical()

            def test_differs(reprocheck):
                reprocheck("work.py::differs", imports=["a", "b"]).assert_identical()
        """
    )

    result = inner.run(workers=workers)

    result.assert_outcomes(passed=1, xfailed=1, failed=1)
    annotations = [line for line in result.outlines if line.startswith("::")]
    assert len(annotations) == 1, "what is expected is no error"
    assert annotations[0].startswith(
        "::error file=test_it.py,line=13,title=reprocheck%3A order-dependent::order-dependent: 1 of 1 output"
    )
    lines = summary.read_text().splitlines()
    assert lines[:5] == ["# earlier", "### Import order checks", "", "| test | outcome | study |", "|---|---|---|"]
    assert [line.split(" | ")[:2] for line in lines[5:8]] == [
        ["| test_it.py::test_differs", "failed"],
        ["| test_it.py::test_known", "xfailed"],
        ["| test_it.py::test_same[a\\|b]", "passed"],
    ]


@pytest.mark.parametrize("workers", [None, 2])
def test_one_page_for_all_checks(inner: Inner, workers: int | None) -> None:
    pytest.importorskip("jinja2")
    inner.write(
        test_it="""
            import pytest

            @pytest.mark.parametrize("name", ["same", "differs", "<script>"])
            def test_it(reprocheck, name):
                target = "differs" if name == "differs" else "same"
                reprocheck(f"work.py::{target}", imports=["a", "b"]).assert_identical()
        """
    )

    result = inner.run("--reprocheck-html=pages/out.html", workers=workers)

    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["wrote */pages/out.html"])
    page = (inner.path / "pages" / "out.html").read_text()
    assert page.count("<iframe") == 3
    assert page.index("test_it.py::test_it[differs]") < page.index("test_it.py::test_it[same]"), "divergences first"
    assert "[&lt;script&gt;]" in page
    assert "<script" not in page, "scripts lie in the frames, escaped"
    assert "http-equiv" in page, "each frame has its policy"


def test_a_suite_without_checks_writes_no_summary(inner: Inner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(inner.path / "summary.md"))
    inner.write(test_it="def test_it(): ...")

    inner.run().assert_outcomes(passed=1)

    assert not (inner.path / "summary.md").exists()

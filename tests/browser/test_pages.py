"""Reports in a real browser: no complaints, nothing sticks out, usable with and without JavaScript, accessible."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.browser.chromium import Page
from tests.browser.conftest import PAGES

pytestmark = pytest.mark.browser

WIDTHS = (400, 1600)


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no-scripts"])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_loads_without_complaints_and_fits(
    pages: dict[str, Path], page: Page, tmp_path: Path, name: str, width: int, dark: bool, scripts: bool
) -> None:
    page.open(pages[name], width=width, dark=dark, scripts=scripts)

    assert page.complaints() == []
    size = page.call("Page.getLayoutMetrics")["cssContentSize"]
    assert size["width"] <= width, "nothing sticks out to the right"
    page.screenshot(tmp_path / "page.png")
    assert (tmp_path / "page.png").stat().st_size > 4000


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing_serious(
    pages: dict[str, Path], page: Page, axe: str, name: str, width: int, dark: bool
) -> None:
    page.open(pages[name], width=width, dark=dark)
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    page.evaluate(axe)

    report = page.evaluate("axe.run().then(found => JSON.stringify(found.violations))")

    found = [
        (item["id"], item["impact"], item["nodes"][0]["html"][:200], item["nodes"][0].get("failureSummary", "")[:300])
        for item in json.loads(report)
        if item["impact"] in ("serious", "critical")
    ]
    assert found == []


def test_the_policy_is_in_force(pages: dict[str, Path], page: Page, tmp_path: Path) -> None:
    text = pages["full"].read_text(encoding="utf-8")
    broken = tmp_path / "broken.html"
    broken.write_text(text.replace("</main>", "<script>window.ran = 1</script><p style='color:red'>x</p></main>"))

    page.open(broken)

    assert page.evaluate("window.ran") is None
    assert len([told for told in page.complaints() if "Content Security Policy" in told]) == 2


def test_hostile_names_do_nothing(pages: dict[str, Path], page: Page) -> None:
    page.open(pages["hostile"])

    words = page.evaluate("document.body.innerText")
    assert "<script>alert(1)</script>" in words
    assert "\\u202egnp.exe" in words
    assert page.evaluate("document.scripts.length") == 1
    assert page.evaluate("document.images.length") == 0


def test_rows_are_filtered(pages: dict[str, Path], page: Page) -> None:
    page.open(pages["hostile"])
    shown = "[...document.querySelectorAll('#outputs tbody tr')].filter(row => !row.hidden).length"
    everything = page.evaluate(shown)

    page.evaluate(
        "(() => { const box = document.querySelector('[data-filter=outputs]'); box.value = 'JAVASCRIPT alert';"
        " box.dispatchEvent(new Event('input')); })()"
    )

    assert everything == 9
    assert page.evaluate(shown) == 1
    assert page.evaluate(
        "document.querySelector('#outputs').closest('section').querySelector('.count').textContent"
    ) == ("1 of 9")


def test_columns_are_sorted_by_their_heads(pages: dict[str, Path], page: Page) -> None:
    page.open(pages["full"])
    names = "[...document.querySelectorAll('#outputs tbody th')].map(head => head.innerText)"
    click = "[...document.querySelectorAll('#outputs thead button')].find(one => one.innerText == 'max ULP').click()"

    page.evaluate(click)
    assert page.evaluate(names) == ["step.loss", "cube", "step.weights"]
    assert page.evaluate("document.querySelector('[aria-sort]').ariaSort") == "descending"

    page.evaluate(click)
    assert page.evaluate(names) == ["step.weights", "cube", "step.loss"]


def test_commands_are_copied(pages: dict[str, Path], page: Page) -> None:
    page.open(pages["full"])
    button = "document.querySelector('[data-copy=command-1]')"

    assert page.evaluate(f"{button}.hidden") is False
    page.evaluate(f"{button}.click()")
    page.evaluate("new Promise(done => setTimeout(done, 200))")

    # Headless, nobody can allow the clipboard: then the command is selected, for Ctrl-C.
    assert page.evaluate(f"{button}.textContent") in ("Copied", "Selected")


def test_without_scripts_nothing_that_needs_them_shows(pages: dict[str, Path], page: Page) -> None:
    page.open(pages["full"], scripts=False)
    text = page.call("DOM.getDocument", depth=-1)

    def buttons(node: dict[str, object]) -> list[dict[str, object]]:
        children = [item for child in node.get("children", []) for item in buttons(child)]  # type: ignore[attr-defined]
        return ([node] if node.get("nodeName") in ("BUTTON", "INPUT") else []) + children

    assert all("hidden" in node["attributes"] or node["nodeName"] == "INPUT" for node in buttons(text["root"]))  # type: ignore[operator]


def test_colours_follow_the_scheme(pages: dict[str, Path], page: Page) -> None:
    shades = []
    for dark in (False, True):
        page.open(pages["full"], dark=dark)
        shades.append(
            page.evaluate(
                "[getComputedStyle(document.body).backgroundColor,"
                " getComputedStyle(document.querySelector('svg text')).fill]"
            )
        )

    (light_back, light_ink), (dark_back, dark_ink) = shades
    assert light_back != dark_back
    assert light_ink != dark_ink


def test_links_of_an_index_lead_to_pages(pages: dict[str, Path], page: Page) -> None:
    page.open(pages["index"])

    links = page.evaluate("[...document.querySelectorAll('#index a')].map(link => link.href)")

    assert len(links) == 4
    for link in links:
        assert Path(link.removeprefix("file://")).is_file()

"""A reader of pages that knows what a page of ours may hold."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest

VOID = {"meta", "input", "wbr", "img", "br", "link", "hr"}
TAGS = {
    *(
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "script",
        "header",
        "main",
        "footer",
        "nav",
        "section",
        "article",
    ),
    *(
        "div",
        "p",
        "h1",
        "h2",
        "h3",
        "span",
        "a",
        "ul",
        "li",
        "dl",
        "dt",
        "dd",
        "table",
        "caption",
        "thead",
        "tbody",
        "tr",
    ),
    *(
        "th",
        "td",
        "code",
        "pre",
        "b",
        "em",
        "strong",
        "mark",
        "details",
        "summary",
        "figure",
        "figcaption",
        "bdi",
        "abbr",
    ),
    *("wbr", "label", "input", "button", "svg", "g", "path", "use", "defs", "text", "clippath", "rect", "image"),
}


class Page(HTMLParser):
    """Everything that is in a page; fails on what must not be there."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.text: list[str] = []
        self.scripts: list[str] = []
        self.styles: list[str] = []
        self.policy = ""
        self.ids: list[str] = []
        self.links: list[str] = []
        self.headings: list[int] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == [], "everything that was opened is closed"
        assert len(self.ids) == len(set(self.ids)), "ids are unique"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS, f"<{tag}> came from somewhere else"
        for name, value in attrs:
            assert not name.startswith("on"), f"{name}={value!r}"
            assert name != "style", "the policy forbids inline styles"
            if name in ("href", "src", "xlink:href"):
                assert re.match(r"(?:#|\./|data:image/png;base64,)", value or ""), value
            if name == "id":
                self.ids.append(value or "")
            if tag == "a" and name == "href":
                self.links.append(value or "")
        found = dict(attrs)
        if found.get("http-equiv") == "Content-Security-Policy":
            self.policy = found["content"] or ""
        if re.fullmatch(r"h\d", tag):
            self.headings.append(int(tag[1]))
        if tag in ("td", "th", "li", "dt", "dd", "p"):
            self.text.append(" ")
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open, f"</{tag}> closes nothing"
        assert self._open.pop() == tag, tag

    def handle_data(self, data: str) -> None:
        inside = self._open[-1] if self._open else ""
        {"script": self.scripts, "style": self.styles}.get(inside, self.text).append(data)

    @property
    def words(self) -> str:
        """What a person reads."""
        return "".join(self.text)


def checked(text: str) -> Page:
    """A page, with its policy and size checked too."""
    page = Page(text)
    assert len(text.encode()) <= 1_000_000
    assert len(page.scripts) == len(page.styles) == 1
    for kind, content in (("script", page.scripts[0]), ("style", page.styles[0])):
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in page.policy
    assert page.policy.startswith("default-src 'none';")
    assert "unsafe" not in page.policy
    assert "http:" not in text.replace("http-equiv", "")
    assert "https:" not in text
    return page


@pytest.fixture(name="checked")
def checked_fixture() -> object:
    return checked

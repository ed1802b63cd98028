"""Text that others wrote is shown whole, in its order, and bounded."""

from __future__ import annotations

import unicodedata

from hypothesis import given, strategies as st

from reprocheck.report.plain import clip, one_line, visible


@given(st.text())
def test_nothing_invisible_is_left(text: str) -> None:
    shown = visible(text)

    for character in shown:
        assert character in "\t\n" or unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Zl", "Zp"), hex(
            ord(character)
        )
        assert unicodedata.bidirectional(character) not in ("RLO", "LRO", "RLE", "LRE", "RLI", "LRI", "FSI", "PDI")


@given(st.text(alphabet=st.characters(max_codepoint=0x7E, min_codepoint=0x20)))
def test_plain_text_stays_as_it_is(text: str) -> None:
    assert visible(text) == text


def test_what_cannot_be_seen_is_told_by_number() -> None:
    assert visible("a\u202eb\x00\x1b\ud800\U000e0041") == "a\\u202eb\\x00\\x1b\\ud800\\U000e0041"
    assert visible("数値 é עברית") == "数値 é עברית"


@given(st.text(max_size=400), st.integers(4, 200))
def test_clipped_text_is_bounded_and_says_so(text: str, limit: int) -> None:
    shown = clip(text, limit)

    assert len(shown) <= limit + 30
    assert (shown == text) == (len(text) <= limit)
    if len(text) > limit:
        assert shown.endswith(f"({len(text):,} characters)")


def test_one_line() -> None:
    assert one_line(" a\n b\t\x00 ") == "a b \\x00"

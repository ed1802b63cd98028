from __future__ import annotations

import pytest

from reprocheck.explain.noisy import enough_repeats, noisiest


@pytest.mark.parametrize(
    ("outcomes", "repeats"),
    [
        (list("ABCDEFGHIJ"), 3),
        (list("AABB"), 7),
        (list("AAAB"), 12),
    ],
)
def test_repeats_that_luck_does_not_explain(outcomes: list[str], repeats: int) -> None:
    assert enough_repeats(outcomes) == repeats


def test_the_order_that_differs_most_is_asked() -> None:
    assert noisiest({("a", "b"): ["A", "A", "A"], ("b", "a"): ["A", "B", "C"]}) == ("b", "a")

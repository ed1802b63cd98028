from __future__ import annotations

from reprocheck.explain.noisy import noisiest


def test_the_order_that_differs_most_is_asked() -> None:
    assert noisiest({("a", "b"): ["A", "A", "A"], ("b", "a"): ["A", "B", "C"]}) == ("b", "a")

"""Reading the table of order against version."""

from __future__ import annotations

import pytest

from reprocheck.bisect.factorial import began, read_off, watched
from reprocheck.bisect.records import Cell

TORCH, CUPY = ("torch", "cupy"), ("cupy", "torch")


def table(own: str, first: str, second: str) -> list[Cell]:
    """Letters of (older, newer): nothing forced, the older version's order first, the newer one's."""
    return [
        Cell(version=version, order=order, effective_order=order or (), groups=(letters[index],) * 2)
        for order, letters in ((None, own), (TORCH, first), (CUPY, second))
        for index, version in enumerate(("1.6", "1.7"))
    ]


@pytest.mark.parametrize(
    ("own", "first", "second", "verdict", "says"),
    [
        ("AB", "AA", "BB", "order", "1.7, which began to import cupy before torch; with torch, cupy imported first"),
        ("AB", "AB", "AB", "not-order", "the order is not the reason"),
        ("AB", "AA", "AB", "interaction", "act together"),
        ("AB", "AA", "AA", "order-sensitive", "imported before toolbox, it gives 1.6's results"),
        ("AB", "AB", "BB", "imports", "and that is enough"),
        ("AA", "AA", "AA", "no-difference", "still gives 1.6's results"),
        ("AB", "CC", "DD", "interaction", "neither"),
    ],
)
def test_the_table_is_read_off(own: str, first: str, second: str, verdict: str, says: str) -> None:
    found, sentence = read_off(table(own, first, second), "1.6", "1.7", TORCH, CUPY, ["toolbox"])

    assert found == verdict
    assert says in sentence


def test_noise_makes_the_table_unclear() -> None:
    cells = [
        Cell(version="1.6", order=None, effective_order=(), groups=("A", "B")),
        Cell(version="1.7", order=None, effective_order=(), groups=("A", "A")),
    ]

    assert read_off(cells, "1.6", "1.7", TORCH, TORCH, ["toolbox"])[0] == "unclear"


def test_the_shortest_order_that_helps_is_named() -> None:
    cells = [
        *table("AB", "AA", "AA"),
        Cell(version="1.7", order=("torch", "toolbox"), effective_order=(), groups=("A",)),
    ]

    _, sentence = read_off(cells, "1.6", "1.7", TORCH, CUPY, ["toolbox"])

    assert sentence.startswith("1.7 made the results depend on the order: with torch imported before toolbox")


def test_a_version_that_ended_a_dependence_on_the_order() -> None:
    cells = [
        *table("AB", "BB", "BB"),
        Cell(version="1.6", order=("torch", "toolbox"), effective_order=(), groups=("B",)),
    ]

    verdict, sentence = read_off(cells, "1.6", "1.7", TORCH, TORCH, ["toolbox"])

    assert verdict == "order-sensitive"
    assert sentence == (
        "1.7 made an end of results that depend on the order: "
        "with torch imported before toolbox, 1.6 gives 1.7's results"
    )


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        (TORCH, CUPY, "began to import cupy before torch"),
        (("torch",), ("torch", "cupy"), "began to import cupy"),
        (CUPY, ("torch",), "no longer imports cupy"),
        (TORCH, TORCH, ""),
    ],
)
def test_what_a_version_began_to_do(old: tuple[str, ...], new: tuple[str, ...], text: str) -> None:
    assert began(old, new) == text


def test_parts_of_a_library_are_not_watched_on_their_own() -> None:
    sequence = ("os", "cupy", "cupy_backends", "numpy", "torch")

    assert watched(sequence, {"cupy", "cupy_backends", "torch"}) == ("cupy", "torch")

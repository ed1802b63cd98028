from __future__ import annotations

from hypothesis import given, strategies as st

from reprocheck.explain.minimal import smallest


@given(st.integers(0, 20), st.sets(st.integers(0, 19)))
def test_the_necessary_ones_in_their_order(n: int, needed: set[int]) -> None:
    needed = {item for item in needed if item < n}
    asked: list[tuple[int, ...]] = []

    def holds(part: tuple[int, ...]) -> bool:
        asked.append(part)
        return needed <= set(part)

    found = smallest(range(n), holds)

    assert found == tuple(sorted(needed))
    assert len(asked) == len(set(asked)), "each subset is asked about once"
    assert len(asked) <= n * n + 3 * n


@given(st.integers(1, 12), st.data())
def test_one_minimal_for_any_property(n: int, data: st.DataObject) -> None:
    known: dict[tuple[int, ...], bool] = {tuple(range(n)): True}

    def holds(part: tuple[int, ...]) -> bool:
        if part not in known:
            known[part] = data.draw(st.booleans())
        return known[part]

    found = smallest(range(n), holds)

    assert holds(found)
    for item in found if len(found) > 1 else ():
        assert not known.get(tuple(other for other in found if other != item), False)


def test_one_of_many_takes_few_questions() -> None:
    asked = 0

    def holds(part: tuple[int, ...]) -> bool:
        nonlocal asked
        asked += 1
        return 77 in part

    assert smallest(range(128), holds) == (77,)
    assert asked <= 15

from __future__ import annotations

from hypothesis import given, strategies as st

from reprocheck.explain.narrowing import last_point, points_of


@given(st.integers(1, 300), st.data())
def test_the_last_point_that_flips_is_next_to_one_that_does_not(count: int, data: st.DataObject) -> None:
    flips = [True, *(data.draw(st.booleans()) for _ in range(count - 1)), False]
    asked: list[int] = []

    def ask(number: int) -> bool:
        asked.append(number)
        return flips[number]

    found = last_point(count, ask)

    assert flips[found]
    assert not flips[found + 1]
    assert len(asked) <= count.bit_length()


def test_code_after_an_import_belongs_to_the_importer() -> None:
    seen = [
        ("before", "pkg.one", "/pkg/one.py"),
        ("before", "math", None),
        ("past", "math", None),
        ("past", "pkg.one", "/pkg/one.py"),
        ("before", "pkg.two", "/pkg/two.py"),
        ("past", "pkg.two", "/pkg/two.py"),
        ("past", "pkg", "/pkg/__init__.py"),
    ]

    points = points_of("pkg", seen)

    assert [(point.moment, point.module, point.after) for point in points] == [
        ("before:pkg", "pkg", None),
        ("before:pkg.one", "pkg.one", None),
        ("before:math", "math", None),
        ("past:math", "pkg.one", "math"),
        ("past:pkg.one", "pkg", "pkg.one"),
        ("before:pkg.two", "pkg.two", None),
        ("past:pkg.two", "pkg", "pkg.two"),
    ]
    assert points[3].text() == "`pkg.one` (after its import of `math`)"
    assert points[3].file == "/pkg/one.py"


def test_a_single_file_has_one_point() -> None:
    (point,) = points_of("toolbox", [("past", "toolbox", "/toolbox.py")])

    assert (point.moment, point.file, point.text()) == ("before:toolbox", "/toolbox.py", "`toolbox`")

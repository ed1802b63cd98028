"""Maps of differences: every difference is where it belongs, and only there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from reprocheck.compare.arrays import compare
from reprocheck.compare.source import Source
from reprocheck.model import Tolerance
from reprocheck.report.html import maps
from reprocheck.report.html.maps import Map, difference_maps


def found(a: NDArray[Any], b: NDArray[Any]) -> tuple[Map, ...]:
    left, right = Source.from_numpy(a), Source.from_numpy(b)
    return difference_maps(left, right, compare(left, right, Tolerance()))


def test_a_matrix_is_one_image() -> None:
    b = np.ones((4, 6))
    a = b.copy()
    a[1, 2] = np.nextafter(1, 2)
    a[3, 5] = 1 + 2**-50

    [image] = found(a, b)

    expected = np.zeros((4, 6))
    expected[1, 2], expected[3, 5] = 1, 4
    np.testing.assert_array_equal(image.values, expected)
    assert (image.unit, image.shape, image.index, image.thinned) == ("ulp", (4, 6), (), False)


def test_a_vector_is_a_profile_with_the_largest_of_each_stretch() -> None:
    b = np.ones(3000, np.float32)
    a = b.copy()
    a[[10, 11, 2999]] = np.float32(1) + np.finfo(np.float32).eps * np.array([1, 3, 7], np.float32)

    [profile] = found(a, b)

    assert profile.values.shape == (maps.BINS,)
    assert {int(at): profile.values[at] for at in np.flatnonzero(profile.values)} == {1: 3, 299: 7}


@given(st.integers(1, 700), st.integers(1, 500), st.data())
def test_a_cell_lies_where_its_element_does(rows: int, columns: int, data: st.DataObject) -> None:
    if rows == 1 or columns == 1:
        return
    row, column = data.draw(st.integers(0, rows - 1)), data.draw(st.integers(0, columns - 1))
    b = np.zeros((rows, columns), np.int8)
    a = b.copy()
    a[row, column] = 5

    [image] = found(a, b)

    height, width = image.values.shape
    at = np.argwhere(image.values)
    assert at.tolist() == [[row * height // rows, column * width // columns]]
    assert image.values.max() == 5


def test_more_axes_show_the_slices_of_the_worst_and_the_first_difference() -> None:
    b = np.ones((3, 1, 2, 4, 5))
    a = b.copy()
    a[0, 0, 1, 3, 2] = np.nextafter(1, 2)
    a[2, 0, 0, 1, 4] = 1.5

    worst, first = found(a, b)

    assert worst.index == (2, 0)
    assert first.index == (0, 1)
    assert np.argwhere(worst.values).tolist() == [[1, 4]]
    assert np.argwhere(first.values).tolist() == [[3, 2]]


def test_what_changed_class_is_nan_and_wins() -> None:
    b = np.ones((2, 2))
    a = np.array([[1.5, np.nan], [1.0, np.inf]])

    [image] = found(a, b)

    assert np.isnan(image.values).tolist() == [[False, True], [False, True]]


def test_the_sign_of_zero_is_a_difference() -> None:
    [profile] = found(np.array([0.0, -0.0, 1.0]), np.array([0.0, 0.0, 1.0]))

    assert profile.values.tolist() == [0, 0.5, 0]


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (np.float64(1), np.float64(2)),
        (np.ones(3), np.ones(4)),
        (np.ones(3), np.ones(3, np.float32)),
        (np.ones(3), np.ones(3)),
        (np.ones((1, 1)), np.zeros((1, 1))),
    ],
)
def test_what_has_no_map(a: Any, b: Any) -> None:
    assert found(np.asarray(a), np.asarray(b)) == ()


def test_booleans_differ_or_not() -> None:
    [profile] = found(np.array([True, False]), np.array([True, True]))

    assert (profile.unit, profile.values.tolist()) == ("differs", [0, 1])


def test_a_large_array_is_read_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maps, "MOST", 4000)
    b = np.zeros((600, 20))
    a = b.copy()
    a[0], a[1] = 1, 2  # of each band of five rows the first ones are read
    a[4] = 3

    [image] = found(a, b)

    assert image.thinned
    assert image.values[0].max() > 0
    assert image.values[1:].max() == 0

    [profile] = found(a.reshape(-1), b.reshape(-1))
    assert profile.thinned
    assert profile.values[0] > 0


def test_rows_too_long_for_a_picture_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maps, "MOST", 10)

    assert found(np.ones((2, 100)), np.zeros((2, 100))) == ()

from __future__ import annotations

from reprocheck.explain.locate.first_line import find_first_line, noisy_variables
from reprocheck.explain.locate.reading import LineStep, Trace
from tests.unit.locate.conftest import Make


def lines(make: type[Make], *steps: LineStep) -> Trace:
    return make.trace(lines=steps)


def test_no_difference(make: type[Make]) -> None:
    trace = lines(make, make.line(1, x="1"), make.line(2, y="2"))

    assert find_first_line(trace, trace) is None


def test_first_variable_that_differs(make: type[Make]) -> None:
    a = lines(make, make.line(1, x="1"), make.line(2, y="2", z="3"), make.line(3, w="4"))
    b = lines(make, make.line(1, x="1"), make.line(2, y="2", z="9"), make.line(3, w="8"))

    line = find_first_line(a, b)

    assert line is not None
    assert (line.kind, line.a.place.line, line.variable) == ("set", 2, "z")


def test_met_comes_before_set(make: type[Make]) -> None:
    a = lines(make, make.line(1, first={"w": "1"}, y="2"))
    b = lines(make, make.line(1, first={"w": "7"}, y="8"))

    line = find_first_line(a, b)

    assert line is not None
    assert (line.kind, line.variable) == ("met", "w")


def test_changed_in_place(make: type[Make]) -> None:
    a = lines(make, make.line(1, changed={"x": "1"}))
    b = lines(make, make.line(1, changed={"x": "2"}))

    line = find_first_line(a, b)

    assert line is not None
    assert (line.kind, line.variable) == ("changed", "x")


def test_changed_in_one_order_only(make: type[Make]) -> None:
    a = lines(make, make.line(1, x="1"), make.line(3, y="2"))
    b = lines(make, make.line(1, x="1"), make.line(2, changed={"x": "9"}), make.line(3, y="3"))

    line = find_first_line(a, b)

    assert line is not None
    assert (line.kind, line.a.place.line, line.b, line.variable) == ("changed", 2, None, "x")


def test_other_lines(make: type[Make]) -> None:
    a = lines(make, make.line(1, x="1"), make.line(3, y="2"))
    b = lines(make, make.line(1, x="1"), make.line(5, y="2"))

    line = find_first_line(a, b)

    assert line is not None
    assert (line.kind, line.a.place.line) == ("path", 3)


def test_iterations_are_steps_of_their_own(make: type[Make]) -> None:
    a = lines(make, *[make.line(4, loops=((3, n),), x=str(n)) for n in range(1, 6)])
    b = lines(make, *[make.line(4, loops=((3, n),), x=str(n if n < 3 else 10 + n)) for n in range(1, 6)])

    line = find_first_line(a, b)

    assert line is not None
    assert line.a.loops[-1][1] == 3


def test_noise_is_no_evidence(make: type[Make]) -> None:
    a = lines(make, make.line(1, t="1"), make.line(2, x="2"))
    again = lines(make, make.line(1, t="5"), make.line(2, x="2"))
    b = lines(make, make.line(1, t="7"), make.line(2, x="3"))

    line = find_first_line(a, b, noisy_variables(a, again))

    assert line is not None
    assert line.variable == "x"

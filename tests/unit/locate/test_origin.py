"""The origin rule on sequences made by hand."""

from __future__ import annotations

from reprocheck.explain.locate.origin import Found, find_origin
from reprocheck.explain.locate.reading import Operator, Trace
from reprocheck.explain.locate.sequences import Sequences, noisy_operators
from tests.unit.locate.conftest import Make


def found(a: Trace, b: Trace) -> Found:
    origin = find_origin(Sequences(a, b))
    assert origin is not None
    return origin


def test_no_difference(make: type[Make]) -> None:
    trace = make.trace(make.op("mm", "x w", "y"), make.op("add", "y", "z"))

    assert find_origin(Sequences(trace, trace)) is None


def test_equal_inputs_and_unequal_outputs(make: type[Make]) -> None:
    before, after = make.op("exp", "x", "e"), make.op("abs", "e", "q")
    a = make.trace(before, make.op("mm", "e w", "y1"), make.op("add", "y1", "z1"), after)
    b = make.trace(before, make.op("mm", "e w", "y2"), make.op("add", "y2", "z2"), after)

    origin = found(a, b)

    assert (origin.kind, origin.a, origin.b, origin.side, origin.slot) == ("operator", 1, 1, "out", 0)
    assert (origin.inherited, origin.repeated) == (1, 0)


def test_second_output(make: type[Make]) -> None:
    a = make.trace(make.op("max", "x", "v i1"))
    b = make.trace(make.op("max", "x", "v i2"))

    assert found(a, b).slot == 1


def test_the_same_operator_again_parts_by_itself(make: type[Make]) -> None:
    a = make.trace(make.op("mm", "x", "y1"), make.op("mm", "u", "v1"), make.op("add", "v1", "w1"))
    b = make.trace(make.op("mm", "x", "y2"), make.op("mm", "u", "v2"), make.op("add", "v2", "w2"))

    origin = found(a, b)

    assert (origin.a, origin.repeated, origin.inherited) == (0, 1, 1)


def test_a_difference_that_is_lost_again_is_still_the_origin(make: type[Make]) -> None:
    a = make.trace(make.op("mm", "x", "y1"), make.op("sign", "y1", "s"))
    b = make.trace(make.op("mm", "x", "y2"), make.op("sign", "y2", "s"))

    origin = found(a, b)

    assert (origin.kind, origin.inherited) == ("operator", 0)


def test_input_that_nothing_made(make: type[Make]) -> None:
    a = make.trace(make.op("exp", "x", "e"), make.op("mm", "e w1", "y1"))
    b = make.trace(make.op("exp", "x", "e"), make.op("mm", "e w2", "y2"))

    origin = found(a, b)

    assert (origin.kind, origin.side, origin.slot, origin.a) == ("input", "in", 1, 1)


def test_other_arguments(make: type[Make]) -> None:
    a = make.trace(make.op("mul", "x", "y1", arguments="_, 1.0"))
    b = make.trace(make.op("mul", "x", "y2", arguments="_, 2.0"))

    origin = found(a, b)

    assert (origin.kind, origin.slot) == ("input", None)


def test_generator_state(make: type[Make]) -> None:
    a = make.trace(make.op("rand", "", "r1", random="s1"))
    b = make.trace(make.op("rand", "", "r2", random="s2"))
    init = make.trace(make.op("uniform_", "", "r1", random="s1", phase="initialisation"))
    other = make.trace(make.op("uniform_", "", "r2", random="s2", phase="initialisation"))

    assert found(a, b).kind == "random"
    assert found(init, other).kind == "initialisation"


def test_equal_generator_state_and_unequal_draws(make: type[Make]) -> None:
    a = make.trace(make.op("rand", "", "r1", random="s"))
    b = make.trace(make.op("rand", "", "r2", random="s"))

    assert found(a, b).kind == "operator"


def test_data_from_nowhere(make: type[Make]) -> None:
    a = make.trace(make.op("load", "", "d1"), make.op("mm", "d1", "y1"))
    b = make.trace(make.op("load", "", "d2"), make.op("mm", "d2", "y2"))

    origin = found(a, b)

    assert (origin.kind, origin.a, origin.inherited) == ("data", 0, 1)


def test_replaced_operator(make: type[Make]) -> None:
    a = make.trace(make.op("exp", "x", "e"), make.op("addmm", "e w", "y1"), make.op("abs", "y1", "z1"))
    b = make.trace(make.op("exp", "x", "e"), make.op("fused", "e w", "y2"), make.op("abs", "y2", "z2"))

    origin = found(a, b)

    assert (origin.kind, origin.a, origin.b) == ("replaced", 1, 1)


def test_operator_in_one_order_only(make: type[Make]) -> None:
    a = make.trace(make.op("exp", "x", "e"), make.op("abs", "e", "z1"))
    b = make.trace(make.op("exp", "x", "e"), make.op("mul", "e", "e2"), make.op("abs", "e2", "z2"))

    origin = found(a, b)

    assert (origin.kind, origin.a, origin.b) == ("replaced", None, 1)


def test_other_operators_without_effect_are_no_origin(make: type[Make]) -> None:
    a = make.trace(make.op("exp", "x", "e"), make.op("mm", "e", "y1"))
    b = make.trace(make.op("exp", "x", "e"), make.op("isnan", "e", "n"), make.op("mm", "e", "y2"))

    origin = found(a, b)

    assert (origin.kind, origin.a, origin.b) == ("operator", 1, 2)


def test_nothing_comes_after_what_ran_in_one_order_only(make: type[Make]) -> None:
    a = make.trace(make.op("exp", "x", "e"), make.op("mm", "e", "y1"))
    b = make.trace(make.op("exp", "x", "e"), make.op("fused", "e", "y2"))

    origin = found(a, b)

    assert (origin.kind, origin.a, origin.b) == ("replaced", 1, 1)


def test_a_toolbox_call_around_an_operator(make: type[Make]) -> None:
    """The call is recorded after what ran inside it: the operator inside is the place."""
    a = make.trace(make.op("gelu", "x", "g"), make.op("abs", "g", "z1"))
    b = make.trace(
        make.op("gelu", "x", "g"),
        make.op("mul", "g", "g2"),
        make.op("toolbox.gelu", "x", "g2"),
        make.op("abs", "g2", "z2"),
    )

    origin = found(a, b)

    assert (origin.kind, origin.a, origin.b) == ("replaced", None, 1)


def test_inputs_in_another_order(make: type[Make]) -> None:
    a = make.trace(make.op("add", "g h", "s1"))
    b = make.trace(make.op("add", "h g", "s2"))

    origin = found(a, b)

    assert (origin.kind, origin.moved) == ("operator", True)


def test_other_strides_are_told(make: type[Make]) -> None:
    def step(strides: tuple[int, ...] | None, out: str) -> Operator:
        import msgspec

        item = make.op("sum", "x", out)
        return msgspec.structs.replace(item, inputs=(make.fact("x", strides=strides),))

    origin = found(make.trace(step(None, "s1")), make.trace(step((4, 1), "s2")))

    assert (origin.kind, origin.layout) == ("operator", True)


def test_noise_is_no_evidence(make: type[Make]) -> None:
    a = make.trace(make.op("empty_like", "x", "u1"), make.op("mm", "x", "y1"))
    again = make.trace(make.op("empty_like", "x", "u9"), make.op("mm", "x", "y1"))
    b = make.trace(make.op("empty_like", "x", "u2"), make.op("mm", "x", "y2"))

    noisy = noisy_operators(a, again)
    origin = find_origin(Sequences(a, b, (noisy, frozenset())))

    assert noisy == {0}
    assert origin is not None
    assert origin.a == 1


def test_what_runs_now_and_then_is_noise(make: type[Make]) -> None:
    one = make.trace(make.op("exp", "x", "e"), make.op("check", "e", "n"), make.op("abs", "e", "z"))
    again = make.trace(make.op("exp", "x", "e"), make.op("abs", "e", "z"))

    assert noisy_operators(one, again) == {1}
    assert noisy_operators(again, one) == frozenset()

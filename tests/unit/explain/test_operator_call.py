from __future__ import annotations

import pytest

from reprocheck.explain.locate.reading import Fact, Operator
from reprocheck.explain.operator_call import expression

ONE, TWO = (Fact("float32", (2, 3)),), (Fact("float32", (2, 3)), Fact("float32", (3, 2)))


@pytest.mark.parametrize(
    ("name", "inputs", "arguments", "code"),
    [
        ("aten::mm", TWO, "", "torch.ops.aten.mm.default(a[0], a[1])"),
        ("aten::sum.dim_IntList", ONE, "_, [0, 1], True", "torch.ops.aten.sum.dim_IntList(a[0], [0, 1], True)"),
        ("aten::add.Tensor", TWO, "_, _, alpha=2", "torch.ops.aten.add.Tensor(a[0], a[1], alpha=2)"),
        ("aten::gelu", ONE, "_, approximate='tanh'", "torch.ops.aten.gelu.default(a[0], approximate='tanh')"),
        (
            "aten::_to_copy",
            ONE,
            "_, dtype=torch.float64, device=cpu",
            "torch.ops.aten._to_copy.default(a[0], dtype=torch.float64, device=torch.device('cpu'))",
        ),
        ("aten::cat", TWO, "_, 1", "torch.ops.aten.cat.default([a[0], a[1]], 1)"),
        ("numpy @", TWO, "", "a[0] @ a[1]"),
        ("numpy *", ONE, "2.0", "a[0] * 2.0"),
        ("numpy -", ONE, "", "-a[0]"),
        ("numpy.ndarray.sum", ONE, "axis=0", "a[0].sum(axis=0)"),
        ("numpy.linalg.solve", TWO, "", "numpy.linalg.solve(a[0], a[1])"),
        ("toolbox.fast.exp", ONE, "'a, b', n=(1, 2)", "toolbox.fast.exp(a[0], 'a, b', n=(1, 2))"),
    ],
)
def test_the_call_of_a_recorded_operator(name: str, inputs: tuple[Fact, ...], arguments: str, code: str) -> None:
    found = expression(Operator(number=0, name=name, inputs=inputs, outputs=(), arguments=arguments))

    assert found is not None
    assert found[1] == code
    compile(found[1], "call", "eval")


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("aten::index.Tensor", "_, [_, None]"),
        ("aten::mm", "_, _, _"),
        ("torch.compile", ""),
        ("cupy.RawKernel(saxpy)", ""),
        ("numpy +", "1, 2"),
    ],
)
def test_what_a_record_does_not_tell_is_not_guessed(name: str, arguments: str) -> None:
    assert expression(Operator(number=0, name=name, inputs=TWO[:2], outputs=(), arguments=arguments)) is None


def test_where_to_import_it_from() -> None:
    def modules(name: str) -> tuple[str, ...]:
        found = expression(Operator(number=0, name=name, inputs=ONE, outputs=()))
        assert found is not None
        return found[0]

    assert modules("aten::exp") == ("torch",)
    assert modules("numpy.linalg.inv") == ("numpy",)
    assert modules("numpy.ndarray.sum") == ("numpy",)
    assert modules("toolbox.fast.exp") == ("toolbox.fast",)

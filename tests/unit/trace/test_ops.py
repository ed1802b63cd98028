"""The operator trace of torch, in this process."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.trace.conftest import Bench, kinds

torch = pytest.importorskip("torch")


def by_name(records: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [record for record in kinds(records, "op") if record["op"] == name]


def test_inputs_outputs_and_lines(bench: Bench) -> None:
    records = bench.trace(
        """\
        import torch
        def run():
            a = torch.ones(2, 3)
            b = a @ a.t()
            return b
        """,
        "ops",
    )

    (product,) = by_name(records, "aten::mm")
    assert product["s"] == (4, "run")
    assert [fact[:2] for fact in product["in"]] == [["float32", [2, 3]], ["float32", [3, 2]]]
    assert product["in"][1][3] == [1, 3], "strides of what is not contiguous"
    assert len(product["in"][0]) == 3
    (view,) = by_name(records, "aten::t")
    assert view["view"] == 1
    assert view["out"][0][2] is None


def test_in_place_is_seen_before_and_after(bench: Bench) -> None:
    records = bench.trace(
        """\
        import torch
        def run():
            x = torch.ones(3)
            x.add_(1)
            x.add_(1)
            y = x * 1
            return y
        """,
        "ops",
    )

    first, second = by_name(records, "aten::add_.Tensor")
    assert first["in"] != first["out"]
    assert second["in"] == first["out"]
    assert by_name(records, "aten::mul.Tensor")[0]["in"] == second["out"]


def test_out_arguments_are_outputs_only(bench: Bench) -> None:
    records = bench.trace(
        """\
        import torch
        def run():
            x, out = torch.ones(3), torch.empty(3)
            torch.mul(x, x, out=out)
            return out
        """,
        "ops",
    )

    (record,) = by_name(records, "aten::mul.out")
    assert (len(record["in"]), len(record["out"])) == (2, 1)
    assert record["in"] == [record["out"][0]] * 2
    (blank,) = by_name(records, "aten::empty.memory_format")
    assert blank["out"][0][2] is None


def test_several_outputs_and_lists(bench: Bench) -> None:
    records = bench.trace(
        """\
        import torch
        def run():
            x = torch.arange(6.0).reshape(2, 3)
            values, places = x.max(1)
            joined = torch.cat([x, x, values[:, None]], 1)
            torch._foreach_mul_([x, values], 2.0)
            return joined
        """,
        "ops",
    )

    assert len(by_name(records, "aten::max.dim")[0]["out"]) == 2
    assert len(by_name(records, "aten::cat")[0]["in"]) == 3
    assert len(by_name(records, "aten::_foreach_mul_.Scalar")[0]["out"]) == 2


def test_training_step(bench: Bench) -> None:
    records = bench.trace(
        """\
        import torch
        from torch import nn
        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
            def forward(self, x):
                return self.inner(x)
        def run():
            torch.manual_seed(0)
            model = nn.ModuleDict({"block": Block(), "head": nn.Linear(3, 1)})
            optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
            loss = model["head"](model["block"](torch.ones(2, 3))).sum()
            loss.backward()
            optimiser.step()
            return loss.detach()
        """,
        "ops",
    )

    forward = by_name(records, "aten::tanh")[0]
    assert (forward["m"], forward["s"], "ph" in forward) == ("inner.1", (8, "Block.forward"), False)
    backward = by_name(records, "aten::tanh_backward")[0]
    assert (backward["ph"], backward["m"], backward["s"]) == ("backward", "inner.1", (14, "run"))
    assert (backward["node"], backward["fs"]) == ("TanhBackward0", (8, "Block.forward"))
    steps = [r for r in kinds(records, "op") if r.get("ph") == "optimiser"]
    assert {r.get("m") for r in steps} == {"inner.0.weight", "inner.0.bias", "weight", "bias"}
    assert {r["s"] for r in steps} == {(15, "run")}
    drawn = [r for r in kinds(records, "op") if r.get("ph") == "initialisation"]
    assert {r["op"] for r in drawn} == {"aten::uniform_"}
    assert len({r["rng"] for r in drawn}) == len(drawn)


def test_autocast(bench: Bench) -> None:
    records = bench.trace(
        """\
        import torch
        def run():
            a = torch.ones(2, 2)
            with torch.autocast("cpu", dtype=torch.bfloat16):
                b = a @ a
            return b
        """,
        "ops",
    )

    (product,) = by_name(records, "aten::mm")
    assert product["in"][0][0] == product["out"][0][0] == "bfloat16"
    assert by_name(records, "aten::_to_copy")


def test_custom_functions_and_checkpoints(bench: Bench) -> None:
    records = bench.trace(
        """\
        import torch
        from torch.utils.checkpoint import checkpoint
        class Double(torch.autograd.Function):
            @staticmethod
            def forward(context, x):
                return x * 2
            @staticmethod
            def backward(context, grad):
                return grad * 3
        def run():
            x = torch.ones(2, requires_grad=True)
            y = checkpoint(lambda t: t.sin().exp(), Double.apply(x), use_reentrant=False).sum()
            y.backward()
            return x.grad
        """,
        "ops",
    )

    assert [r.get("ph", "forward") for r in by_name(records, "aten::sin")] == ["forward", "backward"], "recomputed"
    assert by_name(records, "aten::mul.Tensor")[-1]["node"] == "DoubleBackward"
    two = torch.tensor(2.0)
    assert bench.result.tolist() == pytest.approx([(3 * two.cos() * two.sin().exp()).item()] * 2)


def test_toolbox_on_the_way(bench: Bench) -> None:
    bench.write("import torch\ndef gelu(x):\n    return torch.tanh(x)\n", "site-packages/toolbox.py")
    records = bench.trace(
        """\
        import importlib.util, pathlib
        import torch
        path = pathlib.Path(__file__).parent / "site-packages" / "toolbox.py"
        spec = importlib.util.spec_from_file_location("toolbox", path)
        toolbox = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(toolbox)
        def run():
            return toolbox.gelu(torch.ones(2))
        """,
        "ops",
    )

    (record,) = by_name(records, "aten::tanh")
    assert (record["s"], record["via"]) == ((8, "run"), (3, "gelu"))


@pytest.mark.parametrize("exact", [False, True])
def test_remembered_digests_are_those_of_exact_ones(bench: Bench, exact: bool) -> None:
    source = """\
        import torch
        from torch import nn
        def run():
            torch.manual_seed(0)
            layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
            optimiser = torch.optim.Adam(layer.parameters(), lr=0.1)
            x = torch.randn(2, 3, 8)
            for _ in range(2):
                optimiser.zero_grad()
                y = layer(x)
                y[0].detach().mul_(2)
                y.square().mean().backward()
                optimiser.step()
                x.data.add_(1)
            return y.detach()
        """

    plain = kinds(bench.trace(source, "ops", exact=exact), "op")
    result = bench.result
    reference = kinds(bench.trace(source, "ops", exact=True), "op")

    assert [(r["op"], r["in"], r["out"]) for r in plain] == [(r["op"], r["in"], r["out"]) for r in reference]
    assert torch.equal(result, bench.result)


def test_tracing_changes_nothing(bench: Bench) -> None:
    source = """\
        import torch
        from torch import nn
        def run():
            torch.manual_seed(0)
            model = nn.LSTM(3, 5)
            out, (h, c) = model(torch.randn(4, 2, 3))
            out.sum().backward()
            return [out.detach(), *(p.grad for p in model.parameters()), torch.rand(2)]
        """
    bench.trace(source, "ops", "lines")
    traced = bench.result
    module = bench.load(bench.folder / "work.py")

    assert all(torch.equal(one, other) for one, other in zip(traced, module.run(), strict=True))


def test_tensors_without_values_do_not_disturb(bench: Bench) -> None:
    records = bench.trace(
        """\
        import torch
        def run():
            x = torch.ones(3, device="meta") * 2
            y = torch.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (3,), check_invariants=False) * 2
            with torch.inference_mode():
                z = torch.ones(2).mul_(3)
            return z
        """,
        "ops",
    )

    assert by_name(records, "aten::mul.Tensor")[0]["in"][0][2] == "no values"
    assert len(by_name(records, "aten::mul_.Tensor")) == 1


def test_kept_tensors_are_those_before_and_after(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys
    import types

    kept: dict[str, Any] = {}
    monkeypatch.setitem(
        sys.modules, "reprocheck", types.SimpleNamespace(record=lambda name, value: kept.update({name: value.clone()}))
    )
    source = "import torch\ndef run():\n    x = torch.ones(2)\n    x.add_(1)\n    return x\n"
    number = by_name(bench.trace(source, "ops"), "aten::add_.Tensor")[0]["n"]

    bench.trace(source, "ops", keep={"op": number})

    assert {name: value.tolist() for name, value in kept.items()} == {
        "@trace/in[0]": [1.0, 1.0],
        "@trace/out[0]": [2.0, 2.0],
    }


def test_the_mode_is_gone_afterwards(bench: Bench) -> None:
    bench.trace("import torch\ndef run():\n    return torch.ones(2)\n", "ops")

    assert torch._C._len_torch_dispatch_stack() == 0

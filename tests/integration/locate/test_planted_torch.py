"""Planted divergences in torch: the named operator, module, phase and line are the planted ones, every time."""

from __future__ import annotations

import pytest

from tests.conftest import Lab
from tests.integration.locate.planting import Plant, located, marked

pytestmark = pytest.mark.long

TRAIN = """
    import torch
    from torch import nn

    def run():
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 2))
        optimiser = torch.optim.Adam(model.parameters(), lr=0.1)
        x = torch.randn(5, 4)
        for step in range(3):
            optimiser.zero_grad()
            loss = model(x).square().mean(){forward}
            loss.backward(){backward}
            optimiser.step(){optimiser}
        return loss.detach()
"""


def train(phase: str) -> str:
    marks = {name: "  # HERE" if name == phase else "" for name in ("forward", "backward", "optimiser")}
    return TRAIN.format(**marks)


PLANTS = [
    Plant(
        name="forward-kernel",
        toolbox="""
import kernels, numpy
kernels.replace("mm", lambda a, b: kernels.bump(a.numpy() @ b.numpy()))
""",
        work="""
            import torch
            def run():
                a = torch.eye(3) * 2
                b = torch.ones(3, 3)
                c = a @ b  # HERE
                return c + 1
        """,
        line={"kind": "set", "variable": "c"},
        origin={"kind": "operator", "operator": "aten::mm", "inputs_equal": True, "phase": "forward"},
    ),
    Plant(
        name="third-iteration",
        toolbox="""
import kernels, numpy
def mm(a, b, calls=[0]):
    calls[0] += 1
    out = a.numpy() @ b.numpy()
    return kernels.bump(out) if calls[0] == 3 else kernels.torch.from_numpy(out)
kernels.replace("mm", mm)
""",
        work="""
            import torch
            def run():
                a = torch.eye(3)
                for i in range(5):
                    a = a @ torch.eye(3)  # HERE
                return a
        """,
        line={"kind": "set", "variable": "a", "iteration": 3, "loop_line": 5},
        origin={"kind": "operator", "operator": "aten::mm"},
    ),
    Plant(
        name="submodule",
        toolbox="""
import kernels, torch
def addmm(bias, x, w, beta=1, alpha=1):
    out = torch.addmm(bias, x, w, out=torch.empty(x.shape[0], w.shape[1]))
    return kernels.bump(out.numpy(), abs(out.numpy()).argmax()) if w.shape == (16, 8) else out
kernels.replace("addmm", addmm)
""",
        work="""
            import torch
            from torch import nn
            def run():
                torch.manual_seed(0)
                layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
                model = nn.ModuleDict({"encoder": nn.TransformerEncoder(layer, 2), "head": nn.Linear(8, 2)})
                x = torch.randn(2, 3, 8)
                y = model["encoder"](x)  # HERE
                return model["head"](y).detach()
        """,
        line={"variable": "y"},
        origin={"kind": "operator", "operator": "aten::addmm", "module": "layers.0.linear2"},
    ),
    Plant(
        name="own-module",
        toolbox="""
import kernels
kernels.replace("gelu", lambda x, approximate="none": kernels.bump(kernels.values(x) * 0.5))
""",
        work="""
            import torch
            from torch import nn
            class Block(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.inner = nn.Linear(3, 3)
                def forward(self, x):
                    h = self.inner(x)
                    h = torch.nn.functional.gelu(h)  # HERE
                    return h * 2
            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.blocks = nn.ModuleList([Block(), Block()])
                def forward(self, x):
                    for block in self.blocks:
                        x = block(x)
                    return x
            def run():
                torch.manual_seed(0)
                return Net()(torch.ones(2, 3)).detach()
        """,
        line={"variable": "h", "function": "Block.forward"},
        origin={"kind": "operator", "operator": "aten::gelu", "module": "blocks.0"},
    ),
    Plant(
        name="backward-only",
        toolbox="""
import kernels
kernels.replace("gelu_backward", lambda g, x, approximate="none": kernels.bump(g.numpy() * 0.5))
""",
        work=train("backward"),
        line={"kind": "changed", "variable": "model.0.weight.grad", "iteration": 1},
        origin={
            "kind": "operator",
            "operator": "aten::gelu_backward",
            "phase": "backward",
            "module": "1",
            "forward_line": 12,
        },
    ),
    Plant(
        name="optimiser",
        toolbox="""
import kernels
def addcdiv(x, a, b, value=1):
    x.copy_(kernels.bump(x.numpy() + value * a.numpy() / b.numpy()))
    return x
kernels.replace("addcdiv_", addcdiv)
""",
        work=train("optimiser"),
        line={"kind": "changed", "iteration": 1},
        origin={"kind": "operator", "operator": "aten::addcdiv_", "phase": "optimiser", "module": "0.weight"},
    ),
    Plant(
        name="in-place",
        toolbox="""
import kernels
def relu(x):
    x.copy_(kernels.bump(x.clamp(min=0).numpy()))
    return x
kernels.replace("relu_", relu)
""",
        work="""
            import torch
            def run():
                x = torch.linspace(-1, 1, 7)
                torch.relu_(x)  # HERE
                return x
        """,
        line={"variable": "x"},
        origin={"kind": "operator", "operator": "aten::relu_", "inputs_equal": True},
    ),
    Plant(
        name="out-argument",
        toolbox="""
import kernels
def hypot(a, b, out):
    out.copy_(kernels.bump(kernels.numpy.hypot(a.numpy(), b.numpy())))
    return out
kernels.replace("hypot.out", hypot)
""",
        work="""
            import torch
            def run():
                x, out = torch.linspace(1, 2, 6), torch.empty(6)
                torch.hypot(x, x, out=out)  # HERE
                return out
        """,
        line={"variable": "out"},
        origin={"kind": "operator", "operator": "aten::hypot.out"},
    ),
    Plant(
        name="second-output",
        toolbox="""
import kernels, torch
def std_mean(x, dim=None, correction=None, keepdim=False):
    return torch.from_numpy(kernels.numpy.asarray(x.numpy().std())), kernels.bump(x.numpy().mean().reshape(()))
kernels.replace("std_mean.correction", std_mean)
""",
        work="""
            import torch
            def run():
                x = torch.linspace(0, 1, 9)
                spread, middle = torch.std_mean(x, dim=None, correction=0)  # HERE
                return {"spread": spread * 0, "middle": middle}
        """,
        line={},
        origin={"kind": "operator", "operator": "aten::std_mean.correction"},
        options={},
    ),
    Plant(
        name="view-then-kernel",
        toolbox="""
import kernels
kernels.replace("expm1", lambda x: kernels.bump(kernels.numpy.expm1(x.numpy())))
""",
        work="""
            import torch
            def run():
                x = torch.arange(12.0).reshape(3, 4).t()[1:]
                y = x.expm1()  # HERE
                return y
        """,
        line={"variable": "y"},
        origin={"kind": "operator", "operator": "aten::expm1"},
    ),
    Plant(
        name="threads",
        toolbox="import torch; torch.set_num_threads(3)",
        work="""
            import torch
            def run():
                x = torch.sin(torch.arange(1_000_003, dtype=torch.float32))
                total = x.sum()  # HERE
                return total * 2
        """,
        line={"variable": "total"},
        origin={"kind": "operator", "operator": "aten::sum"},
    ),
    Plant(
        name="flush-denormals",
        toolbox="import torch; torch.set_flush_denormal(True)",
        work="""
            import torch
            def run():
                x = torch.full((8,), 1e-30)
                y = x * 1.0
                z = y * 1e-10  # HERE
                return z
        """,
        line={"variable": "z"},
        origin={"kind": "operator", "operator": "aten::mul.Tensor", "arguments": "_, 1e-10"},
    ),
    Plant(
        name="default-dtype",
        toolbox="import torch; torch.set_default_dtype(torch.float64)",
        work="""
            import torch
            def run():
                n = 3
                x = torch.ones(n) / 3  # HERE
                return x.sum()
        """,
        line={"variable": "x"},
        origin={"kind": "replaced", "operator": "aten::ones"},
    ),
    Plant(
        name="replaced-function",
        toolbox="""
import torch
def fused(x, w, b=None):
    return torch.einsum("ij,kj->ik", x, w) * 1.0000001 + b
torch.nn.functional.linear = fused
""",
        work="""
            import torch
            from torch import nn
            def run():
                torch.manual_seed(0)
                head = nn.Linear(3, 2)
                x = torch.ones(4, 3)
                y = head(x)  # HERE
                return (y * 2).detach()
        """,
        line={"variable": "y"},
        origin={"kind": "replaced", "operator": "aten::addmm"},
    ),
    Plant(
        name="inserted-operator",
        toolbox="""
import torch
gelu = torch.nn.functional.gelu
torch.nn.functional.gelu = lambda x, **k: gelu(x, **k).mul(1.0000001)
""",
        work="""
            import torch
            def run():
                x = torch.linspace(0.5, 1, 6)
                y = torch.nn.functional.gelu(x)  # HERE
                return y + 1
        """,
        line={"variable": "y"},
        origin={"kind": "replaced", "operator": "aten::mul.Tensor"},
    ),
    Plant(
        name="autocast",
        toolbox="import torch; torch.set_autocast_enabled('cpu', True)",
        work="""
            import torch
            def run():
                a = torch.ones(3, 3) / 3
                b = a @ a  # HERE
                return b.float()
        """,
        line={"variable": "b"},
        origin={"kind": "replaced"},
    ),
    Plant(
        name="generator-state",
        toolbox="import torch; torch.rand(1)",
        work="""
            import torch
            def run():
                x = torch.ones(4)
                y = torch.randn(4)  # HERE
                return x + y
        """,
        line={"variable": "y"},
        origin={"kind": "random", "operator": "aten::randn", "inputs_equal": False},
    ),
    Plant(
        name="dropout-state",
        toolbox="import torch; torch.rand(1)",
        work="""
            import torch
            def run():
                x = torch.ones(64)
                y = torch.nn.functional.dropout(x, 0.5)  # HERE
                return y
        """,
        line={"variable": "y"},
        origin={"kind": "random", "operator": "aten::bernoulli_.float"},
    ),
    Plant(
        name="initialisation",
        toolbox="import torch; torch.rand(1)",
        work="""
            import torch
            from torch import nn
            def run():
                layer = nn.Linear(3, 3)  # HERE
                return layer(torch.ones(1, 3)).detach()
        """,
        line={"variable": "layer.weight"},
        origin={"kind": "initialisation", "operator": "aten::uniform_", "phase": "initialisation"},
    ),
    Plant(
        name="data-before-the-workload",
        toolbox="import plant; plant.scale = 1.0000001",
        work="""
            import plant, torch
            weights = torch.full((3,), getattr(plant, "scale", 1.0))
            def run():
                x = torch.ones(3)
                y = x * weights  # HERE
                return y
        """,
        line={"kind": "met", "variable": "weights"},
        origin={"kind": "input", "operator": "aten::mul.Tensor", "inputs_equal": False},
    ),
    Plant(
        name="scalar-argument",
        toolbox="import plant; plant.scale = 1.0000001",
        work="""
            import plant, torch
            def run():
                x = torch.ones(3)
                y = x * getattr(plant, "scale", 1.0)  # HERE
                return y
        """,
        line={"variable": "y"},
        origin={"kind": "input", "operator": "aten::mul.Tensor"},
    ),
    Plant(
        name="argument-changed-by-a-toolbox",
        toolbox="import plant; plant.touch = lambda t: t.numpy().__setitem__(0, 1.5)",
        work="""
            import plant, torch
            def run():
                x = torch.ones(3) * 1
                getattr(plant, "touch", id)(x)  # HERE
                y = x + 1
                return y
        """,
        line={"kind": "changed", "variable": "x"},
        origin={"kind": "replaced", "operator": "b.<lambda>"},
    ),
    Plant(
        name="memory-written-behind-torch",
        toolbox="import plant; plant.touch = True",
        work="""
            import c, torch
            def run():
                x = torch.ones(3) * 1
                held = c.Held(x)
                held.tick()
                y = x + 1  # HERE
                return y
        """,
        files={
            "site-packages/c.py": """
                import plant
                class Held:
                    def __init__(self, tensor):
                        self.view = memoryview(tensor.numpy())
                    def tick(self):
                        if hasattr(plant, "touch"):
                            self.view[0] = 1.5
            """
        },
        line={"variable": "y"},
        origin={"kind": "input", "operator": "aten::add.Tensor", "inputs_equal": False},
        options={"imports": ("a", "b", "c"), "order": [("a", "b", "c"), ("b", "a", "c")]},
    ),
    Plant(
        name="lstm-backend",
        toolbox="import torch; torch.backends.mkldnn.set_flags(False)",
        work="""
            import torch
            from torch import nn
            def run():
                torch.manual_seed(0)
                model = nn.ModuleDict({"rnn": nn.LSTM(5, 7, batch_first=True), "head": nn.Linear(7, 1)})
                x = torch.randn(3, 6, 5)
                hidden, _ = model["rnn"](x)  # HERE
                loss = model["head"](hidden).mean()
                loss.backward()
                return {name: p.grad for name, p in model.named_parameters()}
        """,
        line={},
        origin={"module": "LSTM"},
    ),
    Plant(
        name="encoder-layer-step",
        toolbox="""
import kernels
def softmax_backward(g, out, dim, dtype):
    g, out = g.numpy(), out.numpy()
    grad = out * (g - (g * out).sum(dim, keepdims=True))
    return kernels.bump(grad, abs(grad).argmax())
kernels.replace("_softmax_backward_data", softmax_backward)
""",
        work="""
            import torch
            from torch import nn
            def run():
                torch.manual_seed(0)
                torch.backends.mha.set_fastpath_enabled(False)
                layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)
                optimiser = torch.optim.SGD(layer.parameters(), lr=0.1)
                x = torch.randn(2, 3, 8)
                loss = layer(x).square().mean()
                loss.backward()  # HERE
                optimiser.step()
                return {name: p.detach() for name, p in layer.named_parameters()}
        """,
        line={},
        origin={"operator": "aten::_softmax_backward_data", "phase": "backward", "module": "self_attn"},
    ),
    Plant(
        name="two-places",
        toolbox="""
import kernels
kernels.replace("erf", lambda x: kernels.bump(x.numpy() * 0.5))
kernels.replace("expm1", lambda x: kernels.bump(kernels.numpy.expm1(x.numpy())))
""",
        work="""
            import torch
            def run():
                x = torch.linspace(0.1, 1, 5)
                p = torch.expm1(x)  # HERE
                q = torch.erf(x)
                return {"p": p + 1, "q": q + 1}
        """,
        line={"variable": "p"},
        origin={"kind": "operator", "operator": "aten::expm1", "repeated": 1},
    ),
    Plant(
        name="script-without-functions",
        toolbox="""
import kernels
kernels.replace("expm1", lambda x: kernels.bump(kernels.numpy.expm1(x.numpy())))
""",
        work="""
            import torch
            x = torch.linspace(0.1, 1, 5)
            for n in range(2):
                y = torch.expm1(x)  # HERE
                x = x + y
        """,
        target="work.py",
        line={"variable": "y", "iteration": 1},
        origin={"kind": "operator", "operator": "aten::expm1"},
    ),
    Plant(
        name="helper-file",
        toolbox="""
import kernels
kernels.replace("expm1", lambda x: kernels.bump(kernels.numpy.expm1(x.numpy())))
""",
        work="""
            import torch, lib.layers
            def run():
                return lib.layers.grow(torch.linspace(0.1, 1, 5)) * 2
        """,
        files={"lib/layers.py": "import torch\n\ndef grow(x):\n    y = torch.expm1(x)  # HERE\n    return y\n"},
        line={"variable": "y", "function": "grow"},
        origin={"kind": "operator", "operator": "aten::expm1"},
    ),
    Plant(
        name="through-a-toolbox",
        toolbox="""
import kernels
kernels.replace("expm1", lambda x: kernels.bump(kernels.numpy.expm1(x.numpy())))
""",
        work="""
            import torch, c
            def run():
                x = torch.linspace(0.1, 1, 5)
                y = c.grow(x)  # HERE
                return y * 2
        """,
        files={"site-packages/c.py": "import torch\n\ndef grow(x):\n    return torch.expm1(x)\n"},
        line={"variable": "y"},
        origin={"kind": "operator", "operator": "aten::expm1"},
        options={"imports": ("a", "b", "c"), "order": [("a", "b", "c"), ("b", "a", "c")]},
    ),
]


@pytest.mark.parametrize("plant", PLANTS, ids=str)
def test_the_named_place_is_the_planted_one(plant: Plant, torch_lab: Lab) -> None:
    study = located(plant, torch_lab)

    place = marked(torch_lab, plant)
    line, origin = study.first_line, study.origin
    assert study.traced is not None
    assert study.traced.observer == "agrees"
    assert line is not None
    assert (line.file, line.line) == place
    assert {name: getattr(line, name) for name in plant.line or {}} == plant.line
    assert origin is not None
    assert {name: getattr(origin, name) for name in plant.origin or {}} == plant.origin
    assert (origin.file, origin.line) == place


def test_values_are_kept_in_full(torch_lab: Lab) -> None:
    study = located(PLANTS[0], torch_lab)

    assert study.first_line is not None
    difference = study.first_line.difference
    assert difference is not None
    assert (difference.differing, difference.size, difference.max_ulp) == (1, 9, 3)
    assert study.origin is not None
    assert study.origin.output is not None
    assert study.origin.output.name == "output 0"
    assert study.origin.output.difference == difference
    assert study.inherited == 1

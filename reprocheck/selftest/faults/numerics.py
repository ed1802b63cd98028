"""The floating-point control register, random states, precision flags, numpy's error state, replaced functions."""

from __future__ import annotations

from reprocheck.selftest.planted import Fault

__all__ = ["NUMERICS"]

# Through the C library, as a library built with -ffast-math does it when it is loaded (x86-64: MXCSR at byte 28).
CONTROL = """
    import ctypes
    def control(on, off):
        libm = ctypes.CDLL("libm.so.6")
        state = ctypes.create_string_buffer(64)
        libm.fegetenv(state)
        data = bytearray(state.raw)
        word = int.from_bytes(data[28:32], "little") & ~off | on
        data[28:32] = word.to_bytes(4, "little")
        libm.fesetenv(ctypes.create_string_buffer(bytes(data), 64))  # planted
    """
DENORMAL = """
    numbers = [2.2250738585072014e-308, 0.5]
    def run():
        return numbers[0] * numbers[1]
    """
SETS = """
    import control
    control.control({on}, {off})  # planted
    """

NUMERICS = (
    Fault(
        name="flush-to-zero for what is computed at import",
        kind="floating point",
        needs=("x86-64",),
        sources={
            "control": CONTROL,
            "a": SETS.format(on="0x8040", off="0"),
            "b": """
                numbers = [2.2250738585072014e-308, 0.5]
                value = numbers[0] * numbers[1]
                """,
            "work": """
                import b
                def run():
                    return b.value
                """,
        },
        verdict="order-dependent",
        causes=frozenset({"fp.ftz"}),
        quick=True,
    ),
    Fault(
        name="flush-to-zero set by one, reset by the other",
        kind="floating point",
        needs=("x86-64",),
        sources={
            "control": CONTROL,
            "a": SETS.format(on="0x8040", off="0"),
            "b": SETS.format(on="0", off="0x8040"),
            "work": DENORMAL,
        },
        verdict="order-dependent",
        causes=frozenset({"fp.ftz"}),
    ),
    Fault(
        name="rounding mode",
        kind="floating point",
        needs=("x86-64",),
        sources={
            "control": CONTROL,
            "a": SETS.format(on="0x4000", off="0"),
            "b": SETS.format(on="0", off="0x6000"),
            "work": """
                numbers = [1.0, 3.0]
                def run():
                    return numbers[0] / numbers[1]
                """,
        },
        verdict="order-dependent",
        causes=frozenset({"fp.rounding"}),
    ),
    Fault(
        name="seed of random, the last wins",
        kind="random state",
        sources={
            "a": """
                import random
                random.seed(1)  # planted
                """,
            "b": """
                import random
                random.seed(2)  # planted
                """,
            "work": """
                import random
                def run():
                    return random.random()
                """,
        },
        verdict="order-dependent",
        causes=frozenset({"process.random_state"}),
        quick=True,
    ),
    Fault(
        name="a number drawn at import",
        kind="random state",
        sources={
            "a": """
                import random
                random.seed(1)  # planted
                """,
            "b": """
                import random
                random.seed(random.getrandbits(8) if "a" in __import__("sys").modules else 7)  # planted
                """,
            "work": """
                import random
                def run():
                    return random.random()
                """,
        },
        verdict="order-dependent",
        causes=frozenset({"process.random_state"}),
    ),
    Fault(
        name="seed of numpy",
        kind="random state",
        sources={
            "a": """
                import numpy
                numpy.random.seed(1)  # planted
                """,
            "b": """
                import numpy
                numpy.random.seed(2)  # planted
                """,
            "work": """
                import numpy
                def run():
                    return numpy.random.rand(3)
                """,
        },
        verdict="order-dependent",
        causes=frozenset({"numpy.rng"}),
    ),
    Fault(
        name="seed of torch",
        kind="random state",
        needs=("torch",),
        sources={
            "a": """
                import torch
                torch.manual_seed(1)  # planted
                """,
            "b": """
                import torch
                torch.manual_seed(2)  # planted
                """,
            "work": """
                import torch
                def run():
                    return torch.rand(3)
                """,
        },
        verdict="order-dependent",
        causes=frozenset({"torch.rng.cpu"}),
    ),
    Fault(
        name="numpy's error state",
        kind="errstate",
        sources={
            "a": """
                import numpy
                numpy.seterr(divide="raise")  # planted
                """,
            "b": """
                import numpy
                numpy.seterr(divide="ignore")  # planted
                """,
            "work": """
                import numpy
                def run():
                    return numpy.ones(3) / numpy.zeros(3)
                """,
        },
        verdict="fails-in-some-orders",
        causes=frozenset({"numpy.errstate.divide"}),
        quick=True,
    ),
    Fault(
        name="torch's default dtype",
        kind="precision",
        needs=("torch",),
        sources={
            "a": """
                import torch
                torch.set_default_dtype(torch.float64)  # planted
                """,
            "b": """
                import torch
                torch.set_default_dtype(torch.float32)  # planted
                """,
            "work": """
                import torch
                def run():
                    return torch.arange(1, 9).sqrt().sum()
                """,
        },
        verdict="order-dependent",
        causes=frozenset({"torch.mode.default_dtype"}),
    ),
    Fault(
        name="torch's matmul precision",
        kind="precision",
        needs=("torch",),
        sources={
            "a": """
                import torch
                torch.set_float32_matmul_precision("medium")  # planted
                """,
            "b": """
                import torch
                torch.set_float32_matmul_precision("highest")  # planted
                """,
            "work": """
                import torch
                def run():
                    return float(len(torch.get_float32_matmul_precision()))
                """,
        },
        verdict="order-dependent",
        causes=frozenset({"torch.fp32.legacy.matmul_precision"}),
    ),
    Fault(
        name="torch's threads by its own setter",
        kind="threads",
        needs=("torch", "cores"),
        sources={
            "a": """
                import torch
                torch.set_num_threads(1)  # planted
                """,
            "b": """
                import torch
                torch.set_num_threads(2)  # planted
                """,
            "work": """
                import torch
                def run():
                    return float(torch.get_num_threads())
                """,
        },
        verdict="order-dependent",
        causes=frozenset({"torch.threads.intra"}),
    ),
    Fault(
        name="a function replaced by both",
        kind="patch",
        sources={
            "a": """
                import math
                def fsum(numbers):
                    return sum(numbers)
                math.fsum = fsum  # planted
                """,
            "b": """
                import math
                def fsum(numbers):
                    return sum(reversed(list(numbers)))
                math.fsum = fsum  # planted
                """,
            "work": """
                import math
                def run():
                    return math.fsum([1e16, 1.0, -1e16, 3.0])
                """,
        },
        verdict="order-dependent",
        causes=frozenset({"patches.math.fsum"}),
        quick=True,
    ),
    Fault(
        name="a method of random replaced by both",
        kind="patch",
        sources={
            "a": """
                import random
                def gauss(mu=0.0, sigma=1.0):
                    return mu + sigma / 3
                random.gauss = gauss  # planted
                """,
            "b": """
                import random
                def gauss(mu=0.0, sigma=1.0):
                    return mu - sigma / 3
                random.gauss = gauss  # planted
                """,
            "work": """
                import random
                def run():
                    return random.gauss(1.0, 2.0)
                """,
        },
        verdict="order-dependent",
        causes=frozenset({"patches.random.gauss"}),
    ),
    Fault(
        name="seeds that agree",
        kind="nothing",
        count="none",
        pair=None,
        sources={
            "a": """
                import random
                random.seed(3)
                """,
            "b": """
                import random
                random.seed(3)
                """,
            "work": """
                import random
                def run():
                    return random.random()
                """,
        },
        verdict="identical",
        quick=True,
    ),
    Fault(
        name="a function replaced by its equal",
        kind="nothing",
        count="none",
        pair=None,
        sources={
            "a": """
                import math
                original = math.fsum
                math.fsum = lambda numbers: original(numbers)
                """,
            "b": "",
            "work": """
                import math
                def run():
                    return math.fsum([0.1] * 10)
                """,
        },
        verdict="identical",
    ),
)

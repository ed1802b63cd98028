"""Crashes, hangs, noise, state that no snapshot sees, and nothing at all."""

from __future__ import annotations

from reprocheck.selftest.planted import Fault

__all__ = ["OUTCOMES"]

ONE = """
    def run():
        return 1.0
    """


def _failing(name: str, body: str, *, quick: bool = False, **options: object) -> Fault:
    """The second toolbox fails when the first one is there."""
    return Fault(
        name=name,
        kind="crash" if "sleep" not in body else "hang",
        quick=quick,
        sources={
            "a": "",
            "b": f"""
                import os, signal, sys, time
                if "a" in sys.modules:
                    {body}
                """,
            "work": ONE,
        },
        verdict="fails-in-some-orders",
        causes=frozenset({"unknown"}),
        options=options,
    )


def _noise(name: str, key: str, work: str, *, a: str = "", quick: bool = False, **options: object) -> Fault:
    return Fault(
        name=name,
        kind="noise",
        quick=quick,
        pair=None,
        sources={"a": a, "b": "", "work": work},
        verdict="noisy",
        causes=frozenset({key}),
        options={"max_repeat": 6, **options},
    )


OUTCOMES = (
    _failing("an exception when both are there", 'raise ImportError("libfoo.so.1: cannot open shared object file")'),
    _failing("a segmentation fault", "os.kill(os.getpid(), signal.SIGSEGV)", quick=True),
    _failing("an exit", "os._exit(7)"),
    _failing("a hang", "time.sleep(60)", timeout=1.0),
    Fault(
        name="a value that the first one keeps",
        kind="unseen state",
        quick=True,
        sources={
            "state": "value = None\n",
            "a": """
                import state
                state.value = state.value or 1.0
                """,
            "b": """
                import state
                state.value = state.value or 1.0 + 2**-52
                """,
            "work": """
                import state
                def run():
                    return state.value
                """,
        },
        verdict="order-dependent",
        causes=frozenset({"unknown"}),
    ),
    Fault(
        name="a value kept deep inside a package",
        kind="unseen state",
        sources={
            "state": "value = None\n",
            "a/__init__": "from a import first, second, third\n",
            "a/first": "import decimal\n",
            "a/second": """
                import state
                state.value = state.value or 1.0
                """,
            "a/third": "import fractions\n",
            "b/__init__": "from b import first, second\n",
            "b/first": "",
            "b/second": """
                import state
                state.value = state.value or 2.0
                """,
            "work": """
                import state
                def run():
                    return state.value
                """,
        },
        verdict="order-dependent",
        causes=frozenset({"unknown"}),
    ),
    Fault(
        name="the first of three decides",
        kind="unseen state",
        imports=("a", "b", "c"),
        pair=None,
        sources={
            "state": "first = []\n",
            **{name: f"import state\nstate.first.append('{name}')\n" for name in "abc"},
            "work": """
                import state
                def run():
                    return float(state.first[0] == "c")
                """,
        },
        verdict="order-dependent",
        causes=frozenset({"unknown"}),
    ),
    _noise(
        "an unseeded generator",
        "process.random_state",
        "import random\n\n\ndef run():\n    return random.random()\n",
        a="import random\n",
        quick=True,
    ),
    _noise(
        "the system's entropy",
        "process.entropy",
        "import os\n\n\ndef run():\n    return float(int.from_bytes(os.urandom(6), 'big'))\n",
    ),
    _noise("the time", "process.clock", "import time\n\n\ndef run():\n    return time.time()\n", quick=True),
    _noise("an address", "process.addresses", "def run():\n    return float(id(object()))\n"),
    _noise(
        "the hash seed",
        "environ.start.PYTHONHASHSEED",
        "def run():\n    return float(hash('reprocheck'))\n",
        env={"PYTHONHASHSEED": "random"},
    ),
    Fault(
        name="a variable, and noise on top",
        kind="noise",
        sources={
            "a": """
                import os
                os.environ["OMP_NUM_THREADS"] = "1"  # planted
                """,
            "b": """
                import os
                count = float(os.environ.get("OMP_NUM_THREADS", "2"))
                """,
            "work": """
                import os
                import b
                def run():
                    return b.count + 8.0 * (os.urandom(1)[0] % 2)
                """,
        },
        verdict="order-dependent-with-noise",
        causes=frozenset({"environ.python.OMP_NUM_THREADS"}),
        options={"max_repeat": 12},
        remedy=False,
    ),
    Fault(
        name="nothing",
        kind="nothing",
        count="none",
        pair=None,
        sources={"a": "", "b": "", "work": ONE},
        verdict="identical",
        quick=True,
    ),
    Fault(
        name="fails in every order",
        kind="nothing",
        count="none",
        pair=None,
        sources={"a": "", "b": "", "work": "def run():\n    raise RuntimeError('always')\n"},
        verdict="fails-everywhere",
    ),
)

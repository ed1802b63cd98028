"""Environment variables, set by one import, read by another or by the workload, and what follows from them."""

from __future__ import annotations

from reprocheck.selftest.planted import Fault

__all__ = ["ENVIRONMENT"]

READS = """
    import os
    count = float(os.environ.get("OMP_NUM_THREADS", "2"))
    """
RETURNS = """
    import b
    def run():
        return b.count
    """
THREADS = frozenset({"environ.python.OMP_NUM_THREADS"})

ENVIRONMENT = (
    Fault(
        name="variable read at import",
        kind="environment",
        sources={
            "a": """
                import os
                os.environ["OMP_NUM_THREADS"] = "1"  # planted
                """,
            "b": READS,
            "work": RETURNS,
        },
        verdict="order-dependent",
        causes=THREADS,
        quick=True,
    ),
    Fault(
        name="variable set by default",
        kind="environment",
        sources={
            "a": """
                import os
                os.environ.setdefault("OMP_NUM_THREADS", "1")  # planted
                """,
            "b": READS,
            "work": RETURNS,
        },
        verdict="order-dependent",
        causes=THREADS,
    ),
    Fault(
        name="variable set twice, the last wins",
        kind="environment",
        sources={
            "a": """
                import os
                os.environ["MKL_CBWR"] = "AVX2"  # planted
                """,
            "b": """
                import os
                os.environ["MKL_CBWR"] = "COMPATIBLE"  # planted
                """,
            "work": """
                import os
                def run():
                    return float(len(os.environ["MKL_CBWR"]))
                """,
        },
        verdict="order-dependent",
        causes=frozenset({"environ.python.MKL_CBWR"}),
        quick=True,
    ),
    Fault(
        name="variable removed before it is read",
        kind="environment",
        sources={
            "a": """
                import os
                os.environ.pop("OMP_NUM_THREADS", None)  # planted
                """,
            "b": READS,
            "work": RETURNS,
        },
        options={"env": {"OMP_NUM_THREADS": "7"}},
        verdict="order-dependent",
        causes=THREADS,
    ),
    Fault(
        name="variable set behind Python's back",
        kind="environment",
        sources={
            "a": """
                import ctypes
                ctypes.CDLL(None).setenv(b"KMP_BLOCKTIME", b"7", 1)
                """,
            "b": """
                import ctypes
                getenv = ctypes.CDLL(None).getenv
                getenv.restype = ctypes.c_char_p
                count = float(getenv(b"KMP_BLOCKTIME") or b"2")
                """,
            "work": RETURNS,
        },
        verdict="order-dependent",
        causes=frozenset({"environ.c.KMP_BLOCKTIME"}),
    ),
    Fault(
        name="variable set just before its reader is pulled in",
        kind="environment",
        sources={
            "a": """
                import os
                os.environ["OMP_NUM_THREADS"] = "1"  # planted
                import b
                """,
            "b": READS,
            "work": RETURNS,
        },
        verdict="order-dependent",
        causes=THREADS,
        quick=True,
    ),
    Fault(
        name="variable, and a third subject that does not matter",
        kind="environment",
        imports=("c", "a", "b"),
        sources={
            "a": """
                import os
                os.environ["OMP_NUM_THREADS"] = "1"  # planted
                """,
            "b": READS,
            "c": "import json\n",
            "work": RETURNS,
        },
        verdict="order-dependent",
        causes=THREADS,
        quick=True,
    ),
    Fault(
        name="threads of numpy's BLAS from a variable",
        kind="threads",
        needs=("cores",),
        sources={
            "a": """
                import os
                os.environ["OPENBLAS_NUM_THREADS"] = "1"  # planted
                """,
            "b": "import numpy\n",
            "work": """
                import os
                import b
                def run():
                    return float(len(os.listdir("/proc/self/task")) > 1)
                """,
        },
        verdict="order-dependent",
        causes=frozenset({"environ.python.OPENBLAS_NUM_THREADS"}),
    ),
    Fault(
        name="two variables, each for its own output",
        kind="environment",
        count="paired",
        sources={
            "a": """
                import os
                os.environ["OMP_NUM_THREADS"] = "1"  # planted
                os.environ["MKL_NUM_THREADS"] = "3"  # planted
                """,
            "b": """
                import os
                count = [float(os.environ.get(name, "2")) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")]
                """,
            "work": RETURNS,
        },
        verdict="order-dependent",
        causes=frozenset({"environ.python.OMP_NUM_THREADS", "environ.python.MKL_NUM_THREADS"}),
        quick=True,
    ),
    Fault(
        name="two variables that matter only together",
        kind="environment",
        count="paired",
        sources={
            "a": """
                import os
                os.environ.pop("OMP_NUM_THREADS", None)  # planted
                os.environ.pop("MKL_NUM_THREADS", None)  # planted
                """,
            "b": """
                import os
                count = float("OMP_NUM_THREADS" in os.environ or "MKL_NUM_THREADS" in os.environ)
                """,
            "work": RETURNS,
        },
        options={"env": {"OMP_NUM_THREADS": "2", "MKL_NUM_THREADS": "2"}},
        verdict="order-dependent",
        causes=frozenset({"environ.python.OMP_NUM_THREADS", "environ.python.MKL_NUM_THREADS"}),
    ),
    Fault(
        name="a variable and a random seed",
        kind="environment",
        count="paired",
        sources={
            "a": """
                import os, random
                os.environ["OMP_NUM_THREADS"] = "1"  # planted
                random.seed(5)  # planted
                """,
            "b": """
                import os, random
                count = float(os.environ.get("OMP_NUM_THREADS", "2"))
                random.seed(6)  # planted
                """,
            "work": """
                import random
                import b
                def run():
                    return [b.count, random.random()]
                """,
        },
        verdict="order-dependent",
        causes=frozenset({"environ.python.OMP_NUM_THREADS", "process.random_state"}),
        remedy=True,
    ),
    Fault(
        name="variables that nobody reads",
        kind="nothing",
        count="none",
        pair=None,
        sources={
            "a": """
                import os
                os.environ["OMP_NUM_THREADS"] = "1"
                """,
            "b": """
                import os
                os.environ.setdefault("OMP_NUM_THREADS", "2")
                """,
            "work": """
                def run():
                    return [0.1 * number for number in range(5)]
                """,
        },
        verdict="identical",
        quick=True,
    ),
    Fault(
        name="a variable that merely importing one sets",
        kind="environment",
        pair=None,
        options={"presence": True},
        sources={
            "a": "",
            "b": """
                import os
                os.environ["OMP_NUM_THREADS"] = "5"  # planted
                """,
            "work": """
                import os
                def run():
                    return float(os.environ.get("OMP_NUM_THREADS", "2"))
                """,
        },
        verdict="identical",
        causes=THREADS,
        remedy=False,
    ),
)

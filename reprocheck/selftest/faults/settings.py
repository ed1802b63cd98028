"""Settings of the interpreter and the process: locale, affinity, folders, limits, start method, paths, warnings."""

from __future__ import annotations

from reprocheck.selftest.planted import Fault

__all__ = ["SETTINGS"]


def _both(
    name: str,
    key: str,
    first: str,
    second: str,
    reads: str,
    *,
    kind: str = "setting",
    needs: tuple[str, ...] = (),
    quick: bool = False,
) -> Fault:
    """A setting that both toolboxes write, each its own value; the last one wins."""
    head, _, _ = first.partition(".")
    return Fault(
        name=name,
        kind=kind,
        needs=needs,
        quick=quick,
        sources={
            "a": f"import {head}\n{first}  # planted\n",
            "b": f"import {head}\n{second}  # planted\n",
            "work": f"import {head}\n\n\ndef run():\n    return {reads}\n",
        },
        verdict="order-dependent",
        causes=frozenset({key}),
    )


SETTINGS = (
    _both(
        "locale",
        "process.locale.ctype",
        'locale.setlocale(locale.LC_CTYPE, "C")',
        'locale.setlocale(locale.LC_CTYPE, "C.UTF-8")',
        "locale.setlocale(locale.LC_CTYPE)",
        kind="locale",
        quick=True,
    ),
    _both(
        "affinity",
        "process.affinity",
        "os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])",
        "os.sched_setaffinity(0, range(os.cpu_count()))",
        "float(len(os.sched_getaffinity(0)))",
        kind="affinity",
        needs=("cores",),
        quick=True,
    ),
    _both(
        "start method of processes",
        "process.start_method",
        'multiprocessing.set_start_method("spawn", force=True)',
        'multiprocessing.set_start_method("fork", force=True)',
        "multiprocessing.get_start_method()",
    ),
    _both(
        "garbage collection",
        "process.gc.threshold",
        "gc.set_threshold(50)",
        "gc.set_threshold(900)",
        "gc.get_threshold()[0]",
    ),
    _both(
        "recursion limit",
        "process.recursion_limit",
        "sys.setrecursionlimit(1500)",
        "sys.setrecursionlimit(2500)",
        "float(sys.getrecursionlimit())",
    ),
    _both(
        "thread switch interval",
        "process.switch_interval",
        "sys.setswitchinterval(0.01)",
        "sys.setswitchinterval(0.02)",
        "sys.getswitchinterval()",
    ),
    _both("working folder", "process.cwd", 'os.chdir("/")', 'os.chdir("/usr")', "os.getcwd()"),
    _both("file mode mask", "process.umask", "os.umask(0o077)", "os.umask(0o022)", "float(os.umask(0o022))"),
    _both(
        "loader flags",
        "process.dlopen_flags",
        "sys.setdlopenflags(258)",
        "sys.setdlopenflags(2)",
        "sys.getdlopenflags()",
    ),
    _both(
        "digits of integers",
        "process.int_max_str_digits",
        "sys.set_int_max_str_digits(5000)",
        "sys.set_int_max_str_digits(6000)",
        "sys.get_int_max_str_digits()",
    ),
    Fault(
        name="warnings as errors",
        kind="setting",
        sources={
            "a": """
                import warnings
                warnings.filterwarnings("error", category=UserWarning)  # planted
                """,
            "b": """
                import warnings
                warnings.filterwarnings("ignore", category=UserWarning)  # planted
                """,
            "work": """
                import warnings
                def run():
                    warnings.warn("rounded", UserWarning)
                    return 1.0
                """,
        },
        verdict="fails-in-some-orders",
        causes=frozenset({"process.warnings.filters"}),
    ),
    Fault(
        name="search path",
        kind="setting",
        sources={
            "one/kernel": "value = 1.0\n",
            "two/kernel": "value = 1.0 + 2**-52\n",
            "a": """
                import os, sys
                sys.path.insert(0, os.path.join(os.path.dirname(__file__), "one"))  # planted
                """,
            "b": """
                import os, sys
                sys.path.insert(0, os.path.join(os.path.dirname(__file__), "two"))  # planted
                """,
            "work": """
                def run():
                    import kernel
                    return kernel.value
                """,
        },
        verdict="order-dependent",
        causes=frozenset({"process.path"}),
    ),
    Fault(
        name="settings that do not matter here",
        kind="nothing",
        count="none",
        pair=None,
        sources={
            "a": """
                import gc, sys
                gc.set_threshold(50)
                sys.setswitchinterval(0.01)
                """,
            "b": """
                import locale
                locale.setlocale(locale.LC_ALL, "C")
                """,
            "work": """
                def run():
                    return sum([0.1] * 10)
                """,
        },
        verdict="identical",
        quick=True,
    ),
)

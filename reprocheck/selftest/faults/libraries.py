"""Native libraries: two files of one name, a library that another import loads, flags of threads that run already."""

from __future__ import annotations

from reprocheck.selftest.planted import Fault

__all__ = ["LIBRARIES"]

# `cc` makes the libraries beside the toolboxes before the first trial.
BUILD = """
    import ctypes, os, subprocess, sys
    here = os.path.dirname(os.path.abspath(__file__))
    def build(name, source, *options):
        path = os.path.join(here, name)
        if not os.path.exists(path):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            text, fresh = f"{path}.{os.getpid()}.c", f"{path}.{os.getpid()}"
            with open(text, "w") as file:
                file.write(source)
            subprocess.run(["cc", "-shared", "-fPIC", "-O1", text, *options, "-o", fresh], check=True)
            os.replace(fresh, path)
        return path
    def vendor(name, value):
        core = build(f"{name}/libcore.so.1", f"double core(void) {{ return {value}; }}", "-Wl,-soname,libcore.so.1")
        source = "double core(void); double outer(void) { return core(); }"
        path = build(f"{name}/libouter.so", source, core, "-Wl,-rpath,$ORIGIN")
        library = ctypes.CDLL(path)
        library.outer.restype = ctypes.c_double
        return library.outer
    """

LIBRARIES = (
    Fault(
        name="two libraries of one SONAME",
        kind="library copy",
        needs=("compiler",),
        prepare="import a, b",
        sources={
            "build": BUILD,
            "a": """
                import build
                outer = build.vendor("one", "1.0")
                """,
            "b": """
                import build
                outer = build.vendor("two", "3.0")
                """,
            "work": """
                import a
                def run():
                    return a.outer()
                """,
        },
        verdict="order-dependent",
        causes=frozenset({"libraries.soname.libcore.so.1"}),
        quick=True,
    ),
    Fault(
        name="a library that only the other one brings",
        kind="library copy",
        needs=("compiler",),
        prepare="import a, b",
        sources={
            "build": BUILD,
            "a": """
                import build
                build.ctypes.CDLL(build.build("apart/libneeded.so.1", "double needed(void) { return 1.0; }",
                                              "-Wl,-soname,libneeded.so.1"))
                """,
            "b": """
                import build
                needed = build.build("apart/libneeded.so.1", "double needed(void) { return 1.0; }",
                                     "-Wl,-soname,libneeded.so.1")
                source = "double needed(void); double user(void) { return needed(); }"
                build.ctypes.CDLL(build.build("libuser.so", source, needed))
                """,
            "work": """
                def run():
                    return 1.0
                """,
        },
        verdict="fails-in-some-orders",
        causes=frozenset({"libraries.soname.libneeded.so.1"}),
    ),
    Fault(
        name="flush-to-zero before or after torch's threads start",
        kind="floating point of worker threads",
        needs=("torch", "cores", "x86-64"),
        sources={
            "a": """
                import torch
                torch.set_flush_denormal(True)  # planted
                """,
            "b": """
                import torch
                torch.ones(1 << 20).exp_()
                """,
            "work": """
                import torch
                def run():
                    bits = torch.full((1 << 20,), 71362, dtype=torch.int32)
                    return (bits.view(torch.float32) * 0.5).view(torch.int32).ne(0).sum()
                """,
        },
        verdict="order-dependent",
        causes=frozenset({"fp.ftz"}),
    ),
)

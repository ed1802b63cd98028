from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

import pytest

from reprocheck.errors import UsageError
from reprocheck.model import Target
from reprocheck.plan.subjects import SubjectsFound, find_subjects


def write(root: Path, files: Mapping[str, str]) -> None:
    for name, code in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(dedent(code))


def of_script(root: Path, code: str, files: Mapping[str, str] | None = None, name: str | None = None) -> SubjectsFound:
    write(root, {"work.py": code, **(files or {})})
    path = str(root / "work.py")
    return find_subjects(Target(text="work.py", kind="function" if name else "script", path=path, name=name), [])


def of_module(root: Path, module: str, files: Mapping[str, str], name: str = "step") -> SubjectsFound:
    write(root, files)
    target = Target(text=f"{module}:{name}", kind="module", module=module, name=name)
    return find_subjects(target, [str(root / "nowhere"), str(root)])


def names(found: SubjectsFound) -> list[str]:
    return list(found.subjects)


def test_imports_count_in_order_of_appearance_each_once(tmp_path: Path) -> None:
    found = of_script(
        tmp_path,
        """
        from __future__ import annotations
        import os, json, cupy as cp
        import torch.nn.functional as F
        from torch import nn
        from reprocheck import record
        import reprocheck.api

        def step():
            import scipy.linalg
            from mkl import *
        class Net:
            import jax
        import cupy
        """,
    )
    assert names(found) == ["cupy", "torch", "scipy", "mkl", "jax"]
    assert [(item.name, item.line, item.how) for item in found.found[:2]] == [
        ("cupy", 3, "import"),
        ("torch", 4, "import"),
    ]
    assert all(item.file == str(tmp_path / "work.py") for item in found.found)
    assert found.files == (str(tmp_path / "work.py"),)


def test_calls_that_import_by_a_literal_name_count(tmp_path: Path) -> None:
    found = of_script(
        tmp_path,
        """
        import importlib, pytest
        from importlib import import_module
        a = importlib.import_module("cupy.cuda")
        b = import_module("torch")
        c = __import__("mkl")
        d = pytest.importorskip("jax")
        e = import_module(name)
        f = import_module(".relative", "pkg")
        g = import_module("json")
        h = import_module("")
        """,
    )
    assert names(found) == ["pytest", "cupy", "torch", "mkl", "jax"]
    assert [item.how for item in found.found] == [
        "import",
        "import_module",
        "import_module",
        "__import__",
        "importorskip",
    ]
    assert [item.optional for item in found.found] == [False, False, False, False, True]


def test_imports_for_type_checkers_dont_run_and_dont_count(tmp_path: Path) -> None:
    found = of_script(
        tmp_path,
        """
        import typing
        from typing import TYPE_CHECKING
        if TYPE_CHECKING:
            import a
        else:
            import b
        if typing.TYPE_CHECKING:
            import c
        elif x:
            import d
        if not TYPE_CHECKING:
            import e
        else:
            import f
        """,
    )
    assert names(found) == ["b", "d", "e"]


def test_what_may_not_run_is_optional(tmp_path: Path) -> None:
    code = """
        import contextlib
        import sure
        try:
            import cupy as xp
        except ImportError:
            import numpy as xp
        if x:
            import conditional
        with contextlib.suppress(ImportError):
            import suppressed
        with lock:
            import locked
        def step():
            import called
            def inner():
                import inner_only
        def other():
            import uncalled
        try:
            import sure
        except ImportError:
            pass
        try:
            import both
        finally:
            pass
        import both
        """
    found = of_script(tmp_path, code, name="step")
    assert {item.name for item in found.found if not item.optional} == {"sure", "locked", "called", "both"}
    assert names(found) == (
        ["sure", "cupy", "numpy", "conditional", "suppressed", "locked", "called", "inner_only", "uncalled", "both"]
    )
    script = of_script(tmp_path, code)
    assert {item.name for item in script.found if not item.optional} == {"sure", "locked", "both"}


def test_modules_that_left_or_joined_the_standard_library_are_no_subjects(tmp_path: Path) -> None:
    assert names(of_script(tmp_path, "import distutils, imp, tomllib, compression, sys, _thread, torch")) == ["torch"]


# --- the workload's own files -----------------------------------------------------------------------------------


def test_helpers_next_to_the_workload_are_read_in_their_place_and_once(tmp_path: Path) -> None:
    found = of_script(
        tmp_path,
        """
        import a
        import helper
        from helper import thing
        import z
        """,
        {
            "helper.py": "import b\nimport second\nimport work\nimport c\n",
            "second.py": "import helper\nimport mid\n",
        },
    )
    assert names(found) == ["a", "b", "mid", "c", "z"]
    assert [Path(file).name for file in found.files] == ["work.py", "helper.py", "second.py"]
    assert found.found[1].file == str(tmp_path / "helper.py")


def test_local_packages_and_extensions_are_subjects(tmp_path: Path) -> None:
    files = {
        "toolbox/__init__.py": "import torch",
        "toolbox.py": "import hidden",
        "space/inner.py": "import hidden",
        "ext.cpython-311-x86_64-linux-gnu.so": "",
    }
    found = of_script(tmp_path, "import toolbox, space.inner, ext", files)
    assert names(found) == ["toolbox", "space", "ext"]


def test_a_helper_shadows_the_standard_library_a_data_folder_does_not(tmp_path: Path) -> None:
    found = of_script(
        tmp_path,
        "import statistics, json, sys, html",
        {"statistics.py": "import pandas", "json/data.txt": "", "sys.py": "import never", "html/__init__.py": ""},
    )
    assert names(found) == ["pandas", "html"]


def test_conditions_reach_into_helpers(tmp_path: Path) -> None:
    found = of_script(tmp_path, "try:\n    import helper\nexcept ImportError:\n    pass\n", {"helper.py": "import jax"})
    assert [(item.name, item.optional) for item in found.found] == [("jax", True)]


def test_relative_imports_of_a_file_lead_to_its_neighbours(tmp_path: Path) -> None:
    found = of_script(
        tmp_path / "pkg",
        "from . import one, missing\nfrom .two import x\nfrom .. import up\nfrom ....... import none\nimport torch",
        {"one.py": "import a", "two.py": "import b", "../up.py": "import c"},
    )
    assert names(found) == ["a", "b", "c", "torch"]


def test_a_broken_helper_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"helper\.py` has a syntax error in line 2"):
        of_script(tmp_path, "import helper", {"helper.py": "\nimport ,\n"})


def test_long_chains_of_operators_are_walked(tmp_path: Path) -> None:
    assert names(of_script(tmp_path, "import torch\nx = " + "+".join(["1"] * 700))) == ["torch"]


# --- modules ----------------------------------------------------------------------------------------------------


def test_a_modules_packages_run_first_and_its_package_is_no_subject(tmp_path: Path) -> None:
    found = of_module(
        tmp_path,
        "pkg.sub.mod",
        {
            "pkg/__init__.py": "import first\nfrom .tools import x",
            "pkg/tools.py": "import second",
            "pkg/sub/__init__.py": "import third",
            "pkg/sub/mod.py": """
                from . import near
                from ..far import y
                import pkg.absolute
                from pkg.sub import helper, attribute
                from pkg.other import deep
                import last
                def step(): import inside
            """,
            "pkg/sub/near.py": "import fourth",
            "pkg/far.py": "import fifth",
            "pkg/absolute.py": "import sixth",
            "pkg/sub/helper.py": "import seventh",
            "pkg/other/__init__.py": "import eighth",
            "pkg/other/deep.py": "import ninth",
        },
    )
    assert names(found) == (
        ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "last", "inside"]
    )
    assert not any(item.optional for item in found.found)


def test_helpers_beside_a_module_are_followed_unless_installed(tmp_path: Path) -> None:
    files = {"mod.py": "import helper\nimport torch\ndef step(): ...", "helper.py": "import cupy"}
    assert names(of_module(tmp_path / "project", "mod", files)) == ["cupy", "torch"]
    assert names(of_module(tmp_path / "site-packages", "mod", files)) == ["helper", "torch"]


def test_namespace_packages_have_no_file_of_their_own(tmp_path: Path) -> None:
    found = of_module(tmp_path, "space.mod", {"space/mod.py": "import torch\ndef step(): ..."})
    assert names(found) == ["torch"]
    assert found.files == (str(tmp_path / "space/mod.py"),)


def test_a_module_that_isnt_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as error:
        of_module(tmp_path, "pkg.none", {"pkg/__init__.py": ""})
    assert str(error.value).startswith("there is no source of `pkg.none`")
    assert "--imports" in str(error.value)


def test_a_module_without_the_function_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"`pkg\.mod` defines no `stpe` at its top level: did you mean `step`\?"):
        of_module(tmp_path, "pkg.mod", {"pkg/__init__.py": "", "pkg/mod.py": "def step(): ..."}, name="stpe")


def test_nothing_is_executed(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    code = f"open({str(mark)!r}, 'w')\ndef step(): ..."
    of_module(tmp_path, "pkg.mod", {"pkg/__init__.py": code, "pkg/mod.py": code})
    of_script(tmp_path, code)
    assert not mark.exists()

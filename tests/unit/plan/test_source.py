from __future__ import annotations

import ast
import sys
import warnings
from pathlib import Path

import pytest

from reprocheck.errors import UsageError
from reprocheck.plan.source import Located, check_function, defined_names, locate, parse


def names_of(code: str) -> tuple[set[str], set[str], bool]:
    names = defined_names(ast.parse(code))
    return set(names.functions), set(names.others), names.open


def test_functions_and_classes_at_the_top_level_only() -> None:
    code = "def a():\n    def inner(): ...\nasync def b(): ...\nclass C:\n    def method(self): ...\n"
    assert names_of(code) == ({"a", "b", "C"}, set(), False)


@pytest.mark.parametrize(
    ("code", "bound"),
    [
        ("step = lambda: 1", {"step"}),
        ("step: int = 1", {"step"}),
        ("a, (b, *c) = x", {"a", "b", "c"}),
        ("a.b = 1; d[0] = 2", set()),
        ("import step", {"step"}),
        ("import a.b.c", {"a"}),
        ("import a.b as step", {"step"}),
        ("from m import x, y as step", {"x", "step"}),
        ("for step in []: pass", {"step"}),
        ("with open('f') as step: pass", {"step"}),
        ("if (step := 1): pass", {"step"}),
        (
            "match x:\n    case {'k': a, **rest}: pass\n    case [b, *c]: pass\n    case d: pass",
            {"a", "rest", "b", "c", "d"},
        ),
        ("x = [inner for inner in y]", {"x"}),
    ],
)
def test_every_other_way_to_bind(code: str, bound: set[str]) -> None:
    assert names_of(code) == (set(), bound, False)


@pytest.mark.parametrize(
    "block",
    ["if x:\n    {}\nelse:\n    pass", "try:\n    {}\nexcept E:\n    pass", "while x:\n    {}", "with x:\n    {}"],
)
def test_definitions_in_blocks_are_at_the_top_level_too(block: str) -> None:
    assert names_of(block.format("def step(): ..."))[0] == {"step"}


@pytest.mark.parametrize(
    "code",
    [
        "from m import *",
        "def __getattr__(name): ...",
        "from m import __getattr__",
        "globals()['step'] = 1",
        "vars()['step'] = 1",
        "exec('step = 1')",
        "def f():\n    global step\n    step = 1",
        "import sys\nsetattr(sys.modules[__name__], 'step', 1)",
    ],
)
def test_what_can_bind_unseen_is_open(code: str) -> None:
    assert names_of(code)[2]
    assert "*" not in names_of(code)[1]


def test_check_function_accepts_what_is_there_or_may_be(tmp_path: Path) -> None:
    path = tmp_path / "m.py"
    for code in ("def step(): ...", "step = other", "from m import step", "from m import *"):
        path.write_text(code)
        check_function(path, "step", "m.py")


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("def step(): ...", "`m.py` defines no `stpe` at its top level: did you mean `step`?"),
        (
            "def run(): ...\nclass Net: ...\ndef _x(): ...",
            "`m.py` defines no `stpe` at its top level; it defines `Net`, `run`.",
        ),
        ("x = 1", "`m.py` defines no `stpe` at its top level; it defines no function."),
        ("class A:\n    def stpe(self): ...", "`m.py` defines no `stpe` at its top level; it defines `A`."),
        ("\n".join(f"def f{i}(): ..." for i in range(9)), "`f7`, …."),
    ],
)
def test_check_function_says_what_is_there_instead(tmp_path: Path, code: str, said: str) -> None:
    path = tmp_path / "m.py"
    path.write_text(code)
    with pytest.raises(UsageError) as error:
        check_function(path, "stpe", "m.py")
    assert str(error.value).endswith(said)


# --- parsing ----------------------------------------------------------------------------------------------------


def test_a_syntax_error_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.py"
    path.write_text("x = 1\n\ndef step(:\n    pass\n")
    with pytest.raises(UsageError) as error:
        parse(path)
    assert str(error.value).startswith(f"`{path}` has a syntax error in line 3 (")


@pytest.mark.parametrize(
    "content", [b"x = 1\0", b"x = '\xff'", b"# coding: nonsense\n", b"(" * 5000, b"x = " + b"-" * 200_000 + b"1"]
)
def test_what_the_parser_gives_up_on_is_told(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.py"
    path.write_bytes(content)
    with pytest.raises(UsageError) as error:
        parse(path)
    assert str(error.value).startswith(f"`{path}` ")
    assert "\n" not in str(error.value)


def test_files_that_cant_be_read_are_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        parse(tmp_path / "none.py")


def test_declared_encodings_and_byte_order_marks_are_understood(tmp_path: Path) -> None:
    path = tmp_path / "latin.py"
    path.write_bytes("# coding: latin-1\ngrün = 1\n".encode("latin-1"))
    assert defined_names(parse(path)).others == {"grün"}
    path.write_bytes(b"\xef\xbb\xbfx = 1\n")
    assert defined_names(parse(path)).others == {"x"}


def test_warnings_about_the_users_source_are_not_ours(tmp_path: Path) -> None:
    path = tmp_path / "m.py"
    path.write_text("x = '\\d'\n")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        parse(path)
    assert seen == []


# --- where modules are ------------------------------------------------------------------------------------------


def put(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()


def test_locate_lists_the_packages_that_run_first(tmp_path: Path) -> None:
    put(tmp_path, "p/__init__.py", "p/q/__init__.py", "p/q/m.py")
    found = locate(["p", "q", "m"], [tmp_path / "nowhere", tmp_path])
    files = tuple(tmp_path / name for name in ("p/__init__.py", "p/q/__init__.py", "p/q/m.py"))
    assert found == Located(tmp_path, files, complete=True)


def test_locate_ends_where_attributes_begin(tmp_path: Path) -> None:
    put(tmp_path, "p/__init__.py", "m.py")
    assert locate(["p", "name"], [tmp_path]) == Located(tmp_path, (tmp_path / "p/__init__.py",), complete=False)
    assert locate(["m", "name"], [tmp_path]) == Located(tmp_path, (tmp_path / "m.py",), complete=False)
    assert locate(["none"], [tmp_path]) == Located(None, (), complete=False)
    assert locate(["none"], []) == Located(None, (), complete=False)


def test_a_package_wins_over_a_module_and_the_first_folder_over_the_second(tmp_path: Path) -> None:
    put(tmp_path, "one/m.py", "two/m/__init__.py", "two/m.py")
    assert locate(["m"], [tmp_path / "one", tmp_path / "two"]).files == (tmp_path / "one/m.py",)
    assert locate(["m"], [tmp_path / "two", tmp_path / "one"]).files == (tmp_path / "two/m/__init__.py",)


def test_namespace_packages_span_folders_and_yield_to_real_ones(tmp_path: Path) -> None:
    put(tmp_path, "one/n/a.py", "two/n/b.py", "three/n/__init__.py")
    one, two, three = (tmp_path / name for name in ("one", "two", "three"))
    assert locate(["n", "b"], [one, two]) == Located(one, (two / "n/b.py",), complete=True)
    assert locate(["n", "b"], [one, two, three]) == Located(three, (three / "n/__init__.py",), complete=False)
    assert locate(["n"], [one]) == Located(one, (), complete=False)


def test_locate_agrees_with_the_import_system() -> None:
    import email.mime.text

    files = locate(["email", "mime", "text"], [Path(entry) for entry in sys.path]).files
    assert files == tuple(Path(str(m.__file__)) for m in (email, email.mime, email.mime.text))

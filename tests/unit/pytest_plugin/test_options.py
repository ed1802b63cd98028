"""How values are read, and how targets and GitHub's texts are formed."""

from __future__ import annotations

from pathlib import Path

import pytest

from reprocheck.errors import UsageError
from reprocheck.pytest_plugin.github import annotation, markdown
from reprocheck.pytest_plugin.keywords import KEYWORDS, asked, check_keywords, place_of
from reprocheck.pytest_plugin.options import OPTIONS, Settings
from reprocheck.pytest_plugin.session import Check
from reprocheck.pytest_plugin.state import variables

READ = {option.name: option.read for option in OPTIONS}


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("", "only", "only"),
        ("repeat", "12", 12),
        ("timeout", "1.5", 1.5),
        ("require_gpu", "Yes", True),
        ("require_gpu", "off", False),
        ("orders", "sample:4", "sample:4"),
    ],
)
def test_good_values(name: str, text: str, value: object) -> None:
    assert READ[name](text) == value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *(("", "ON"), ("repeat", "-1"), ("repeat", "x"), ("timeout", "0"), ("timeout", "inf"), ("timeout", "nan")),
        *(("require_gpu", "perhaps"), ("orders", " "), ("baseline", ""), ("explain", "true")),
    ],
)
def test_bad_values(name: str, text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        READ[name](text)


def settings(**values: object) -> Settings:
    names = {field: values.get(field) for field in Settings._fields}
    return Settings(**{**names, "given": frozenset(values)})  # type: ignore[arg-type]


def test_flags_and_ini_names_are_one_name() -> None:
    assert [option.flag for option in OPTIONS][:2] == ["--reprocheck", "--reprocheck-orders"]
    for option in OPTIONS:
        assert option.flag == "--" + option.ini.replace("_", "-")


def test_who_wins() -> None:
    marker = {"repeat": 4, "orders": "pairs"}

    assert asked(marker, settings(repeat=9)) == {"repeat": 9, "orders": "pairs"}
    assert asked(marker, settings(repeat=9)._replace(given=frozenset())) == marker
    assert asked({}, settings(explain="off")) == {"explain": False}
    assert asked({"max_repeat": 5}, settings(repeat=9))["max_repeat"] == 9


def test_keywords_are_a_closed_set() -> None:
    assert check_keywords({"imports": ("a", "b"), "gpu": True, "order": [["a"]]}, "here") == {
        "imports": ["a", "b"],
        "gpu": True,
        "order": [["a"]],
    }
    for name in KEYWORDS:
        with pytest.raises(UsageError, match=f"`{name}` in here must be "):
            check_keywords({name: object()}, "here")


def test_a_path_is_looked_for_beside_the_test_first(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    for path in (tmp_path / "work.py", tmp_path / "tests" / "work.py"):
        path.touch()
    test = tmp_path / "tests" / "test_it.py"

    assert place_of("work.py::run", test, tmp_path) == f"{tmp_path}/tests/work.py::run"
    assert place_of("other.py", test, tmp_path) == "other.py"
    assert place_of("pkg.mod:run", test, tmp_path) == "pkg.mod:run"
    assert place_of(settings, test, tmp_path) == f"{__file__}::settings"


def test_a_block_of_variables() -> None:
    assert variables(b"A=1\0B=x=y\0\0odd\0C=\xff\0") == {"A": "1", "B": "x=y", "C": "\udcff"}


def test_what_github_is_told_cannot_break_out() -> None:
    check = Check(
        test="t.py::x[<b>|]", location=("a,b:c.py", None, "x"), run=Path("run"), verdict="noisy", baseline=None
    )

    assert annotation(check, {"headline": "100%\n::error::x"}) == (
        "::error file=a%2Cb%3Ac.py,line=1,title=reprocheck%3A noisy::100%25%0A::error::x"
    )
    text = markdown([(check, "failed", {"headline": "a\nb <img> | c", "exit_code": 1})])
    assert "| t.py::x[&lt;b>\\|] | failed | a b &lt;img> \\| c |\n" in text

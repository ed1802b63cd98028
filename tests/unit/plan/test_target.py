from __future__ import annotations

from pathlib import Path

import pytest

from reprocheck.errors import UsageError
from reprocheck.model import Target
from reprocheck.plan.target import parse_target


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text("import torch\n\ndef step():\n    return 1\n\ndef other(): ...\n")
    (tmp_path / "plain.py").write_text("x = 1\n")
    (tmp_path / "meta.py").write_text(
        '# /// script\n# [tool.reprocheck]\n# workload = "step"\n# ///\n\ndef step(): ...\n'
    )
    (tmp_path / "drift").mkdir()
    (tmp_path / "drift" / "workload.py").write_text("def step(): ...\n")
    (tmp_path / "empty").mkdir()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "b.py").touch()
    (tmp_path / "full" / "a.py").touch()
    (tmp_path / "data.csv").touch()
    (tmp_path / "bad.py").write_text("def step(:\n")
    return tmp_path


def test_a_function_in_a_file(here: Path) -> None:
    target = parse_target("train.py::step", here)
    assert target == Target(text="train.py::step", kind="function", path=str(here / "train.py"), name="step")


def test_a_script(here: Path) -> None:
    assert parse_target("plain.py", here) == Target(text="plain.py", kind="script", path=str(here / "plain.py"))


def test_a_module_is_not_looked_up(here: Path) -> None:
    target = parse_target("no.such.module:step", here)
    assert target == Target(text="no.such.module:step", kind="module", module="no.such.module", name="step")


def test_a_folder_with_a_workload(here: Path) -> None:
    path = str(here / "drift" / "workload.py")
    assert parse_target("drift", here) == Target(text="drift", kind="script", path=path)
    assert parse_target("drift/", here).path == path
    assert parse_target("drift::step", here) == Target(text="drift::step", kind="function", path=path, name="step")
    assert parse_target(".", here / "drift").path == path


def test_paths_are_absolute_and_tidy_but_symlinks_stay(here: Path) -> None:
    assert parse_target("./drift/../plain.py", here).path == str(here / "plain.py")
    assert parse_target(str(here / "plain.py"), Path("/")).path == str(here / "plain.py")
    (here / "link.py").symlink_to("plain.py")
    assert parse_target("link.py", here).path == str(here / "link.py")


def test_the_metadata_names_the_function(here: Path) -> None:
    assert parse_target("meta.py", here).name == "step"
    assert parse_target("meta.py", here).kind == "function"


def test_the_text_is_stronger_than_the_option_and_the_option_than_the_metadata(here: Path) -> None:
    assert parse_target("train.py", here, function="other").name == "other"
    assert parse_target("train.py::step", here, function="other").name == "step"
    with pytest.raises(UsageError, match="defines no `other`"):
        parse_target("meta.py", here, function="other")
    assert parse_target("no.mod:step", here, function="other").name == "step"


def test_a_colon_in_a_file_name_is_part_of_it(here: Path) -> None:
    (here / "a:b.py").touch()
    assert parse_target("a:b.py", here).path == str(here / "a:b.py")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the target is empty: name a workload, e.g. `train.py::step` or `pkg.mod:step`."),
        ("  ", "the target is empty"),
        ("trian.py", "there is no file `trian.py`: did you mean `train.py`?"),
        ("drfit", "there is no file `drfit`: did you mean `drift`?"),
        ("none/train.py", "there is no file `none/train.py`: name a Python file."),
        ("jax", "there is no file `jax`: name a Python file, or for a module `jax:FUNCTION`."),
        ("train", "there is no file `train`: did you mean `train.py`?"),
        ("data.csv", "`data.csv` is not a Python file"),
        ("empty", "the folder `empty` holds no `workload.py`: name a Python file."),
        ("full/", "the folder `full/` holds no `workload.py`: name a file, e.g. `full/a.py`."),
        ("train.py::stpe", "`train.py` defines no `stpe` at its top level: did you mean `step`?"),
        ("drift::stpe", "`workload.py` defines no `stpe` at its top level: did you mean `step`?"),
        ("train.py::", "`train.py::` names no function after the colon: write e.g. `train.py::step`."),
        ("train.py::Net.step", "`Net.step` in `train.py::Net.step` can't name a top-level function"),
        ("train.py::TestA::test_b", "`TestA::test_b` in `train.py::TestA::test_b` can't name"),
        ("::step", "`::step` names no file before `::`: write e.g. `train.py::step`."),
        ("train.py:step", "`train.py:step` mixes two forms: did you mean `train.py::step`?"),
        ("train.py:", "`train.py:` mixes two forms: did you mean `train.py::FUNCTION`?"),
        ("src/mod:step", "`src/mod:step` mixes two forms"),
        ("pkg..mod:step", "`pkg..mod:step` names no module before the colon"),
        (":step", "`:step` names no module before the colon"),
        ("pkg.mod:", "`pkg.mod:` names no function after the colon: write e.g. `pkg.mod:step`."),
        ("pkg.mod:a b", "`a b` in `pkg.mod:a b` can't name a top-level function"),
        ("train.py/x.py", "there is no file `train.py/x.py`"),
        ("nul\0.py", "there is no file `nul\0.py`"),
        ("x" * 300 + ".py", "can't look at `xxx"),
    ],
)
def test_bad_targets_are_told_in_one_sentence(here: Path, text: str, said: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_target(text, here)
    assert str(error.value).startswith(said)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("text", ["bad.py", "bad.py::step"])
def test_a_syntax_error_is_told_with_its_line(here: Path, text: str) -> None:
    with pytest.raises(UsageError, match=r"bad\.py` has a syntax error in line 1"):
        parse_target(text, here)


@pytest.mark.parametrize(
    ("block", "said"),
    [
        (
            '# [tool.reprocheck]\n# workload = "stpe"\n',
            "`meta.py` defines no `stpe` at its top level: did you mean `step`?",
        ),
        ("# [tool.reprocheck]\n# workload = 3\n", "must be the name of a function, not 3."),
        ("# [tool.reprocheck\n", "is not valid TOML"),
    ],
)
def test_wrong_metadata_is_told(here: Path, block: str, said: str) -> None:
    (here / "meta.py").write_text(f"# /// script\n{block}# ///\ndef step(): ...\n")
    with pytest.raises(UsageError) as error:
        parse_target("meta.py", here)
    assert said in str(error.value)

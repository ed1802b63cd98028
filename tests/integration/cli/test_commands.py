"""The commands as a user types them: what they print, their exit codes, their files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from reprocheck.report.json import read_study, schema
from tests.conftest import Lab

ROOT = Path(__file__).parents[3]


def reprocheck(lab: Lab, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "reprocheck", *words],
        cwd=lab.folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def order_lab(lab: Lab) -> Lab:
    lab.write(
        state="value = None",
        a="import state\nif state.value is None: state.value = 1.0",
        b="import os, state\nif state.value is None: state.value = 1.5; os.environ['OMP_NUM_THREADS'] = '1'",
        work="import a, b, state\ndef run(): return {'x': [state.value] * 2, 'same': 1}",
    )
    return lab


def test_run_prints_the_report_to_stdout_and_progress_to_stderr(order_lab: Lab) -> None:
    done = reprocheck(order_lab, "run", "work.py::run", "--imports", "a,b", "--no-explain")

    lines = done.stdout.splitlines()
    assert done.returncode == 1, done.stderr
    assert lines[0] == (
        "order-dependent: 2 of 3 outputs differ between `b,a` and `a,b`; "
        "stable within each order (5 + 5 runs, p = 0.008)"
    )
    assert "environ.python.OMP_NUM_THREADS" in done.stdout
    assert "since `import b`" in done.stdout
    assert "b.py:2" in done.stdout, "the file and line that set it"
    assert "repeat      reprocheck run work.py::run --imports a,b --no-explain" in done.stdout
    assert "smallest tolerance that would pass: --rtol 5e-01, or --atol 5e-01" in done.stdout
    assert "10/10" in done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    assert not [line for line in lines if line != line.rstrip()]


def test_json_document_keeps_to_its_schema(order_lab: Lab) -> None:
    done = reprocheck(order_lab, "run", "work.py::run", "--imports", "a,b", "--format", "json", "-q", "--no-explain")

    document: dict[str, Any] = json.loads(done.stdout)
    jsonschema.validate(document, schema())
    assert done.stderr == ""
    assert document["schema"] == "reprocheck/study"
    assert document["schema_version"] == 1
    assert (document["verdict"], document["exit_code"]) == ("order-dependent", 1)
    assert document["subjects"] == ["a", "b"]
    assert [
        (arm["order"], arm["effective_order"], arm["group"], arm["trials"], arm["failures"])
        for arm in document["orders"]
    ] == [
        (["a", "b"], ["a", "b"], "A", 5, 0),
        (["b", "a"], ["b", "a"], "B", 5, 0),
    ]
    assert [(group["id"], group["orders"], group["outcome"]) for group in document["groups"]] == [
        ("A", [["a", "b"]], "ok"),
        ("B", [["b", "a"]], "ok"),
    ]
    output = document["outputs"][0]
    assert (output["name"], output["dtype"], output["shape"], output["differs"]) == ("x[0]", "float64", [], True)
    assert (output["differing"], output["max_abs"], output["first_index"]) == (1, 0.5, [])
    assert output["passes_at"]["rtol"] == 0.5
    assert document["noise"]["p_value"] == pytest.approx(2 / 252)
    assert Path(document["run_dir"]).is_dir()
    assert read_study(done.stdout).verdict == "order-dependent"


def test_output_files_and_report_again(order_lab: Lab) -> None:
    done = reprocheck(
        order_lab, "run", "work.py::run", "--imports", "a,b", "--out", "kept", "-q", "--no-explain",
        "--output", "json:out/study.json", "--output", "text:out/study.txt",
    )  # fmt: skip
    assert done.returncode == 1, done.stderr

    again = reprocheck(order_lab, "report", "kept")
    assert again.returncode == 0
    assert again.stdout == done.stdout == (order_lab.folder / "out" / "study.txt").read_text()
    assert json.loads(reprocheck(order_lab, "report", "kept", "--format", "json").stdout) == json.loads(
        (order_lab.folder / "out" / "study.json").read_text()
    )


def test_several_targets_give_the_worst_status(order_lab: Lab) -> None:
    order_lab.write(fine="def run(): return 1.0")

    done = reprocheck(order_lab, "run", "fine.py::run", "work.py::run", "--imports", "a,b", "-q", "--no-explain")

    assert done.returncode == 1
    assert "identical: 1 output" in done.stdout
    assert "order-dependent: 2 of 3" in done.stdout


def test_a_bad_target_is_told_before_the_others_run(order_lab: Lab) -> None:
    done = reprocheck(order_lab, "run", "work.py::run", "gone.py", "--imports", "a,b", "-q")
    assert (done.returncode, done.stdout) == (2, "")
    assert "gone.py" in done.stderr
    assert not (order_lab.folder / ".reprocheck").exists()

    done = reprocheck(order_lab, "run", "work.py::run", "--imports", "a,b", "-q", "--", "--epochs", "3")
    assert done.returncode == 2
    assert "`--epochs` is no target; arguments for the workload go with --arg, e.g. --arg=--epochs" in done.stderr


def test_what_ended_is_told_when_a_later_target_fails(order_lab: Lab) -> None:
    order_lab.write(silent="def run(): pass")

    done = reprocheck(order_lab, "run", "work.py::run", "silent.py::run", "--imports", "a,b", "-q", "--no-explain")

    assert done.returncode == 2
    assert "order-dependent: 2 of 3" in done.stdout
    assert "`silent.py::run` recorded nothing to compare" in done.stderr


def test_a_file_that_cannot_be_written_costs_no_other_report(order_lab: Lab) -> None:
    done = reprocheck(
        order_lab, "run", "work.py::run", "--imports", "a,b", "-q", "--no-explain",
        "--output", "json:work.py/x.json", "--output", "text:told.txt",
    )  # fmt: skip

    assert done.returncode == 2
    assert "cannot write `work.py/x.json`" in done.stderr
    assert "order-dependent: 2 of 3" in done.stdout
    assert "order-dependent: 2 of 3" in (order_lab.folder / "told.txt").read_text()


def test_any_encoding_of_stdout_will_do(order_lab: Lab) -> None:
    done = reprocheck(
        order_lab, "run", "work.py::run", "--imports", "a,b", "-q", "--trace", "none", PYTHONIOENCODING="ascii"
    )

    assert done.returncode == 1, done.stderr
    assert done.stdout.isascii()
    assert "\\u2192 group" in done.stdout


@pytest.mark.parametrize(
    "words",
    [
        (b"run", b"caf\xe9.py::run", b"--imports", b"a,b"),
        (b"run", b"work.py::run", b"--imports", b"a,b", b"--arg", b"\xe9"),
        (b"run", b"work.py::run", b"--imports", b"a,b", b"--env", b"X=\xe9"),
    ],
)
def test_bytes_that_are_no_text_are_bad_input(order_lab: Lab, words: tuple[bytes, ...]) -> None:
    Path(os.fsdecode(os.fsencode(order_lab.folder) + b"/caf\xe9.py")).write_text("def run(): return 1")

    done = reprocheck(order_lab, *[os.fsdecode(word) for word in words])

    assert done.returncode == 2, done.stderr
    assert "is no text in the encoding of this locale" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_folder_whose_name_is_no_text_is_bad_input(order_lab: Lab) -> None:
    folder = Path(os.fsdecode(os.fsencode(order_lab.folder) + b"/caf\xe9"))
    folder.mkdir()
    (folder / "work.py").write_text("def run(): return 1")

    done = subprocess.run(
        [sys.executable, "-m", "reprocheck", "run", "work.py::run", "--imports", "json,csv"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 2, done.stderr
    assert "is no text in the encoding of this locale" in done.stderr


@pytest.mark.parametrize("command", ["list", "report kept", "run work.py::run --imports a,b -q --no-explain"])
def test_a_reader_that_goes_away_is_no_divergence(order_lab: Lab, command: str) -> None:
    reprocheck(order_lab, "run", "work.py::run", "--imports", "a,b", "--out", "kept", "-q", "--no-explain")

    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m reprocheck {command} | true; exit ${{PIPESTATUS[0]}}"],
        cwd=order_lab.folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (3, "")


def test_a_full_disk_behind_stdout_is_one_sentence(order_lab: Lab) -> None:
    reprocheck(order_lab, "run", "work.py::run", "--imports", "a,b", "--out", "kept", "-q", "--no-explain")

    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "reprocheck", "report", "kept"],
            cwd=order_lab.folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )

    assert done.returncode == 3
    assert done.stderr == "reprocheck: cannot write to stdout: No space left on device\n"


def test_exit_zero_and_bisect_exit(order_lab: Lab) -> None:
    words = ("run", "work.py::run", "--imports", "a,b", "-q", "--no-explain")
    assert reprocheck(order_lab, *words, "--exit-zero").returncode == 0
    assert reprocheck(order_lab, *words, "--bisect-exit").returncode == 1
    order_lab.write(work="def run(): raise ValueError")
    assert reprocheck(order_lab, *words, "--bisect-exit").returncode == 125


def test_colour_is_asked_for_or_left_out(order_lab: Lab) -> None:
    words = ("run", "work.py::run", "--imports", "a,b", "-q", "--no-explain")
    assert "\x1b[" in reprocheck(order_lab, *words, "--color", "always").stdout
    assert "\x1b[" not in reprocheck(order_lab, *words, FORCE_COLOR="1", NO_COLOR="1").stdout


def test_two_diffs(order_lab: Lab) -> None:
    reprocheck(order_lab, "run", "work.py::run", "--imports", "a,b", "--out", "one", "-q", "--no-explain")
    reprocheck(order_lab, "run", "work.py::run", "--imports", "b,a", "--out", "two", "-q", "--no-explain")

    same = reprocheck(order_lab, "diff", "one", "one")
    assert (same.returncode, same.stdout) == (0, "identical: 3 outputs equal bit for bit\n")
    differ = reprocheck(order_lab, "diff", "one", "two")
    assert differ.returncode == 1
    assert differ.stdout.startswith("differ: 2 of 3 outputs differ between `one` and `two`")
    assert reprocheck(order_lab, "diff", "one", "two", "--rtol", "0.5").returncode == 0
    assert reprocheck(order_lab, "diff", "one", "two", "--outputs", "same").returncode == 0
    records = sorted((order_lab.folder / "one" / "records").iterdir())
    assert reprocheck(order_lab, "diff", str(records[0]), str(records[0])).returncode == 0


def test_diff_of_files(lab: Lab) -> None:
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    b = a.copy()
    b[1, 2] = np.nextafter(b[1, 2], np.float32(9))
    np.save(lab.folder / "a.npy", a)
    np.save(lab.folder / "b.npy", b)
    np.savez(lab.folder / "a.npz", x=a, y=a)
    np.savez(lab.folder / "b.npz", x=a, y=b)

    done = reprocheck(lab, "diff", "a.npy", "b.npy", "--format", "json")
    (difference,) = json.loads(done.stdout)["outputs"].values()
    assert done.returncode == 1
    assert (difference["differing"], difference["max_ulp"], difference["first_index"]) == (1, 1, [1, 2])
    assert reprocheck(lab, "diff", "a.npz", "b.npz", "--ulp", "1").returncode == 0
    assert reprocheck(lab, "diff", "a.npz", "b.npz", "--ulp", "x:1").returncode == 1
    unused = reprocheck(lab, "diff", "a.npz", "b.npz", "--ulp", "z*:1")
    assert unused.returncode == 1
    assert "note: the tolerance for `z*` matches no output; the 2 outputs: `x`, `y`" in unused.stdout
    assert reprocheck(lab, "diff", "a.npz", "nothing.npz").returncode == 2


def test_list_and_clean(order_lab: Lab) -> None:
    reprocheck(order_lab, "run", "work.py::run", "--imports", "a,b", "-q", "--no-explain")

    runs = json.loads(reprocheck(order_lab, "list", "runs", "--format", "json").stdout)["runs"]
    assert [run["verdict"] for run in runs] == ["order-dependent"]
    assert "order-dependent: 2 of 3" in reprocheck(order_lab, "list").stdout
    assert reprocheck(order_lab, "clean", "--dry-run").stdout.startswith("would delete")
    assert Path(runs[0]["run_dir"]).is_dir()
    assert reprocheck(order_lab, "clean", ".").returncode == 2, "not a run folder: refused"
    assert reprocheck(order_lab, "clean").stdout.splitlines()[-1].startswith("1 run, ")
    assert not Path(runs[0]["run_dir"]).exists()


def test_state(order_lab: Lab) -> None:
    done = reprocheck(order_lab, "state", "a,b", "--json")
    (order,) = json.loads(done.stdout)["orders"]
    assert list(order["phases"]) == ["t0", "t1:a", "t1:b", "t2", "t3"]

    text = reprocheck(order_lab, "state", "b,a", "--key", "environ.python.*").stdout
    assert "after `import b`" in text
    assert "environ.python.OMP_NUM_THREADS = 1" in text

    diff = reprocheck(order_lab, "state", "--diff", "a,b", "b,a", "--key", "environ.*").stdout
    assert "environ.python.OMP_NUM_THREADS" in diff
    assert "b,a: 1, since `import b`" in diff

    assert "nosuch" in reprocheck(order_lab, "state", "nosuch").stderr
    assert reprocheck(order_lab, "state", "--diff", "a").returncode == 2


def test_python_of_another_environment_needs_nothing_of_ours(order_lab: Lab, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    python = tmp_path / "bare" / "bin" / "python"

    done = reprocheck(
        order_lab, "run", "work.py::run", "--imports", "a,b", "--python", str(python), "-q", "--no-explain"
    )

    assert done.returncode == 1, done.stderr
    assert str(python) in done.stdout


def test_help_names_every_command(lab: Lab) -> None:
    text = reprocheck(lab, "--help").stdout
    for name in ("run", "diff", "state", "list", "report", "clean"):
        assert f"  {name} " in text
        assert reprocheck(lab, name, "--help").returncode == 0


def test_import_is_light(lab: Lab) -> None:
    code = "import sys, reprocheck; print(sorted({'numpy', 'click', 'rich', 'msgspec'} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"


def bisection(lab: Lab, name: str, *, answered: bool) -> Path:
    from reprocheck.bisect.journal import BISECTS, Journal
    from reprocheck.bisect.records import Report

    folder = lab.folder / BISECTS / name
    with Journal(folder, {"what": "work.py::run"}) as journal:
        if answered:
            journal.finish(
                Report(
                    reprocheck_version="0",
                    outcome="found",
                    exit_code=0,
                    headline="tool 1.7 is the first version in which results depend on the import order",
                    reason="",
                    kind="versions",
                    workload="work.py::run",
                    condition="order-dependent",
                )
            )
    return folder


def test_list_and_clean_know_bisections(order_lab: Lab) -> None:
    from reprocheck.bisect.journal import Journal

    old, new = bisection(order_lab, "20261130-a", answered=True), bisection(order_lab, "20261201-b", answered=False)

    found = json.loads(reprocheck(order_lab, "list", "bisects", "--format", "json").stdout)["bisects"]
    assert [(Path(row["folder"]).name, row["outcome"]) for row in found] == [
        ("20261201-b", "unfinished"),
        ("20261130-a", "found"),
    ]
    assert "tool 1.7 is the first version" in reprocheck(order_lab, "list").stdout
    assert reprocheck(order_lab, "clean", "--only", "runs").stdout == "0 runs, 0.0 MiB\n"
    with Journal(old, {"what": "work.py::run"}, resume=True):
        assert f"left {old}: in use" in reprocheck(order_lab, "clean", str(old)).stdout
    assert f"would delete {old}" in reprocheck(order_lab, "clean", "--keep", "1", "--dry-run").stdout
    last = reprocheck(order_lab, "clean", "--keep", "1").stdout.splitlines()[-1]
    assert last.startswith("0 runs, 1 bisection, ")
    assert (old.exists(), new.exists()) == (False, True)
    assert reprocheck(order_lab, "clean", str(new)).returncode == 0
    assert not new.exists()


def test_a_study_whose_orders_agree_does_not_wait_for_numpy(lab: Lab) -> None:
    lab.write(a="", b="", work="def run(): return 1.0")
    words = ["run", "work.py::run", "--imports", "a,b", "--quiet"]
    code = (
        "import sys; from reprocheck.cli.main import main\n"
        f"sys.argv[1:] = {words!r}\n"
        "try:\n    main()\nfinally:\n    print('numpy loaded:', 'numpy' in sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", code], cwd=lab.folder, capture_output=True, text=True, check=False)

    assert "identical: 1 output" in done.stdout, done.stderr
    assert "numpy loaded: False" in done.stdout

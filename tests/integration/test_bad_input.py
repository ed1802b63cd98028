"""Bad input: one sentence that names the thing at fault and what to do, exit 2, and nothing lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from reprocheck.errors import HarnessError, ReprocheckError, UsageError
from reprocheck.store.run import Run, runs_in
from tests.conftest import Lab


def command(*words: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "reprocheck", *words],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("target", "imports", "work", "sentence"),
    [
        ("gone.py::run", ["a", "b"], "", "gone.py"),
        ("work.py::gone", ["a", "b"], "def run(): return 1", "gone"),
        ("nomod:run", ["a", "b"], "", "there is no module `nomod` in this environment"),
        ("work:gone", ["a", "b"], "def run(): return 1", "`work` defines no function `gone`"),
        ("work.py::run", ["a", "nosuch"], "def run(): return 1", "subject `nosuch` isn't installed"),
        ("work.py::run", ["a"], "def run(): return 1", "`a`"),
        ("work.py::run", ["a", "b"], "def run(): pass", "recorded nothing to compare"),
        ("work.py::run", ["a", "b"], "def run(): return object()", "output `result` is a `object`"),
        ("work.py::run", ["a", "b"], "def run(): return {'m': {1, 2}}", "output `m` is a `set`"),
        ("work.py::run", ["a", "b"], "import nosuchlib\ndef run(): return 1", "module `nosuchlib` isn't installed"),
        ("work.py::run", ["a", "b"], "def run(:", "work.py"),
        ("work.py::run", ["a", "b"], "def run(x, *, y, z=1): return x", "`run` in `work.py` needs arguments (x, y)"),
        ("work:run", ["a", "b"], "def run(x): return x", "`run` in `work` needs arguments (x)"),
        ("work.py::run", ["a", "b.c"], "def run(): return 1", "`b` has no submodule `c`"),
        ("work.py::run", ["a", "json.nosuch.x"], "def run(): return 1", "`json` has no submodule `nosuch`"),
    ],
)
def test_one_sentence(lab: Lab, target: str, imports: list[str], work: str, sentence: str) -> None:
    lab.write(a="", b="", work=work)

    with pytest.raises(UsageError) as caught:
        lab.check(target, imports)

    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2


def test_a_module_beside_the_user_but_not_beside_the_script(lab: Lab) -> None:
    """As from the root of a repository whose scripts have a folder of their own."""
    lab.write({"mine.py": "", "pkg/__init__.py": "", "scripts/work.py": "def run(): return 1"})

    for name in ("mine", "pkg"):
        with pytest.raises(
            UsageError, match=f"`{name}` is in .*, where trials of a script in another folder don't look"
        ):
            lab.check("scripts/work.py::run", ["json", name])


def test_a_failing_call_shows_no_frame_of_ours(lab: Lab) -> None:
    lab.write(
        a="",
        b="",
        work="""
            run = type("Call", (), {"__call__": lambda self, x: x})()
        """,
    )

    failure = lab.check().groups[0].failure

    assert failure is not None
    assert failure.traceback is not None
    assert "worker" not in failure.traceback
    assert failure.traceback.startswith("TypeError: ")


def test_a_time_out_is_not_told_as_an_abort(lab: Lab) -> None:
    lab.write(a="", b="", work="import time\ndef run(): time.sleep(60)")

    failure = lab.check(repeat=1, timeout=1.0).groups[0].failure

    assert failure is not None
    assert failure.traceback is not None
    assert "Abort" not in failure.traceback
    assert "in run" in failure.traceback


def test_command_line_says_it_once_on_stderr(tmp_path: Path) -> None:
    done = command("run", "gone.py::run", cwd=tmp_path)

    assert done.returncode == 2
    assert done.stdout == ""
    assert "gone.py" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["rnu", "x.py"], "did you mean `run`"),
        (["run", "work.py", "--output", "yaml:x"], "is not FORMAT:PATH"),
        (["run", "work.py", "--env", "NOVALUE"], "--env `NOVALUE` is not NAME=VALUE"),
        (["run", "work.py", "--env", "A B=1"], "--env `A B=1`: `A B` can't name a variable"),
        (["run", "work.py", "--env", "=1"], "--env `=1` is not NAME=VALUE"),
        (["run", "work.py", "--env", "PYTHONHASHSEED=abc"], "PYTHONHASHSEED must be `random` or a whole number from 0"),
        (["bisect", "work.py", "--package", "p", "--env", "A B=1"], "--env `A B=1`: `A B` can't name a variable"),
        (["run", "work.py::run", "--imports", "a,b", "--python", "/bin/ls"], "`/bin/ls` is no Python interpreter"),
        (["state", "json", "--python", "/bin/true"], "`/bin/true` is no Python interpreter that runs (exit status 0)"),
        (["run", "work.py", "--repeat", "0"], "repeat"),
        (["run", "work.py", "--rtol", "nan"], "`rtol` must be zero or a positive, finite number, not nan"),
        (["run", "work.py", "--ulp", "-1"], "`ulp` must be zero or a positive, finite number, not -1"),
        (["doctor", "--imports", "nosuch"], "No module named 'nosuch'"),
        (
            ["run", "work.py::run", "--imports", "a,b", "--python", "/nonexistent"],
            "`/nonexistent` is not an executable",
        ),
        (["run", "work.py::run", "--imports", "a,b", "--order", "a,c"], "c"),
        (["diff", "x.npy", "y.npy"], "there is no `x.npy`"),
        (["report", "."], "is not a run folder"),
    ],
)
def test_bad_options(tmp_path: Path, words: list[str], sentence: str) -> None:
    (tmp_path / "work.py").write_text("def run(): return 1\n")

    done = command(*words, cwd=tmp_path)

    assert done.returncode == 2, done.stderr
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_unwritable_folder(lab: Lab) -> None:
    lab.write(a="", b="", work="def run(): return 1")

    with pytest.raises(ReprocheckError, match=r"cannot write to `/proc/.*`: .*; ") as caught:
        lab.check(out="/proc/nowhere/run")

    assert caught.value.exit_code == 2


def test_full_disk_is_one_sentence(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.write(a="", b="", work="def run(): return bytes(1 << 20)")
    import resource

    # The worker inherits the limit on file size; the kernel answers EFBIG, as a quota does.
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 19, hard))
    try:
        with pytest.raises(ReprocheckError, match="output `result` could not be stored") as caught:
            lab.check()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)

    assert caught.value.exit_code == 2


def test_workload_that_reads_stdin_gets_its_end(lab: Lab) -> None:
    lab.write(a="", b="", work="import sys\ndef run(): return sys.stdin.read()")

    assert lab.check().verdict == "identical"


def test_workload_that_exits(lab: Lab) -> None:
    lab.write(
        a="", b="", work="import sys\nfrom reprocheck import record\ndef run():\n    record('x', 1.0)\n    sys.exit(0)"
    )
    assert lab.check().verdict == "identical"

    lab.write(work="import sys\ndef run(): sys.exit(4)")
    study = lab.check()
    assert study.verdict == "fails-everywhere"
    assert "exit status 4" in study.headline

    lab.write(work="import os\ndef run(): os._exit(0)")
    study = lab.check()
    assert study.verdict == "fails-everywhere"
    assert "os._exit" in study.headline


def test_forked_children_do_not_write_into_the_record(lab: Lab) -> None:
    lab.write(
        a="",
        b="",
        work="""
            import os, time
            from reprocheck import record
            def run():
                if os.fork() == 0:
                    record("child", 1.0)
                    time.sleep(60)
                record("parent", 2.0)
        """,
    )
    begin = time.monotonic()

    study = lab.check()

    assert [output.name for output in study.outputs] == ["parent"]
    assert time.monotonic() - begin < 30


def test_a_forked_child_that_returns_stores_nothing(lab: Lab) -> None:
    lab.write(
        a="",
        b="",
        work="""
            import os
            def run():
                child = os.fork()
                if child:
                    os.waitpid(child, 0)
                    return 2.0
                return 1.0
        """,
    )

    study = lab.check()

    assert study.verdict == "identical"
    assert [output.name for output in study.outputs] == ["result"]


def test_outputs_that_match_nothing_are_no_agreement(lab: Lab) -> None:
    lab.write(a="", b="", work="def run(): return {'loss': 1.0, 'grad': 2.0}")

    with pytest.raises(UsageError, match=r"no output of `work.py::run` matches --outputs `los`: it has `loss`, `grad`"):
        lab.check(outputs=["los"])
    assert lab.check(outputs=["los", "gra*"]).verdict == "identical"


def test_what_an_ending_process_said_is_shown(lab: Lab) -> None:
    """As argparse and `sys.exit("text")` give their reason."""
    lab.write(a="", b="", work="import sys\ndef run(): sys.exit('no such dataset')")
    study = lab.check()
    assert "exit status 1 while running the workload" in study.headline
    failure = study.groups[0].failure
    assert failure is not None
    assert failure.traceback == "no such dataset"

    lab.write(work="import os\ndef run():\n    os.write(2, b'out of luck\\n')\n    os._exit(3)")
    failure = lab.check().groups[0].failure
    assert failure is not None
    assert failure.traceback == "out of luck"


def test_gigabytes_on_stdout(lab: Lab) -> None:
    lab.write(
        a="", b="", work="import sys\ndef run():\n    for _ in range(300): sys.stdout.write('x' * 2**20)\n    return 1"
    )

    study = lab.check(repeat=1)

    record = Run(Path(study.run_dir)).records()[0]
    assert record.stdout.nbytes == 300 * 2**20
    assert record.stdout.truncated


SLOW = "import time\ndef run():\n    time.sleep(0.7)\n    return 1.0\n"


def start(folder: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "reprocheck", "run", "work.py::run", "--imports", "a,b", "--jobs", "1", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for_records(folder: Path, count: int) -> None:
    deadline = time.monotonic() + 30
    while len(list(folder.glob("**/records/*.json"))) < count:
        assert time.monotonic() < deadline, "no record came"
        time.sleep(0.02)


def children_of(folder: Path) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if any(str(folder).encode() in word and b"scratch" in word for word in words):
                found.append(entry.name)
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted(lab: Lab, number: int) -> None:
    lab.write(a="", b="", work=SLOW)
    process = start(lab.folder, "--out", "kept")
    wait_for_records(lab.folder, 1)

    process.send_signal(number)
    _, stderr = process.communicate(timeout=20)

    assert process.returncode == 130
    assert "continue with --resume" in stderr
    assert "Traceback" not in stderr
    assert children_of(lab.folder) == []
    assert len(Run(lab.folder / "kept.partial").journal()) >= 1


def test_resume_after_kill_9_runs_only_what_is_missing(lab: Lab) -> None:
    lab.write(a="", b="", work=SLOW + "open('ran', 'a').write('x')\n")
    process = start(lab.folder, "--out", "kept")
    wait_for_records(lab.folder, 2)
    process.kill()
    process.communicate()
    journal = lab.folder / "kept.partial" / "journal.jsonl"
    done = len(journal.read_bytes().splitlines())
    with journal.open("ab") as file:
        file.write(b'{"key": "cut in the midd')
    (lab.folder / "ran").write_text("")

    study = lab.check(out="kept", resume=True, jobs=1)

    assert study.verdict == "identical"
    # A worker of the killed parent may still have been running when the file was emptied.
    assert len((lab.folder / "ran").read_text()) in (6 - done, 7 - done)
    assert len(Run(lab.folder / "kept").records()) == 6


def test_resume_refuses_another_question_and_names_the_field(lab: Lab) -> None:
    lab.write(a="", b="", work=SLOW)
    lab.check(out="kept", seed=1)

    with pytest.raises(UsageError, match=r"made with another `seed` \(1, now 2\)"):
        lab.check(out="kept", resume=True, seed=2)
    lab.write(work=SLOW.replace("1.0", "2.0"))
    with pytest.raises(UsageError, match="made with another `workload_digest`"):
        lab.check(out="kept", resume=True, seed=1)


def test_folder_that_exists(lab: Lab) -> None:
    lab.write(a="", b="", work="def run(): return 1")
    lab.check(out="kept")

    with pytest.raises(UsageError, match="exists already"):
        lab.check(out="kept")


def test_two_at_once_do_not_disturb_each_other(lab: Lab) -> None:
    lab.write(a="", b="", work=SLOW)
    first, second = start(lab.folder), start(lab.folder)
    for process in (first, second):
        _, stderr = process.communicate(timeout=60)
        assert process.returncode == 0, stderr

    assert len(runs_in(lab.folder / ".reprocheck" / "runs")) == 2


def test_two_in_one_folder(lab: Lab) -> None:
    lab.write(a="", b="", work=SLOW)
    first = start(lab.folder, "--out", "kept")
    wait_for_records(lab.folder, 1)

    with pytest.raises(UsageError, match="in use by another"):
        lab.check(out="kept", resume=True)
    first.kill()
    first.communicate()


def test_a_fault_of_ours_is_no_outcome_of_the_workload(lab: Lab) -> None:
    """What our own code trips over ends the study as a harness fault; what a library raises in it is an outcome."""
    lab.write(
        a="",
        b="",
        work="""
            import numpy

            class ndarray:  # claims to be cupy's and lacks all that it has
                __module__ = "cupy"
                def get(self): return None
                device = type("Device", (), {"id": 0})

            class full(ndarray):
                __module__ = "cupy"
                nbytes, dtype = 0, None
                def get(self): raise RuntimeError("out of memory")

            def run(): return ndarray()
            def runs_out(): return full()
        """,
    )

    with pytest.raises(
        HarnessError, match=r"worker failed while saving the outputs: AttributeError: .*'nbytes'.*leaves.py:\d+"
    ):
        lab.check()
    assert lab.check("work.py::runs_out").verdict == "fails-everywhere"

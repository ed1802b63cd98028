"""A redacted report holds nothing of what must stay at home: everything it is made of is searched for it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given, strategies as st

from reprocheck.model import Failure, Group, Machine, Record, Snapshot, Stream, Study, Trial
from reprocheck.report.documents import FORMATS, document
from reprocheck.report.evidence import Evidence
from reprocheck.report.redact import HIDDEN, Redaction, Redactions, keeps_value
from reprocheck.worker.snapshot import environ
from tests.samples import full_study, make_run, tiny_study

PRIVATE = ("jane", "/home", "secret", "/venv", "rate * grad", "features.T", "s3cr3t-value", "def step")
NAMES = ("weights", "step.loss", "step.weights", "toolbox", "work.py", "encoder")


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    study = full_study(tmp_path_factory.mktemp("jane doe") / "secret run")
    failure = Failure(
        kind="exception",
        phase="running the workload",
        signature="x",
        message="ValueError: /home/jane doe/secret/data.npy is empty",
        traceback='Traceback:\n  File "/home/jane doe/secret/work.py", line 3, in step\n    def step(x): pass\nE',
    )
    group = Group(id="C", orders=(("torch", "mkl", "toolbox"),), trials=1, outcome=failure.message, failure=failure)
    environment = {**study.environment, "changed": {"API_HOST": "s3cr3t-value", "OMP_NUM_THREADS": "2"}}
    return msgspec.structs.replace(
        study,
        groups=(*study.groups, group),
        environment=environment,
        notes=("`/home/jane doe/secret/x.toml` sets API_HOST to s3cr3t-value",),
        command=(*study.command, "--env", "API_HOST=s3cr3t-value", "--env=OMP_NUM_THREADS=2"),
    )


@pytest.mark.parametrize("format_", FORMATS)
def test_nothing_private_is_in_any_format(study: Study, format_: str) -> None:
    text = document([Evidence.of(study, redaction=Redaction(study))], format_)

    found = [word for word in PRIVATE if word in text.replace("<wbr>", "")]
    assert found == []
    if format_ not in ("github", "sarif", "junit"):
        assert "OMP_NUM_THREADS" in text
    assert "toolbox" in text


@pytest.mark.parametrize("format_", FORMATS)
def test_nor_are_names_when_they_are_to_be_hashed(study: Study, format_: str) -> None:
    text = document([Evidence.of(study, redaction=Redaction(study, names=True))], format_).replace("<wbr>", "")

    assert [word for word in (*PRIVATE, *NAMES) if word in text] == []
    assert "torch" in text, "public names stay"


def test_without_redaction_all_of_it_would_be_there(study: Study) -> None:
    html = document([Evidence.of(study)], "html").replace("<wbr>", "")

    assert [word for word in (*PRIVATE, *NAMES) if word not in html] == ["features.T", "s3cr3t-value"][:1]


def test_what_a_process_printed_before_it_left_is_not_told() -> None:
    failure = Failure(kind="exit", phase="x", signature="x", message="exit status 2", traceback="no model acme-9")
    group = Group(id="A", orders=(("a", "b"),), trials=1, outcome=failure.message, failure=failure)

    (redacted,) = Redaction(tiny_study()).study(tiny_study(groups=(group,))).groups

    assert redacted.failure is not None
    assert redacted.failure.traceback is None


def test_values_of_variables_beyond_the_list_are_hidden(study: Study) -> None:
    redacted = Redaction(study).study(study)

    assert redacted.environment["changed"] == {"API_HOST": HIDDEN, "OMP_NUM_THREADS": "2"}
    assert redacted.command[-3:] == ("--env", f"API_HOST={HIDDEN}", "--env=OMP_NUM_THREADS=2")
    assert redacted.state_differences[0].changes[1].value == "1"
    assert redacted.reproducer is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/home/jane doe/secret/deep er/x.py", "…/x.py"),
        ("file:///tmp/ab/c.py, line 3", "…/c.py, line 3"),
        ("/opt/venv/lib/python3.11/site-packages/torch/lib/libtorch_cpu.so", "…/torch/lib/libtorch_cpu.so"),
        ("src/secret/train.py::step", "train.py::step"),
        ("either/or, and 3/4 of 1/2", "either/or, and 3/4 of 1/2"),
        ("torch/lib/libtorch_cpu.so.blas", "torch/lib/libtorch_cpu.so.blas"),
        ("(/usr/lib/x86_64-linux-gnu/libm.so.6)", "(…/libm.so.6)"),
        ("at / and //", "at / and //"),
    ],
)
def test_paths_are_shortened(text: str, expected: str) -> None:
    assert Redaction(tiny_study()).text(text) == expected


@given(st.lists(st.text(alphabet="abcdefghij _-", min_size=3, max_size=12), min_size=2, max_size=5))
def test_no_folder_of_an_absolute_path_survives(parts: list[str]) -> None:
    folders = [part.strip() or "x" for part in parts]
    path = "/" + "/".join([*folders, "file.bin"])
    redaction = Redaction(tiny_study(), roots=[str(Path(path).parent)])

    assert redaction.text(f"see {path}:3") == "see …/file.bin:3"


def test_hashes_are_equal_within_a_report_and_not_between_two() -> None:
    study = tiny_study(subjects=("acme", "numpy"))
    one, other = Redaction(study, names=True), Redaction(study, names=True)

    assert one.text("acme") == one.text("`acme`").strip("`")
    assert one.text("acme") != other.text("acme")
    together = Redactions(names=True)
    assert together.of(study).text("acme") == together.of(study).text("acme")


def test_a_source_line_is_taken_out_of_the_sentence_that_quotes_it(study: Study) -> None:
    redacted = Redaction(study).study(study)

    assert redacted.first_line is not None
    assert redacted.first_line.source == ""
    assert redacted.first_line.text.endswith("differs, `weights`")


def test_a_record_keeps_numbers_and_loses_what_was_printed(tmp_path: Path) -> None:
    import numpy as np

    study = make_run(tmp_path / "run", {("a", "b"): [{"x": np.zeros(3)}]})
    record = Evidence.of(study).record(("a", "b"))
    assert record is not None
    printed = msgspec.structs.replace(record, stdout=Stream(text="token", nbytes=5), python={"prefix": "/home/x"})

    redacted = Redaction(study).record(printed)

    assert isinstance(redacted, Record)
    assert redacted.stdout.text == ""
    assert redacted.python == {}
    assert redacted.timeline == record.timeline
    assert redacted.outputs[0].digest == record.outputs[0].digest
    assert redacted.events[1].name == "…/liba.so.1"


@pytest.mark.parametrize(
    "variable", ["OMP_NUM_THREADS", "MKL_CBWR", "OPENBLAS_NUM_THREADS", "CUBLAS_WORKSPACE_CONFIG", "PYTHONHASHSEED"]
)
def test_what_is_shown_here_is_shown_by_the_worker_too(variable: str) -> None:
    assert keeps_value(variable)
    assert environ.visible(variable, "1")


@pytest.mark.parametrize(
    "variable", ["HOME", "API_TOKEN", "MKL_SECRET", "CUPY_CACHE_DIR", "OMP_KEY_FILE", "PYTHONPATH"]
)
def test_and_the_rest_is_not(variable: str) -> None:
    assert not keeps_value(variable)


def test_state_keys_of_private_modules_are_hashed() -> None:
    study = tiny_study()
    redaction = Redaction(study, names=True)
    kinds = {
        "patches": {"digest.acme.core": "sha256:1", "digest.numpy": "sha256:2"},
        "environ": {"python.ACME_HOME": "x", "c.OMP_NUM_THREADS": "4"},
    }
    record = Record(
        trial=Trial(order=("a", "b"), repeat=0),
        effective_order=("a", "b"),
        ok=True,
        snapshots=(Snapshot(phase="t2", at=0.1, ms=1.0, kinds=kinds),),
    )

    found = redaction.record(record).snapshots[0].kinds

    assert "digest.numpy" in found["patches"]
    assert not any("acme" in key for key in found["patches"])
    assert found["environ"] == {"python.ACME_HOME": HIDDEN, "c.OMP_NUM_THREADS": "4"}


def test_machines_and_the_cluster_are_not_named(study: Study) -> None:
    machine = Machine(
        host="node-7.jane",
        cpu="EPYC",
        features="f",
        cores=2,
        kernel="6.1",
        libc="glibc 2.36",
        python="cpython 3.12.1",
        gpus=("GPU-0badc0de-1",),
    )
    places = ("--scheduler", "tcp://node-7:8786", "--workers=tcp://node-8:1")
    notes = ("the trials ran on 2 machines: `node-7.jane` with GPU-0badc0de-1 (3 trials), `other` (2 trials)",)
    whole = msgspec.structs.replace(
        study, machines=(machine,), notes=notes, command=(*study.command, *places, "--repeat", "3")
    )
    redacted = Redaction(whole).study(whole)

    text = msgspec.json.encode(redacted).decode()
    assert "node-" not in text
    assert "0badc0de" not in text
    assert redacted.machines[0].cpu == "EPYC"
    assert redacted.command[-5:] == ("--scheduler", HIDDEN, f"--workers={HIDDEN}", "--repeat", "3")

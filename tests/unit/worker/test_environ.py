# The worker has no annotations: it runs on interpreters that would have to load `typing` for them.
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import ctypes
import os

import pytest
from hypothesis import given, strategies as st

from reprocheck.worker.snapshot import environ


@pytest.mark.parametrize(
    "name",
    ["OMP_NUM_THREADS", "MKL_CBWR", "CUBLAS_WORKSPACE_CONFIG", "TORCHINDUCTOR_CACHE_DIR", "LD_LIBRARY_PATH", "LC_ALL"],
)
def test_what_numerical_libraries_read_is_shown(name: str) -> None:
    assert environ.shown(name, "1") == "1"


@pytest.mark.parametrize(
    "name",
    [
        "HOME",
        "AWS_SECRET_ACCESS_KEY",
        "TF_VAR_db_password",
        "TF_TOKEN_app",
        "TORCH_HUB_TOKEN",
        "PYTHON_API_KEY",
        "omp_x",
    ],
)
def test_everything_else_is_a_digest(name: str) -> None:
    shown = environ.shown(name, "hunter2")
    assert "hunter2" not in shown or name == "omp_x"


def test_an_url_with_credentials_is_a_digest() -> None:
    assert environ.shown("PYTHON_INDEX", "https://me:secret@example.org/simple").startswith("sha256:")


@given(st.text(st.characters(exclude_characters="\x00=", exclude_categories=["Cs"]), min_size=1, max_size=20))
def test_no_value_of_a_hidden_variable_is_ever_read_out(value: str) -> None:
    name = "REPROCHECK_TEST_SECRET"
    os.environ[name] = "=" + value + "="
    try:
        found = environ.read()
    finally:
        del os.environ[name]
    assert found["python." + name].startswith("sha256:")
    assert found["start." + name] == "absent"
    assert "=" + value + "=" not in repr(found)


def test_set_in_c_only(monkeypatch: pytest.MonkeyPatch) -> None:
    libc = ctypes.CDLL(None)
    monkeypatch.delenv("OMP_DISPLAY_ENV", raising=False)
    libc.setenv(b"OMP_DISPLAY_ENV", b"false", 1)
    try:
        found = environ.read()
    finally:
        libc.unsetenv(b"OMP_DISPLAY_ENV")
    assert found["c.OMP_DISPLAY_ENV"] == "false"
    assert "python.OMP_DISPLAY_ENV" not in found


def test_removed_in_c_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MKL_TEST", "1")
    ctypes.CDLL(None).unsetenv(b"MKL_TEST")
    assert environ.read()["c.MKL_TEST"] == "absent"


def test_c_sees_what_python_sees() -> None:
    # Not the other way round: importing readline sets COLUMNS and LINES for C alone.
    assert dict(os.environ).items() <= environ.in_c().items()


def test_many_and_long_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MKL_LONG", "x" * 100_000)
    for number in range(600):
        monkeypatch.setenv(f"MKL_{number}", str(number))
    native = environ.in_c()
    assert native["MKL_LONG"] == "x" * 100_000
    assert native["MKL_599"] == "599"


def test_bytes_that_are_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environb, b"MKL_BYTES", b"\xff\xfe")
    assert environ.read()["python.MKL_BYTES"] == "\udcff\udcfe"
    assert environ.in_c()["MKL_BYTES"] == "\udcff\udcfe"


def test_change_and_removal_since_exec(monkeypatch: pytest.MonkeyPatch) -> None:
    start = {"OMP_NUM_THREADS": "4", "MKL_CBWR": "AVX2"}
    monkeypatch.setattr(environ, "_start", start)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.delenv("MKL_CBWR", raising=False)
    found = environ.read()
    assert found["python.OMP_NUM_THREADS"] == "1"
    assert found["start.OMP_NUM_THREADS"] == "4"
    assert found["python.MKL_CBWR"] == "absent"
    assert found["start.MKL_CBWR"] == "AVX2"

# The worker has no annotations: it runs on interpreters that would have to load `typing` for them.
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import gc
import locale
import os
import random
import signal
import sys
import threading
import warnings
from collections.abc import Iterator

import pytest

from reprocheck.worker.snapshot import fp, modules, process, quiet


@pytest.fixture
def restored_affinity() -> Iterator[set[int]]:
    before = os.sched_getaffinity(0)
    yield before
    os.sched_setaffinity(0, before)


def test_every_part_can_be_read() -> None:
    assert not [value for value in process.read().values() if isinstance(value, dict) and "error" in value]


def test_umask_is_read_without_setting_it() -> None:
    before = os.umask(0o027)
    try:
        assert process.read()["umask"] == "0027"
        assert process.read()["umask"] == "0027"
    finally:
        os.umask(before)


@pytest.mark.parametrize(
    ("cpus", "text"),
    [((), ""), ((3,), "3"), ((0, 1), "0-1"), ((0, 1, 2, 8, 10, 11), "0-2,8,10-11"), ((5, 4), "4-5")],
)
def test_cpu_sets(cpus: tuple[int, ...], text: str) -> None:
    assert process._cpus(cpus) == text


def test_affinity(restored_affinity: set[int]) -> None:
    os.sched_setaffinity(0, {min(restored_affinity)})
    assert process.read()["affinity"] == str(min(restored_affinity))


def test_threads_are_counted_by_name() -> None:
    before = process.read()
    release = threading.Event()
    thread = threading.Thread(target=release.wait, daemon=True)
    thread.start()
    try:
        after = process.read()
    finally:
        release.set()
        thread.join()
    assert after["threads.count"] == before["threads.count"] + 1
    assert sum(after["threads.names"].values()) == after["threads.count"]


def test_hooks_name_their_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    def mine(*_: object) -> None:
        pass

    monkeypatch.setattr(sys, "excepthook", mine)
    found = process.read()
    assert found["hook.except"].endswith("test_hooks_name_their_owner.<locals>.mine")
    assert found["hook.import"] == "builtins.__import__"


def test_warning_filters() -> None:
    before = process.read()["warnings.filters"]
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="numerical", category=RuntimeWarning)
        assert process.read()["warnings.filters"][0] == "error:numerical:builtins.RuntimeWarning::0"
    assert process.read()["warnings.filters"] == before


def test_random_state_without_advancing_it() -> None:
    random.seed(5)
    first = process.read()["random_state"]
    assert process.read()["random_state"] == first
    assert random.random() == random.Random(5).random()
    assert process.read()["random_state"] != first


def test_signal_handlers() -> None:
    def handler(*_: object) -> None:
        pass

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        assert process.read()["signals.python"][str(signal.SIGUSR1.value)].endswith("handler")
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_locale_by_category() -> None:
    before = locale.setlocale(locale.LC_NUMERIC)
    try:
        locale.setlocale(locale.LC_NUMERIC, "C.UTF-8")
    except locale.Error:
        pytest.skip("no C.UTF-8 locale here")
    try:
        assert process.read()["locale.numeric"] == "C.UTF-8"
    finally:
        locale.setlocale(locale.LC_NUMERIC, before)


def test_collection_is_told_as_the_user_left_it() -> None:
    assert gc.isenabled()
    with quiet():
        assert not gc.isenabled()
        assert process.read()["gc.enabled"] is True
    assert gc.isenabled()
    gc.disable()
    try:
        with quiet():
            assert process.read()["gc.enabled"] is False
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_limits_are_soft_and_hard() -> None:
    soft, _, hard = process.read()["limit.open_files"].partition("/")
    assert soft.isdigit()
    assert hard


def test_reading_loads_no_module() -> None:
    process.read()
    before = set(sys.modules)
    process.read()
    assert set(sys.modules) == before


def test_fp_of_a_healthy_thread() -> None:
    assert fp.read() == {"ftz": False, "daz": False, "rounding": "nearest"}


def test_modules_are_new_once(monkeypatch: pytest.MonkeyPatch) -> None:
    modules.read()
    monkeypatch.setitem(sys.modules, "a_new_toolbox", type(sys)("a_new_toolbox"))
    monkeypatch.setitem(sys.modules, "a_new_toolbox.inner", type(sys)("a_new_toolbox.inner"))
    assert modules.read()["new"] == ["a_new_toolbox"]
    assert modules.read()["new"] == []

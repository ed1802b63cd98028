"""The table of keys agrees with the readers, and with itself."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import pytest
from hypothesis import given, strategies as st

from reprocheck.explain import keys
from reprocheck.worker import snapshot

READERS = sorted(module.name for module in pkgutil.iter_modules(snapshot.__path__))


@pytest.mark.parametrize("reader", READERS)
def test_every_reader_has_rows_with_its_kind_and_phases(reader: str) -> None:
    module = importlib.import_module(f"reprocheck.worker.snapshot.{reader}")
    rows = [info for info in keys.KEYS if info.reader == reader]
    assert rows
    for info in rows:
        assert info.pattern.partition(".")[0] == module.name
        assert info.phases == module.phases


def test_every_reader_is_read_at_some_phase() -> None:
    assert sorted((*snapshot.EARLY, *snapshot.LATE, *snapshot.LAST)) == READERS
    assert set(snapshot.WHEN_LOADED.values()) <= set(READERS)


def test_no_row_is_written_twice() -> None:
    patterns = [info.pattern for info in keys.KEYS]
    assert len(patterns) == len(set(patterns))


def test_no_row_is_hidden_by_an_earlier_one() -> None:
    hidden = [info.pattern for info in keys.KEYS if keys.lookup(info.pattern) is not info]
    assert hidden == []


@pytest.mark.parametrize("info", keys.KEYS, ids=lambda info: info.pattern)
def test_the_reason_is_one_sentence(info: keys.KeyInfo) -> None:
    assert info.why.endswith(".")
    assert len(info.why) < 120


@pytest.mark.parametrize(
    ("key", "severity", "compare"),
    [
        ("environ.python.OMP_NUM_THREADS", "numeric", "value"),
        ("environ.c.MKL_THREADING_LAYER", "numeric", "value"),
        ("environ.c.SOMETHING", "latent", "value"),
        ("environ.start.OMP_NUM_THREADS", "informational", "never"),
        ("libraries.binding.torch/lib/libtorch_cpu.so.openmp", "numeric", "value"),
        ("libraries.binding.torch/lib/libtorch_cpu.so.malloc", "performance", "value"),
        ("libraries.family.cublas", "informational", "set"),
        ("libraries.new", "informational", "never"),
        ("torch.threads.intra", "numeric", "value"),
        ("torch.cudnn.version", "numeric", "value"),
        ("torch.alloc.0.segments", "performance", "value"),
        ("patches.torch.save", "numeric", "value"),
        ("patches.digest.torch", "latent", "value"),
        ("somebody.elses.probe", "latent", "value"),
        ("process.affinity.threads.0-1", "performance", "value"),
        ("process.threads.names.openmp_worker", "performance", "value"),
        ("environ.others.HOME", "informational", "value"),
    ],
)
def test_known_keys(key: str, severity: str, compare: str) -> None:
    info = keys.lookup(key)
    assert (info.severity, info.compare) == (severity, compare)


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("libraries.new", ["b", "a"], None),
        ("libraries.family.openmp", ["b", "a"], ["a", "b"]),
        ("libraries.objects", [{"path": "b"}, {"path": "a"}], [{"path": "a"}, {"path": "b"}]),
        ("numpy.errcall", "<function f at 0x7f00aa00bb00>", "<function f at 0x…>"),
        ("cupy.preload", {"x": ["at 0x7f00aa00bb00"]}, {"x": ["at 0x…"]}),
        ("torch.sdp.priority", [1, 0], [1, 0]),
        ("fp.control", "0x1f80", "0x1f80"),
    ],
)
def test_comparable(key: str, value: Any, expected: Any) -> None:
    assert keys.comparable(key, value) == expected


@given(st.permutations(["a", "b", "c", "d"]))
def test_sets_do_not_care_for_order(paths: list[str]) -> None:
    assert keys.comparable("libraries.family.blas", paths) == ["a", "b", "c", "d"]


@given(st.text(max_size=40))
def test_any_key_can_be_looked_up(key: str) -> None:
    assert keys.lookup(key).severity in ("numeric", "performance", "latent", "informational")


def test_markdown_has_a_row_for_each_pattern() -> None:
    rows = keys.markdown().splitlines()
    assert len(rows) == 2 + len(keys.KEYS)
    assert all(row.count(" | ") == 5 for row in rows[2:])

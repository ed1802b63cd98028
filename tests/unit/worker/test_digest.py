# The worker has no annotations: it runs on interpreters that would have to load `typing` for them.
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import hashlib
import random

import pytest
from hypothesis import given, strategies as st

from reprocheck.worker import digest


@given(st.binary(max_size=300))
def test_pure_python_agrees_with_hashlib(raw: bytes) -> None:
    assert digest._sha256(raw) == hashlib.sha256(raw).hexdigest()


@pytest.mark.parametrize("size", [0, 1, 55, 56, 57, 63, 64, 65, 119, 120, 128])
def test_block_boundaries(size: int) -> None:
    assert digest._sha256(b"a" * size) == hashlib.sha256(b"a" * size).hexdigest()


@given(st.text(max_size=50))
def test_short_is_short_and_stable(text: str) -> None:
    assert digest.short(text) == digest.short(text)
    assert len(digest.short(text)) == len("sha256:") + 16


def test_lone_surrogates_are_kept_apart() -> None:
    assert digest.short("\udc80") != digest.short("\udc81")


def test_a_draw_changes_the_digest_of_a_generator() -> None:
    generator = random.Random(1)
    before = digest.numbers(generator.getstate()[1])
    assert digest.numbers(random.Random(1).getstate()[1]) == before
    generator.random()
    assert digest.numbers(generator.getstate()[1]) != before

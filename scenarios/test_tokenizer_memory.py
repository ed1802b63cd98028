"""Two memory tests for the tokenizer: a limit that one way of encoding keeps and the other is expected to break.

Run by `python -m pytest scenarios/test_tokenizer_memory.py`.

Why the second test is `xfail` and not `assert peak > LIMIT`. What the team wants is that encoding stays below the
limit; that sentence is the test, and it is the same for both ways. An inverted assertion would state the opposite of
the wish and would have to be found and turned round on the day somebody makes `encode` frugal; until then a reader
must guess whether large memory is demanded. `xfail` says: wanted, not met, and here is the reason; the run lists it as
a known defect. `strict=True` makes the day it starts to pass a failure of the run, so the mark cannot outlive the
defect. And `raises=AssertionError` makes sure that it fails for the stated reason: a crash or a typo in the test stays
an error.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tokenizer_memory import LIMIT, Tokenizer, corpus, peak_memory


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train(corpus(30_000), 320)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("corpus") / "corpus.txt"
    path.write_text(corpus(600_000))
    return path


def test_encode_iterable_memory_usage(tokenizer: Tokenizer, file: Path) -> None:
    with file.open() as lines:
        peak, _ = peak_memory(lambda: sum(1 for _ in tokenizer.encode_iterable(lines)))
    assert peak < LIMIT


@pytest.mark.xfail(
    reason="Tokenizer.encode holds the whole file and all of its tokens; use encode_iterable for large files",
    raises=AssertionError,
    strict=True,
)
def test_encode_memory_usage(tokenizer: Tokenizer, file: Path) -> None:
    peak, _ = peak_memory(lambda: tokenizer.encode(file.read_text()))
    assert peak < LIMIT

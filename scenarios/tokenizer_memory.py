# /// script
# requires-python = ">=3.11"
# dependencies = ["torch==2.13.0", "numpy"]
#
# [tool.reprocheck]
# imports = ["numpy", "torch"]
# workload = "run"
# expect = "identical"
# story = "A byte-pair tokenizer, whole files against line by line: the same tokens, and only one keeps memory small."
# ///
"""A byte-pair tokenizer and what its two ways of encoding cost.

What it shows: `Tokenizer.encode` takes a text and returns a list; `Tokenizer.encode_iterable` takes lines and yields
tokens as they come. The tokens are the same. The memory is not: text and list of a 0.6 MB file take 9 MB, while
the iterator needs a line. `test_tokenizer_memory.py` beside this file turns that into two pytest tests with
a limit of 1 MB, one of which is *expected* to fail, and says why that is the better test.

What it asserts: both ways give the same tokens; decoding gives the text back, byte for byte; merges are learned in the
order of their counts; the iterator stays below 1 MB of additional memory, measured by `tracemalloc`.

What it prints: peak memory of both ways (a measurement, so not recorded). What it records: merges, tokens, and the
counts of token pairs by torch.

What to expect: `identical`: pure Python, a control. What it needs: numpy and torch, about 4 seconds a trial.
"""

from __future__ import annotations

import random
import re
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import kit
import numpy as np
import torch

__all__ = ["LIMIT", "Tokenizer", "corpus", "peak_memory", "run"]

LIMIT = 1_000_000
"""Bytes of additional memory that encoding may take: 1 MB."""

VOCABULARY = 384
WORD = re.compile(rb" ?[A-Za-z]+| ?[0-9]+| ?[^\sA-Za-z0-9]+|\s")


class Tokenizer:
    """Byte-pair encoding: https://aclanthology.org/P16-1162. Token n < 256 is a byte, 256 + n is merge n."""

    def __init__(self, merges: list[tuple[int, int]]) -> None:
        self.merges = merges
        self.rank = {pair: number for number, pair in enumerate(merges)}
        self.bytes = [bytes([n]) for n in range(256)]
        for left, right in merges:
            self.bytes.append(self.bytes[left] + self.bytes[right])
        self._word = lru_cache(maxsize=2048)(self._encode_word)  # bounded: an iterator must not fill it for ever

    @classmethod
    def train(cls, text: str, vocabulary: int) -> Tokenizer:
        """Learn merges from `text` until there are `vocabulary` tokens; ties go to the larger pair of byte strings."""
        words = {tuple(word): count for word, count in Counter(WORD.findall(text.encode())).items()}
        tokenizer = cls([])
        while len(tokenizer.bytes) < vocabulary:
            pairs: Counter[tuple[int, int]] = Counter()
            for word, count in words.items():
                for pair in pairwise(word):
                    pairs[pair] += count
            best = max(pairs, key=lambda pair: (pairs[pair], tokenizer.bytes[pair[0]], tokenizer.bytes[pair[1]]))
            words = {tuple(merge(word, best, len(tokenizer.bytes))): count for word, count in words.items()}
            tokenizer = cls([*tokenizer.merges, best])
        return tokenizer

    def encode(self, text: str) -> list[int]:
        """All tokens of `text`, in a list."""
        return [token for word in WORD.findall(text.encode()) for token in self._word(word)]

    def encode_iterable(self, lines: Iterable[str]) -> Iterator[int]:
        """The tokens of `lines`, as they come. A line must end where a word may end, as lines do."""
        for line in lines:
            for word in WORD.finditer(line.encode()):
                yield from self._word(word.group())

    def decode(self, tokens: Iterable[int]) -> str:
        """The text of `tokens`; bytes that are no UTF-8 become U+FFFD."""
        return b"".join(self.bytes[token] for token in tokens).decode(errors="replace")

    def _encode_word(self, word: bytes) -> tuple[int, ...]:
        tokens = list(word)
        while len(tokens) > 1:
            rank = min(self.rank.get(pair, len(self.rank)) for pair in pairwise(tokens))
            if rank == len(self.rank):
                break
            tokens = merge(tokens, self.merges[rank], 256 + rank)
        return tuple(tokens)


def merge(tokens: Iterable[int], pair: tuple[int, int], token: int) -> list[int]:
    """`tokens` with every occurrence of `pair`, from the left, replaced by `token`."""
    merged: list[int] = []
    waiting = None
    for current in tokens:
        if waiting is not None and (waiting, current) == pair:
            merged.append(token)
            waiting = None
            continue
        if waiting is not None:
            merged.append(waiting)
        waiting = current
    return merged if waiting is None else [*merged, waiting]


def corpus(size: int) -> str:
    """About `size` bytes of lines made of invented words, of which a few are common, some numbers and some umlauts."""
    rng = random.Random(4)  # noqa: S311 - text, not secrets
    syllables = ["ta", "ke", "mi", "no", "ru", "shi", "lo", "vä", "gre", "po", "nek", "ün"]
    words = ["".join(rng.choices(syllables, k=rng.randint(1, 4))) for _ in range(1500)]
    weights = [1 / (n + 1) for n in range(len(words))]
    lines, length = [], 0
    while length < size:
        chosen = rng.choices(words, weights, k=12)
        line = " ".join(chosen).capitalize() + f", {rng.randint(0, 99)}.\n"
        lines.append(line)
        length += len(line.encode())
    return "".join(lines)


def peak_memory(function: Callable[[], Any]) -> tuple[int, Any]:
    """The most bytes that were allocated by Python beyond those at the start, and what `function` returned."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        result = function()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return peak - before, result


def run() -> dict[str, Any]:
    text = corpus(600_000)
    tokenizer = Tokenizer.train(text[:60_000], VOCABULARY)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "corpus.txt"
        file.write_text(text)
        whole_peak, tokens = peak_memory(lambda: tokenizer.encode(file.read_text()))
        with file.open() as lines:
            iterable_peak, count = peak_memory(lambda: sum(1 for _ in tokenizer.encode_iterable(lines)))
        with file.open() as lines:
            one_by_one = list(tokenizer.encode_iterable(lines))
    kit.measured(
        f"encoding {len(text.encode()) / 1e6:.1f} MB",
        {"whole": {"peak MB": whole_peak / 1e6}, "line by line": {"peak MB": iterable_peak / 1e6}},
    )

    assert one_by_one == tokens
    assert count == len(tokens)
    assert tokenizer.decode(tokens) == text
    assert iterable_peak < LIMIT, f"encode_iterable took {iterable_peak / 1e6:.2f} MB"
    return {
        "merges": np.array(tokenizer.merges, np.int32),
        "tokens": np.array(tokens, np.int32),
        "pair_counts": pair_counts(torch.tensor(tokens)),
        "bytes_per_token": len(text.encode()) / len(tokens),
    }


def pair_counts(tokens: torch.Tensor) -> torch.Tensor:
    """(VOCABULARY, VOCABULARY): how often one token follows another, the table of a bigram model."""
    counts = torch.zeros(VOCABULARY * VOCABULARY, dtype=torch.int64)
    pairs = tokens[:-1] * VOCABULARY + tokens[1:]
    return counts.scatter_add_(0, pairs, torch.ones_like(pairs)).reshape(VOCABULARY, VOCABULARY)


if __name__ == "__main__":
    kit.main(run)

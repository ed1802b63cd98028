from __future__ import annotations

from reprocheck.config import closest, did_you_mean


def test_the_closest_name_is_offered_and_nothing_far_away() -> None:
    assert closest("repeats", ["repeat", "seed"]) == "repeat"
    assert closest("zzz", ["repeat", "seed"]) is None
    assert closest("repeats", ["repeat"], cutoff=0.99) is None
    assert did_you_mean("repeats", ["repeat"]) == ": did you mean `repeat`?"
    assert did_you_mean("zzz", ["repeat"]) == "."
    assert did_you_mean("zzz", ["repeat"], "; nothing is.") == "; nothing is."

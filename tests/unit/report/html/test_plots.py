"""Pictures: themed, allowed by the policy, told in words, and no larger than they must be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from markupsafe import Markup

from reprocheck.report.html.maps import Map
from reprocheck.report.html.plots import Pictures, Span, Track

HEAT = np.zeros((120, 200))
HEAT[10:40, 5:50] = np.arange(1, 1351, dtype=float).reshape(30, 45)
HEAT[100, 100] = np.nan


def drawn() -> dict[str, Callable[[Pictures], Markup]]:
    tracks = [
        Track(
            label="a,b <A> $x$",
            spans=(
                Span(start=0.0, stop=1.0, kind="import", label="a"),
                Span(start=1.0, stop=1.001, kind="import", label="b"),
                Span(start=1.1, stop=3.0, kind="workload", label="workload"),
            ),
            libraries=(0.2, 0.4),
            changes=(0.3,),
        )
    ] * 2
    profile = np.where(np.arange(300) % 7 == 0, 10.0 ** (np.arange(300) % 9), 0.0)
    profile[3] = np.nan
    return {
        "histogram": lambda p: p.histogram({"1": 4, "5-8": 100_000, f"{2**40 + 1}-{2**41}": 2}, label="histogram"),
        "histogram of one": lambda p: p.histogram({"1": 1}, label="one"),
        "profile": lambda p: p.difference(Map(values=profile, unit="ulp", shape=(3000,)), label="profile"),
        "heat map": lambda p: p.difference(Map(values=HEAT, unit="ulp", shape=(120, 200)), label="heat"),
        "flat heat map": lambda p: p.difference(
            Map(values=np.full((2, 3), 4.0), unit="difference", shape=(2, 3)), label="flat"
        ),
        "booleans": lambda p: p.difference(Map(values=np.eye(3), unit="differs", shape=(3, 3)), label="booleans"),
        "only NaN": lambda p: p.difference(Map(values=np.full((2, 2), np.nan), unit="ulp", shape=(2, 2)), label="nan"),
        "overview": lambda p: p.overview(np.zeros((24, 1000), np.uint8), outputs=5000, label="overview"),
        "timeline": lambda p: p.timeline(tracks, label="timeline"),
        "bars": lambda p: p.bars([("a", (1.0, 2.0)), ("b", (0.0, 0.0))], ("used", "free"), unit="MiB", label="bars"),
        "trend": lambda p: p.trend([(86400.0 * 9, 3.0, False), (0.0, 0.0, True)], label="trend"),
    }


@pytest.mark.parametrize("name", list(drawn()))
def test_a_picture(name: str, checked: Callable[[str], Any]) -> None:
    svg = drawn()[name](Pictures())

    assert isinstance(svg, Markup)
    assert svg.startswith('<svg viewBox="0 0 ')
    assert 'role="img"' in svg
    for unwanted in ("style=", "<style", "<metadata", "http", "mathdefault", "<title", "#0"):
        assert unwanted not in svg, unwanted
    assert len(svg) < 40_000


def test_two_pictures_share_no_ids() -> None:
    import re

    pictures = Pictures()
    first, second = (set(re.findall(r'id="([^"]+)"', drawn()["heat map"](pictures))) for _ in range(2))

    assert first
    assert not first & second


def test_labels_are_text() -> None:
    svg = drawn()["timeline"](Pictures())

    assert "a,b &lt;A&gt; $x$" in svg
    assert Pictures().histogram({"1": 1}, label='<"\u202e').count('aria-label="&lt;&quot;\\u202e"') == 1


def test_a_glyph_that_matplotlib_lacks_is_no_warning() -> None:
    track = Track(label="数値", spans=(Span(start=0.0, stop=1.0, kind="import", label="数"),))

    assert "数値" in Pictures().timeline([track], label="x")

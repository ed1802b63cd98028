"""Views of the page over many studies: worst first, a link to each, and how each workload fared over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from reprocheck.model import Study
from reprocheck.report.history import Series, worst_first
from reprocheck.report.html.page import render_page
from reprocheck.report.html.plots import Pictures, available
from reprocheck.report.html.text import Limits
from reprocheck.report.html.verdict import TONES, sentence
from reprocheck.report.plain import clip, visible

__all__ = ["index_html"]

MOST_POINTS = 30
MOST_PICTURES = 12


def index_html(studies: Sequence[Study], links: Mapping[int, str], history: Sequence[Series], *, redacted: bool) -> str:
    """The page; `links` gives the address of a study's own page by its place in `studies`.

    Raises `UsageError` when Jinja2 is not installed.
    """
    places = sorted(range(len(studies)), key=lambda place: worst_first(studies[place]))
    counts: dict[str, int] = {}
    for place in places:
        counts[studies[place].verdict] = counts.get(studies[place].verdict, 0) + 1
    agree = sum(1 for study in studies if study.exit_code == 0)

    def view(limits: Limits) -> dict[str, Any]:
        shown = limits.outputs * 3
        pictures = Pictures() if available() and limits.pictures else None
        return {
            "count": len(studies),
            "agree": agree,
            "tone": TONES.get(studies[places[0]].verdict, "bad") if places else "good",
            "counts": [(verdict, TONES.get(verdict, "bad"), number) for verdict, number in counts.items()],
            "rows": [_row(studies[place], links.get(place)) for place in places[:shown]],
            "more": max(0, len(places) - shown),
            "history": [
                _series(series, pictures if number < MOST_PICTURES else None)
                for number, series in enumerate(history[: limits.states])
            ],
            "more_history": max(0, len(history) - limits.states),
            "redacted": redacted,
            "without_pictures": bool(history) and not available(),
        }

    return render_page("index.html.j2", view)


def _row(study: Study, link: str | None) -> dict[str, Any]:
    confirmed = next((cause for cause in study.causes if cause.status == "confirmed"), None)
    return {
        "study": study,
        "link": link,
        "tone": TONES.get(study.verdict, "bad"),
        "sentence": sentence(study),
        "differing": sum(1 for output in study.outputs if output.differs),
        "outputs": len(study.outputs),
        "orders": sum(1 for arm in study.orders if not arm.presence),
        "cause": confirmed.text if confirmed is not None else "",
        "remedy": study.remedy.text if study.remedy is not None and study.remedy.agrees else "",
        "when": study.started[:16].replace("T", " "),
    }


def _series(series: Series, pictures: Pictures | None) -> dict[str, Any]:
    points = series.points[-MOST_POINTS:]
    last = points[-1].when
    picture = None
    if pictures is not None:
        name = clip(visible(series.workload), 60)
        told = [
            (last - point.when, 100 * point.differing / point.outputs if point.outputs else 0.0, point.agreed)
            for point in points
        ]
        picture = pictures.trend(told, label=f"Share of differing outputs of {name} over the last {len(points)} runs")
    return {
        "workload": series.workload,
        "subjects": series.subjects,
        "picture": picture,
        "points": [
            {
                "when": datetime.fromtimestamp(point.when, UTC).strftime("%Y-%m-%d %H:%M"),
                "tone": TONES.get(point.verdict, "bad"),
                "point": point,
            }
            for point in reversed(points)
        ],
        "left_out": len(series.points) - len(points),
        "turned": _turned(series),
    }


def _turned(series: Series) -> str:
    """The last change of the verdict, in a sentence."""
    points = series.points
    for before, after in zip(points[-2::-1], points[:0:-1], strict=False):
        if before.verdict != after.verdict:
            when = datetime.fromtimestamp(after.when, UTC).strftime("%Y-%m-%d %H:%M")
            return f"{after.verdict} since {when}, {before.verdict} before"
    return f"{points[-1].verdict} in all {len(points)} runs"

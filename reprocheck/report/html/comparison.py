"""The page of `reprocheck diff`: any two runs, records or files, with the same table and pictures as a study has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reprocheck.compare.outputs import rank
from reprocheck.compare.source import Source
from reprocheck.model import Difference
from reprocheck.report.html.page import render_page
from reprocheck.report.html.plots import Pictures, available
from reprocheck.report.html.size import difference_rows, pictured
from reprocheck.report.html.text import Limits
from reprocheck.report.text import passing

__all__ = ["diff_html"]


def diff_html(
    differences: Mapping[str, Difference],
    names: tuple[str, str],
    sources: tuple[Mapping[str, Source], Mapping[str, Source]],
) -> str:
    """What `compare_maps` found between two sides called `names`; the second is the reference.

    Raises `UsageError` when Jinja2 is not installed.
    """
    differing = [(name, item) for name, item in differences.items() if item.kind != "equal"]
    differing.sort(key=lambda pair: rank(pair[1]), reverse=True)
    outside = [item for _, item in differing if not item.within]
    equal = [name for name, item in differences.items() if item.kind == "equal"]

    def view(limits: Limits) -> dict[str, Any]:
        pictures = Pictures() if available() and limits.pictures else None
        cards = []
        for name, item in differing[: limits.pictures]:
            pair = (sources[0][name], sources[1][name]) if name in sources[0] and name in sources[1] else None
            cards.append(pictured((name, item), pair, pictures))
        return {
            "verdict": "differ" if outside else "within tolerance" if differing else "identical",
            "tone": "bad" if outside else "good",
            "names": names,
            "count": len(differing),
            "total": len(differences),
            "rows": difference_rows(differing[: limits.outputs], {}),
            "more": max(0, len(differing) - limits.outputs),
            "cards": cards,
            "passing": passing([item.passes_at for _, item in differing]) if outside else "",
            "equal": equal[: limits.outputs],
            "equal_count": len(equal),
            "without_pictures": not available(),
        }

    return render_page("diff.html.j2", view)

"""HTML reports: one self-contained file, readable without JavaScript, under a strict policy, at most 1 MB."""

from __future__ import annotations

from typing import Any

from reprocheck.report.evidence import Evidence
from reprocheck.report.html.levels import levels_view
from reprocheck.report.html.libraries import libraries_view
from reprocheck.report.html.loading import loading_view
from reprocheck.report.html.orders import Letters, orders_view, suite_view
from reprocheck.report.html.page import LARGEST, render_page
from reprocheck.report.html.plots import Pictures, available
from reprocheck.report.html.rest import allocator_view, environment_view, repeat_view
from reprocheck.report.html.size import size_view
from reprocheck.report.html.start import start_view
from reprocheck.report.html.text import Limits
from reprocheck.report.html.verdict import verdict_view
from reprocheck.report.html.why import why_view

__all__ = ["LARGEST", "study_html"]


def study_html(evidence: Evidence) -> str:
    """The report of one study.

    Raises `UsageError` when Jinja2 is not installed; without matplotlib the page says that its pictures are left out.
    """
    study = evidence.study
    letters = Letters(study)

    def view(limits: Limits) -> dict[str, Any]:
        pictures = Pictures() if available() and limits.pictures else None
        return {
            "study": study,
            "redacted": evidence.redacted,
            "top": verdict_view(evidence),
            "orders": orders_view(evidence, letters, limits, pictures),
            "levels": levels_view(study, letters, limits),
            "suite": suite_view(study, limits),
            "start": start_view(evidence, limits),
            "why": why_view(evidence, letters, limits),
            "size": size_view(evidence, limits, pictures),
            "loading": loading_view(evidence, letters, limits, pictures),
            "libraries": libraries_view(evidence, letters, limits),
            "allocator": allocator_view(evidence, pictures),
            "environment": environment_view(evidence, limits),
            "repeat": repeat_view(evidence),
            "without_pictures": not available(),
        }

    return render_page("study.html.j2", view)

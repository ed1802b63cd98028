"""The checks of a test session in one HTML file: a table, and under it each study's own page.

The pages are whole documents with a policy of their own, so each lies in a frame; nothing is loaded from anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from reprocheck.model import Study
from reprocheck.report.evidence import Evidence
from reprocheck.report.html import study_html
from reprocheck.words import counted

__all__ = ["session_html"]

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 90rem; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .3rem .8rem .3rem 0; vertical-align: top; border-bottom: 1px solid #8884; }
summary { cursor: pointer; padding: .5rem 0; }
iframe { width: 100%; height: 90vh; border: 1px solid #8884; background: #fff; }
:root { color-scheme: light dark; }
"""


def session_html(checks: Sequence[tuple[str, Study]]) -> str:
    """One page for all checks, given as (test, study). Raises `UsageError` when Jinja2 is not installed."""
    ordered = sorted(checks, key=lambda check: (check[1].exit_code == 0, check[0]))
    count = counted(len(ordered), "check")
    rows = [
        f'<tr><td><a href="#check-{number}">{escape(test)}</a></td><td>{escape(study.verdict)}</td>'
        f"<td>{escape(study.headline)}</td></tr>"
        for number, (test, study) in enumerate(ordered)
    ]
    frames = [
        f'<details id="check-{number}"{" open" if number == 0 and study.exit_code else ""}>'
        f"<summary>{escape(test)}</summary>"
        f'<iframe title="{escape(test)}" sandbox="allow-scripts" loading="lazy" srcdoc="{escape(_page(study))}">'
        "</iframe></details>"
        for number, (test, study) in enumerate(ordered)
    ]
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>reprocheck: {count}</title>\n<style>{_STYLE}</style>\n</head>\n<body>",
            f"<h1>Import order checks</h1>\n<p>{count}</p>",
            "<table>\n<tr><th>test</th><th>verdict</th><th>study</th></tr>",
            *rows,
            "</table>",
            *frames,
            "</body>\n</html>\n",
        ]
    )


def _page(study: Study) -> str:
    return study_html(Evidence.of(study, Path(study.run_dir)))

"""Putting a page together: sections, templates, policy, and the promise that it stays small."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from reprocheck.errors import UsageError
from reprocheck.report.html.text import LEVELS, Limits, finalizer, name, prose
from reprocheck.report.plain import clip, visible

if TYPE_CHECKING:
    import jinja2

__all__ = ["LARGEST", "render_page"]

LARGEST = 1_000_000
"""Bytes a page may have, whatever it shows."""


def render_page(template: str, view: Callable[[Limits], dict[str, Any]]) -> str:
    """The page that `template` makes of `view`, at most `LARGEST` bytes: with less of everything if need be.

    Raises `UsageError` when Jinja2 is not installed.
    """
    text = ""
    for limits in LEVELS:
        environment = _environment(limits)
        style, script = _asset("style.css"), _asset("page.js")
        text = environment.get_template(template).render(
            **view(limits),
            limits=limits,
            shortened=limits is not LEVELS[0],
            style=style,
            script=script,
            policy=_policy(style, script),
        )
        if len(text.encode("utf-8", "replace")) <= LARGEST:
            break
    return text


def _environment(limits: Limits) -> jinja2.Environment:
    try:
        import jinja2
    except ImportError:
        raise UsageError(
            "HTML reports need Jinja2, which isn't installed; install it with `pip install 'reprocheck[report]'`"
        ) from None
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("reprocheck.report.html"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=finalizer(limits),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "prose": prose,
        "name": name,
        "cut": lambda value, limit: "" if value is None else clip(visible(str(value)), limit),
        "number": lambda value: f"{value:,}",
        "short": lambda value: "–" if value is None else f"{value:.3g}",
        "percent": _percent,
        "clock": lambda value: f"{value:.3f}",
        "mib": lambda value: f"{value / (1 << 20):,.1f}",
        "place": lambda index: f"[{', '.join(str(at) for at in index)}]" if index else "",
    }
    return environment


def _percent(share: float) -> str:
    """A share for people: neither all nor nothing is said of what isn't."""
    if share in (0.0, 1.0):
        return f"{100 * share:.0f} %"
    if share > 0.999:
        return "> 99.9 %"
    return "< 0.1 %" if share < 0.001 else f"{100 * share:.1f} %"


@cache
def _asset(name: str) -> str:
    folder = resources.files("reprocheck.report.html") / "templates"
    return (folder / name).read_text(encoding="utf-8").strip()


def _policy(style: str, script: str) -> str:
    """Nothing but this style, this script, and pictures that are in the page itself."""
    return (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

"""Matplotlib's SVG made fit to stand in a page: themed by the page's style sheet and allowed by its policy.

Matplotlib writes inline styles, which a strict policy forbids, fixed colours, which no dark mode changes, and metadata
with addresses. Here styles become attributes, the colours of the table below become classes, and the rest goes.
"""

from __future__ import annotations

import io
import re
import warnings
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from markupsafe import Markup

from reprocheck.report.plain import visible

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["COLOURS", "inline", "settings"]

COLOURS = {
    "ink": "#010101",
    "muted": "#020202",
    "grid": "#030303",
    "panel": "#040404",
    **{f"g{number}": f"#0{number + 1}0505" for number in range(7)},
    "import": "#060101",
    "workload": "#060201",
    "change": "#060301",
    "library": "#060401",
    "bad": "#060501",
}
"""Class -> the colour that stands for it in a figure."""

_CLASSES = {colour: name for name, colour in COLOURS.items()}
_SVG = "{http://www.w3.org/2000/svg}"
_HREF = "{http://www.w3.org/1999/xlink}href"
_DROPPED = {"metadata", "style", "title"}
_KEPT = {
    *("fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-dashoffset", "stroke-linejoin", "stroke-linecap"),
    *("fill-opacity", "stroke-opacity", "opacity", "text-anchor", "font-size", "clip-path", "fill-rule"),
}


def settings() -> Any:
    """What matplotlib has to be told for `inline`: text stays text, names of users are no formulas."""
    return {
        "svg.fonttype": "none",
        "svg.hashsalt": "reprocheck",
        "svg.image_inline": True,
        "text.parse_math": False,
        "font.size": 9,
        "axes.titlesize": 10,
        "axes.edgecolor": COLOURS["grid"],
        "axes.labelcolor": COLOURS["muted"],
        "axes.titlecolor": COLOURS["ink"],
        "axes.facecolor": "none",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "figure.facecolor": "none",
        "text.color": COLOURS["ink"],
        "xtick.color": COLOURS["muted"],
        "ytick.color": COLOURS["muted"],
        "grid.color": COLOURS["grid"],
        "legend.frameon": False,
    }


def inline(figure: Figure, *, prefix: str, label: str) -> Markup:
    """`figure` as an element for HTML: `prefix` keeps its ids apart from other figures', `label` is its alt text."""
    stream = io.StringIO()
    with warnings.catch_warnings():
        # A glyph that the measuring font lacks: the reader's browser has its own fonts.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure.savefig(stream, format="svg", metadata={"Date": None})
    root = ET.fromstring(stream.getvalue())  # noqa: S314 - matplotlib wrote it
    _clean(root, prefix)
    width, height = (float(root.get(name, "0pt").removesuffix("pt")) for name in ("width", "height"))
    root.attrib = {
        "viewBox": root.get("viewBox", ""),
        "width": f"{width * 96 / 72:.0f}",
        "height": f"{height * 96 / 72:.0f}",
        "role": "img",
        "aria-label": visible(label),
        "class": "plot",
    }
    return Markup(ET.tostring(root, encoding="unicode", short_empty_elements=True))  # noqa: S704 - serialised XML


def _clean(element: ET.Element, prefix: str) -> None:
    element.tag = element.tag.removeprefix(_SVG)
    for child in list(element):
        if child.tag.removeprefix(_SVG) in _DROPPED:
            element.remove(child)
        else:
            _clean(child, prefix)
    attributes: dict[str, str] = {}
    classes: list[str] = []
    for name, value in element.attrib.items():
        if name == "style":
            attributes |= _declarations(value)
        elif name == _HREF:
            attributes["href"] = f"#{prefix}{value[1:]}" if value.startswith("#") else value
        elif name == "id":
            # Only definitions are ever pointed at; the names of groups are for people who edit SVG files.
            if element.tag != "g":
                attributes["id"] = prefix + value
        elif not (name == "transform" and value.startswith("rotate(-0 ")):
            attributes[name] = value
    for name in ("fill", "stroke"):
        known = _CLASSES.get(attributes.get(name, ""))
        if known:
            del attributes[name]
            classes.append(f"{name[0]}-{known}")
    if element.tag == "text" and not classes and "fill" not in attributes:
        classes.append("f-ink")
    clip = attributes.get("clip-path", "")
    if clip.startswith("url(#"):
        attributes["clip-path"] = f"url(#{prefix}{clip[5:]}"
    if classes:
        attributes["class"] = " ".join(classes)
    element.attrib = {name: _short(name, value) for name, value in attributes.items()}
    if element.text is not None and not element.text.strip():
        element.text = None
    if element.tail is not None and not element.tail.strip():
        element.tail = None


def _declarations(style: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for declaration in style.split(";"):
        name, _, value = (part.strip() for part in declaration.partition(":"))
        if name == "font":
            size = re.search(r"([\d.]+)px", value)
            if size:
                found["font-size"] = size[1]
        elif name in _KEPT:
            found[name] = value
    if float(found.get("stroke-opacity", 1)) == 0:
        # How matplotlib says that there is no line.
        found = {name: value for name, value in found.items() if not name.startswith("stroke")}
    return found


def _short(name: str, value: str) -> str:
    """Coordinates to a tenth of a point, since a page holds many; scales of pictures as they are."""
    if name in ("d", "points", "x", "y", "width", "height"):
        value = re.sub(r"-?\d+\.\d{2,}", lambda found: f"{float(found[0]):.1f}".removesuffix(".0"), value)
        return " ".join(value.split())
    return value

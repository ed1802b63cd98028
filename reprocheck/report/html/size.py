"""How large the differences are: every differing output in a table, the worst ones drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from reprocheck.compare.source import Source
from reprocheck.errors import StoreError
from reprocheck.model import Difference
from reprocheck.report.evidence import Evidence
from reprocheck.report.html.maps import Map, difference_maps
from reprocheck.report.html.orders import ranked
from reprocheck.report.html.plots import Pictures
from reprocheck.report.html.text import Limits
from reprocheck.report.plain import clip, visible
from reprocheck.report.text import passing
from reprocheck.words import differ

__all__ = ["Item", "difference_rows", "pictured", "size_view"]

Item = tuple[str, Difference]


def size_view(evidence: Evidence, limits: Limits, pictures: Pictures | None) -> dict[str, Any] | None:
    """The differing outputs of a study; None when none differ."""
    study = evidence.study
    found = [output for output in ranked(study) if output.detail is not None]
    if not found:
        return None
    items = [(output.name, output.detail) for output in found if output.detail is not None]
    pairs = {output.name: output.groups for output in found}
    cards = [
        {**pictured(item, _sources(evidence, pairs[item[0]], item[0]), pictures), "groups": pairs[item[0]]}
        for item in items[: limits.pictures]
    ]
    return {
        "rows": difference_rows(items[: limits.outputs], pairs),
        "count": len(items),
        "total": len(study.outputs),
        "more": max(0, len(items) - limits.outputs),
        "passing": passing([output.passes_at for output in found]) if study.verdict != "within-tolerance" else "",
        "cards": cards,
        "pair": pairs[items[0][0]],
    }


def difference_rows(items: Sequence[Item], pairs: Mapping[str, tuple[str, ...]]) -> list[dict[str, Any]]:
    """One row a differing output: what is shown, and what it is sorted by."""
    rows = []
    for name, detail in items:
        shape = f"{detail.dtype}{list(detail.shape)}"
        other = f"{detail.other_dtype}{list(detail.other_shape)}"
        note = ""
        if detail.kind == "missing":
            note = "only in the reference" if detail.other_dtype else "not in the reference"
            shape = other if detail.other_dtype else shape
        elif detail.kind in ("dtype", "shape"):
            note = f"{other} in the reference"
        special = [
            f"{count:,} {what}"
            for count, what in (
                (detail.nan_changed, "NaN"),
                (detail.inf_changed, "infinity"),
                (detail.signed_zero, "sign of zero"),
                (detail.nan_payload, "NaN payload"),
            )
            if count
        ]
        rows.append(
            {
                "name": name,
                "shape": shape,
                "note": note,
                "special": ", ".join(special),
                "detail": detail,
                "share": detail.differing / detail.size if detail.size else 1.0,
                "groups": pairs.get(name, ()),
            }
        )
    return rows


def pictured(item: Item, sources: tuple[Source, Source] | None, pictures: Pictures | None) -> dict[str, Any]:
    """One output with its histogram and maps, as far as there are arrays and a plotting library."""
    name, detail = item
    short = clip(visible(name), 80)
    drawn: list[tuple[str, Markup]] = []
    if pictures is not None and detail.ulp_histogram and detail.size > 1:
        caption = f"How far apart: {differ(detail.differing, detail.size, 'element')}, by up to {_ulp(detail)} ULP."
        drawn.append(
            (caption, pictures.histogram(detail.ulp_histogram, label=f"Histogram of ULP distances of {short}"))
        )
    if pictures is not None and sources is not None:
        try:
            maps = difference_maps(*sources, detail)
        except StoreError as error:
            return {"name": name, "detail": detail, "pictures": drawn, "problem": str(error)}
        for found in maps:
            caption = _caption(found)
            drawn.append((caption, pictures.difference(found, label=f"Where {short} differs. {caption}")))
    return {"name": name, "detail": detail, "pictures": drawn, "problem": ""}


def _ulp(detail: Difference) -> str:
    return f"{detail.max_ulp:,}" if detail.max_ulp is not None else "–"


def _caption(found: Map) -> str:
    size = " × ".join(f"{length:,}" for length in found.shape)
    where = f"slice [{', '.join(str(at) for at in found.index)}, …], " if found.index else ""
    thinned = "; of a larger array only some rows were read" if found.thinned else ""
    if found.values.ndim == 1:
        return f"Where: {size} elements; the largest distance in each stretch{thinned}."
    return f"Where: {where}{size} elements; black is equal, the lighter the farther apart{thinned}."


def _sources(evidence: Evidence, pair: tuple[str, ...], name: str) -> tuple[Source, Source] | None:
    """The output in the farthest group and in the reference; None where the arrays are not at hand."""
    if evidence.objects is None or len(pair) != 2:
        return None
    reference, other = (evidence.outputs(group).get(name) for group in pair)
    if reference is None or other is None:
        return None
    try:
        left, right = (Source.from_object(evidence.objects.path(output.digest)) for output in (other, reference))
    except StoreError:
        return None
    return left, right

"""Native libraries by order: who is bound to whom, which copies are loaded, with version, path and build-id."""

from __future__ import annotations

from typing import Any

from reprocheck.headline import order_text
from reprocheck.model import Record
from reprocheck.report.evidence import Evidence
from reprocheck.report.html.loading import chosen_orders
from reprocheck.report.html.orders import Letters
from reprocheck.report.html.text import Limits
from reprocheck.report.text import value_text

__all__ = ["libraries_view"]

Kinds = dict[str, dict[str, Any]]


def libraries_view(evidence: Evidence, letters: Letters, limits: Limits) -> dict[str, Any] | None:
    """Bindings and loaded objects of one order of each group, side by side; None where nothing was captured."""
    columns = []
    for order, group in chosen_orders(evidence):
        record = evidence.record(order)
        kinds = _kinds(record) if record is not None else None
        if kinds is not None:
            columns.append((order, group, kinds))
    if not columns or not limits.libraries:
        return None
    states = [kinds for _, _, kinds in columns]
    bindings, objects = _bindings(states), _objects(states)
    return {
        "columns": [(group or "?", letters.shade(group), order_text(order)) for order, group, _ in columns],
        "bindings": bindings[: limits.libraries],
        "more_bindings": max(0, len(bindings) - limits.libraries),
        "objects": objects[: limits.libraries],
        "more_objects": max(0, len(objects) - limits.libraries),
        "differing": sum(1 for row in objects if row["differs"]),
        "count": len(objects),
    }


def _kinds(record: Record) -> Kinds | None:
    """The first full look at the process: before the workload, or after it."""
    for phase in ("t2", "t3"):
        for snapshot in record.snapshots:
            if snapshot.phase == phase and isinstance(snapshot.kinds.get("libraries", {}).get("objects"), list):
                return snapshot.kinds
    return None


def _bindings(states: list[Kinds]) -> list[dict[str, Any]]:
    """Consumer and family -> the copy it is bound to in each column; those that differ first."""
    keys = dict.fromkeys(key for kinds in states for key in kinds["libraries"] if key.startswith("binding."))
    rows = []
    for key in keys:
        consumer, _, family = key.removeprefix("binding.").rpartition(".")
        cells = [_bound(kinds["libraries"].get(key, "absent")) for kinds in states]
        rows.append(
            {"consumer": consumer, "family": family, "cells": cells, "differs": any(cell != cells[0] for cell in cells)}
        )
    rows.sort(key=lambda row: (not row["differs"], row["consumer"], row["family"]))
    return rows


def _bound(value: Any) -> str:
    if isinstance(value, dict) and "error" not in value:
        return ", ".join(f"{value_text(path, 120)} ({number} symbols)" for path, number in value.items())
    return value_text(value, 200)


def _objects(states: list[Kinds]) -> list[dict[str, Any]]:
    """Every loaded object -> its place in the load order of each column; what is not alike in all columns first."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for column, kinds in enumerate(states):
        versions = _versions(kinds)
        for place, one in enumerate(kinds["libraries"]["objects"], 1):
            if not isinstance(one, dict) or "path" not in one:
                continue
            path, build = str(one["path"]), str(one.get("build_id") or "")
            shown = value_text(path.replace("/../", "/…/"), 240)
            row = found.setdefault(
                (path, build),
                {
                    "name": one.get("soname") or path.rpartition("/")[2],
                    "path": shown,
                    "build": build,
                    "version": "",
                    "cells": [None] * len(states),
                },
            )
            row["cells"][column] = place
            row["version"] = row["version"] or versions.get(path.rpartition("/")[2], "")
    rows = list(found.values())
    for row in rows:
        row["differs"] = None in row["cells"]
    rows.sort(key=lambda row: (not row["differs"], min(cell or 1 << 30 for cell in row["cells"])))
    return rows


def _versions(kinds: Kinds) -> dict[str, str]:
    """File name -> version, for the libraries that were asked."""
    found: dict[str, str] = {}
    for key, value in kinds.get("cuda", {}).items():
        if key.startswith("version.") and isinstance(value, dict):
            found |= {path.rpartition("/")[2]: str(version) for path, version in value.items()}
    for key, value in kinds.get("blas", {}).items():
        if key.endswith((".version", ".config")):
            # Only the part that counts: vendors put whole sentences into it.
            found[key.rpartition(".")[0].rpartition("/")[2]] = str(value).partition("-Product")[0][:80]
    return found

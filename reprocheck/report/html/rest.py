"""The end of the page: allocators, the environment, what was not compared, and how to repeat it all."""

from __future__ import annotations

import re
import shlex
from typing import Any

from reprocheck.explain.state import flatten
from reprocheck.headline import order_text
from reprocheck.model import Record
from reprocheck.report.evidence import Evidence
from reprocheck.report.html.loading import chosen_orders
from reprocheck.report.html.plots import Pictures
from reprocheck.report.html.text import Limits
from reprocheck.report.plain import clip, visible
from reprocheck.report.text import value_text

__all__ = ["allocator_view", "environment_view", "repeat_view"]

_MIB = 1 << 20
_DEVICE = re.compile(r"torch\.alloc\.(\d+)\.reserved")


def allocator_view(evidence: Evidence, pictures: Pictures | None) -> dict[str, Any] | None:
    """What the caching allocators held when the workload had ended; None where there are none."""
    rows = []
    for order, group in chosen_orders(evidence):
        record = evidence.record(order)
        if record is not None:
            label = f"{order_text(order)}{f' ({group})' if group else ''}"
            rows += [{"label": label, **row} for row in _pools(record)]
    if not rows:
        return None
    picture = None
    if pictures is not None:
        bars = [
            (
                clip(visible(f"{row['label']}, {row['pool']}"), 50),
                (row["used"] / _MIB, row["largest"] / _MIB, max(0, row["free"] - row["largest"]) / _MIB),
            )
            for row in rows
        ]
        names = ("in use", "largest free block", "other free blocks")
        told = "; ".join(f"{row['label']}, {row['pool']}: {row['used'] / _MIB:,.1f} MiB in use" for row in rows)
        picture = pictures.bars(bars, names, unit="MiB", label=f"Memory held by the allocators. {told}")
    return {"rows": rows, "picture": picture}


def _pools(record: Record) -> list[dict[str, Any]]:
    state = next((flatten(one.kinds) for one in record.snapshots if one.phase == "t3"), {})
    pools = []
    for key, value in state.items():
        found = _DEVICE.fullmatch(key)
        if found and isinstance(value, int):
            head = key.removesuffix("reserved")
            used, largest = (_number(state.get(head + name)) for name in ("allocated", "largest_free_block"))
            pools.append(
                {
                    "pool": f"torch cuda:{found[1]}",
                    "used": used,
                    "free": value - used,
                    "largest": largest,
                    "segments": state.get(head + "segments"),
                    "blocks": state.get(head + "free_blocks"),
                    "layout": state.get(head + "segment_sizes"),
                }
            )
    total = state.get("cupy.pool.total_bytes")
    if isinstance(total, int) and total:
        used = _number(state.get("cupy.pool.used_bytes"))
        pools.append(
            {
                "pool": "cupy",
                "used": used,
                "free": total - used,
                "largest": 0,
                "segments": None,
                "blocks": state.get("cupy.pool.n_free_blocks"),
                "layout": None,
            }
        )
    return pools


def _number(value: Any) -> int:
    return value if isinstance(value, int) else 0


def environment_view(evidence: Evidence, limits: Limits) -> dict[str, Any]:
    """Interpreter and machine, variables of the trials, and the numerical variables they started with."""
    study = evidence.study
    facts = []
    variables: list[tuple[str, str, str]] = []
    for name, value in study.environment.items():
        if name in ("pinned", "changed") and isinstance(value, dict):
            variables += [(variable, value_text(text, limits.name), name) for variable, text in value.items()]
        elif name == "dropped" and isinstance(value, (list, tuple)):
            variables += [(str(variable), "", "dropped") for variable in value]
        elif value not in (None, "", [], {}):
            facts.append((name, value_text(value, limits.name)))
    known = {variable for variable, _, _ in variables}
    record = next((one for arm in evidence.arms[:1] if (one := evidence.record(arm.order)) is not None), None)
    if record is not None:
        if record.python.get("version"):
            facts.append(("python version", f"{record.python.get('implementation', '')} {record.python['version']}"))
        start = next((one.kinds.get("environ", {}) for one in record.snapshots if one.phase == "t0"), {})
        variables += [
            (key.removeprefix("python."), value_text(value, limits.name), "inherited")
            for key, value in start.items()
            if key.startswith("python.") and key.removeprefix("python.") not in known
        ]
    return {"facts": facts, "variables": variables[: limits.states * 2]}


def repeat_view(evidence: Evidence) -> dict[str, Any]:
    """The commands to paste."""
    study = evidence.study
    commands = []
    if study.command:
        commands.append(("run it again", shlex.join(study.command)))
    differing = next((arm for arm in evidence.arms if arm.group not in (None, evidence.reference)), None)
    if differing is not None and len(study.command) > 2 and not evidence.redacted:
        orders = [evidence.arms[0].order, differing.order]
        words = ["reprocheck", "state", "--diff", *(",".join(order) for order in orders if order)]
        if all(orders):
            commands.append(("what differs between the two orders", shlex.join(words)))
    if study.run_dir:
        commands.append(
            ("this report again", shlex.join(["reprocheck", "report", study.run_dir, "--html", "report.html"]))
        )
    return {"commands": commands, "reproducer": study.reproducer, "run_dir": study.run_dir}

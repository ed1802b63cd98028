"""A study as the message of a failing test: the first line says it all, the rest is what one asks next."""

from __future__ import annotations

import shlex

from reprocheck.compare.outputs import rank
from reprocheck.headline import order_text, outcomes_text
from reprocheck.model import Difference, Group, OutputDifference, StateDifference, Study
from reprocheck.report.explanation import explanation
from reprocheck.report.text import change_lines, passing
from reprocheck.words import counted

__all__ = ["failure_text"]

MAX_GROUPS = 6
MAX_ORDERS = 4
MAX_OUTPUTS = 4
MAX_STATES = 3
MAX_TESTS = 8
MAX_LINES = 40


def failure_text(study: Study) -> str:
    """The headline, then groups, worst outputs, place, cause, remedy, the command to paste and the run folder."""
    rows: list[tuple[str, str]] = [("workload", study.workload)]
    if study.factors is not None:
        rows += [("level", f"{level.text}: {level.verdict}") for level in study.factors.levels[:MAX_GROUPS]]
        rows.append(("told of", study.factors.levels[study.factors.told].text))
    rows += [(f"group {group.id}", _group(group, study)) for group in study.groups[:MAX_GROUPS]]
    if len(study.groups) > MAX_GROUPS:
        rows.append(("", f"and {len(study.groups) - MAX_GROUPS} more groups"))
    rows += _outputs(study)
    if study.suite is not None:
        rows += [("test", f"{item.test}: {outcomes_text(item)}") for item in study.suite.differing[:MAX_TESTS]]
    rows += [("place", place.text) for place in (study.origin, study.first_line) if place is not None]
    explained = explanation(study)
    rows += explained
    if not explained:
        rows += [("state", _state(item)) for item in (study.state_differences or study.hazards)[:MAX_STATES]]
    if len(study.groups) > 1:
        rows.append(("repeats", _repeats(study)))
    rows += [("note", note) for note in study.notes]
    if study.command:
        rows.append(("again", shlex.join(study.command)))
    if study.run_dir:
        rows.append(("run folder", study.run_dir))
    width = max(len(name) for name, _ in rows)
    lines = [study.headline, *(f"  {name:<{width}}  {text}".rstrip() for name, text in rows)]
    return "\n".join([*lines, *_failures(study)])


def _group(group: Group, study: Study) -> str:
    orders = [f"`{order_text(order)}`" for order in group.orders[:MAX_ORDERS]]
    if len(group.orders) > MAX_ORDERS:
        orders.append(f"and {len(group.orders) - MAX_ORDERS} more orders")
    runs = counted(group.trials, "run")
    if group.failure is not None:
        return f"{', '.join(orders)}  ({runs})  {group.outcome}"
    reference = next(item.id for item in study.groups if item.failure is None)
    return f"{', '.join(orders)}  ({runs}{', the reference' if group.id == reference else ''})"


def _outputs(study: Study) -> list[tuple[str, str]]:
    found = [(output, output.detail) for output in study.outputs if output.differs and output.detail is not None]
    found.sort(key=lambda pair: rank(pair[1]), reverse=True)
    rows = [("output", _output(output, detail)) for output, detail in found[:MAX_OUTPUTS]]
    if len(found) > MAX_OUTPUTS:
        rows.append(("", f"and {len(found) - MAX_OUTPUTS} more outputs"))
    if found and study.verdict != "within-tolerance":
        rows.append(("passes at", passing([output.passes_at for output, _ in found])))
    return rows


def _output(output: OutputDifference, detail: Difference) -> str:
    if detail.kind == "missing":
        return f"{output.name}  {'only in the reference group' if detail.other_dtype else 'not in the reference group'}"
    shape = f"{detail.dtype}{list(detail.shape)}"
    if detail.kind in ("dtype", "shape"):
        return f"{output.name}  {shape}, in the reference group {detail.other_dtype}{list(detail.other_shape)}"
    parts = [output.name, shape, f"{detail.differing:,} of {detail.size:,} differ"]
    if detail.max_ulp is not None:
        parts.append(f"by up to {detail.max_ulp:,} ulp")
    if detail.max_abs is not None:
        parts.append(f"max abs {detail.max_abs:.2g}")
    if detail.first_values is not None:
        place = "".join(f"[{index}]" for index in detail.first_index or ())
        parts.append(f"first{f' at {place}' if place else ''}: {detail.first_values[0]} != {detail.first_values[1]}")
    return "  ".join(parts)


def _state(item: StateDifference) -> str:
    return f"{item.key}  {'; '.join(change_lines(item.changes)[:2])}"


def _repeats(study: Study) -> str:
    """Whether it is order or noise: the rival explanation is always answered."""
    each = f"each order run {study.noise.repeats} times"
    if study.noise.stable:
        return f"{each}, stable within an order: not noise"
    return f"{each}, and identical runs differ too"


def _failures(study: Study) -> list[str]:
    """What the interpreter or pytest said in the first failing group."""
    for group in study.groups:
        if group.failure is not None and group.failure.traceback:
            lines = group.failure.traceback.rstrip().splitlines()
            if group.failure.kind in ("signal", "timeout"):  # faulthandler begins with the innermost frame
                shown = lines[: MAX_LINES // 2]
            elif len(lines) > MAX_LINES:
                shown = [*lines[: MAX_LINES // 4], "…", *lines[-3 * MAX_LINES // 4 :]]
            else:
                shown = lines
            orders = ", ".join(f"`{order_text(order)}`" for order in group.orders[:MAX_ORDERS])
            return ["", f"in {orders}:", *shown]
    return []

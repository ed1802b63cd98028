"""The terminal report: the verdict sentence first, then what a person asks next, in that order."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from reprocheck.headline import order_text
from reprocheck.model import Arm, Change, Difference, Group, OutputDifference, PassesAt, StateDifference, Study
from reprocheck.report.beginning import beginning
from reprocheck.report.differing import print_differing
from reprocheck.report.explanation import explanation
from reprocheck.report.levels import factor_rows, level_head, level_rows, moved, told
from reprocheck.report.plain import visible
from reprocheck.report.planned import planned_rows
from reprocheck.words import counted, differ

__all__ = ["console_for", "print_differences", "print_study"]

MAX_OUTPUTS = 8
MAX_STATES = 6
MAX_ORDERS = 24
MAX_NAMES = 6
WIDTH_WITHOUT_TERMINAL = 150
MOST = "outputs that differ most"
COLOURS = {
    "identical": "green",
    "within-tolerance": "green",
    "noisy": "yellow",
    "inconclusive": "yellow",
}


class _Console(Console):
    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """What a workload said must not steer the terminal."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)

    def on_broken_pipe(self) -> None:
        """Leave it to the command line; rich itself ends with 1, which means a divergence."""
        raise  # noqa: PLE0704 - called while BrokenPipeError is handled


def console_for(stream: IO[str], *, color: str = "auto") -> Console:
    """A console on `stream`: colours by flag, then NO_COLOR, then FORCE_COLOR, then whether it is a terminal."""
    terminal = stream.isatty()
    if color == "always":
        wanted = True
    elif color == "never" or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        wanted = False
    else:
        wanted = terminal or bool(os.environ.get("FORCE_COLOR"))
    return _Console(
        file=stream,
        force_terminal=wanted,
        no_color=not wanted,
        force_interactive=False,
        color_system="auto" if wanted and terminal else ("standard" if wanted else None),
        width=None if terminal else WIDTH_WITHOUT_TERMINAL,
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=False,
    )


def print_study(study: Study, console: Console) -> None:
    """Print the whole report, without the blanks with which tables fill their cells."""
    with console.capture() as capture:
        _study(study, console)
    console.file.write(_stripped(capture.get()))


def _stripped(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.split("\n"))


def _study(study: Study, console: Console) -> None:
    line = Text(study.headline)
    line.stylize(f"bold {COLOURS.get(study.verdict, 'red')}", 0, len(study.verdict))
    console.print(line, soft_wrap=True)
    lines = explanation(study)
    if lines:
        console.print()
        _rows(lines, console)
    console.print()
    _facts(study, console)
    _levels(study, console)
    _groups(study, console)
    outputs = study.outputs
    if study.suite is not None:
        from reprocheck.report.suite import print_suite, recorded

        print_suite(study.suite, console)
        outputs = recorded(outputs)
    if any(output.differs for output in outputs):
        _outputs(outputs, study.verdict, console)
    _failures(study, console)
    starts = beginning(study)
    if starts:
        _section("where it starts", console)
        _rows(starts, console)
    _states("what differs in the state, group against group", study.state_differences, console)
    _states("hazards: same outputs, but the state differs between orders", study.hazards, console)
    _not_compared(study, console)
    _end(study, console)


def _section(title: str, console: Console) -> None:
    console.print()
    console.print(Text(title, style="bold"))


def _rows(rows: Iterable[tuple[str, str]], console: Console) -> None:
    table = Table.grid(padding=(0, 2), pad_edge=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, Text(value))
    console.print(Padding(table, (0, 0, 0, 2)))


def _facts(study: Study, console: Console) -> None:
    environment = study.environment
    pinned = environment.get("pinned") or {}
    rows = [
        ("workload", study.workload),
        ("subjects", f"{', '.join(study.subjects)}  (from {study.subjects_from})"),
        ("orders", study.plan),
        *planned_rows(study),
        ("python", f"{environment.get('python', '')}"),
    ]
    if pinned:
        rows.append(("pinned", " ".join(f"{name}={value}" for name, value in pinned.items())))
    if environment.get("changed"):
        rows.append(("changed", " ".join(f"{k}={v}" for k, v in environment["changed"].items())))
    if environment.get("dropped"):
        rows.append(("dropped", " ".join(environment["dropped"])))
    rows += [("note", note) for note in study.notes]
    _rows(rows, console)


def _levels(study: Study, console: Console) -> None:
    factors = study.factors
    if factors is None:
        return
    _section("what was varied besides the order", console)
    _rows(((f"{name} = {values}", text) for name, values, text in factor_rows(factors)), console)
    console.print()
    head, rows = level_head(factors), level_rows(factors)
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for title in head:
        table.add_column(title, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(Padding(table, (0, 0, 0, 2)))
    hidden = len(factors.levels[0].orders) - (len(head) - 3)
    more = f"; {hidden} more orders are in the JSON report" if hidden > 0 else ""
    console.print(Text(f"  equal letters are equal bits, over all levels; {told(factors)}{more}"), soft_wrap=True)
    for factor in factors.factors:
        if rows_of := moved(factor):
            _outputs(rows_of, study.verdict, console, title=f"outputs that {factor.name} changes most")


def _groups(study: Study, console: Console) -> None:
    arms = [arm for arm in study.orders if not arm.presence]
    if len(study.groups) < 2 and not any(arm.same_as for arm in arms) and not any(arm.presence for arm in study.orders):
        return
    _section("orders and their groups", console)
    table = Table.grid(padding=(0, 2), pad_edge=False)
    for _ in range(4):
        table.add_column(overflow="fold")
    for arm in arms[:MAX_ORDERS]:
        table.add_row(*_arm_cells(arm, study))
    console.print(Padding(table, (0, 0, 0, 2)))
    if len(arms) > MAX_ORDERS:
        console.print(f"  … and {len(arms) - MAX_ORDERS} more orders (see --format json)")
    presence = [arm for arm in study.orders if arm.presence]
    if presence:
        _section("presence: only some of the subjects imported before the workload", console)
        _rows(((order_text(arm.order), f"group {arm.group}") for arm in presence), console)


def _arm_cells(arm: Arm, study: Study) -> tuple[Text, ...]:
    name = Text(order_text(arm.order))
    if arm.same_as is not None:
        return Text("="), name, Text(""), Text(f"loads as `{order_text(arm.same_as)}` does; counted there", style="dim")
    letter = arm.group or "/".join(sorted(set(arm.groups)))
    details = []
    group = next((group for group in study.groups if group.id == arm.group), None)
    if group is not None:
        details.append(_group_text(group, study))
    elif arm.groups:
        counts = [f"{arm.groups.count(name)} x {name}" for name in sorted(set(arm.groups))]
        details.append(f"unstable: {some(counts)}")
    details += [f"`{name}` is imported by `{by}`" for name, by in arm.pulled_in.items()]
    details += [f"`{name}` is loaded before Python runs any of your code" for name in arm.preloaded]
    runs = f"{counted(arm.trials, 'run')}{', forked' if arm.forked else ''}"
    return Text(letter, style="bold"), name, Text(runs, style="dim"), Text("; ".join(details))


def _group_text(group: Group, study: Study) -> str:
    if group.failure is not None:
        return group.outcome
    reference = next((item.id for item in study.groups if item.failure is None), None)
    if group.id == reference:
        return "reference"
    if group.within_tolerance and any(output.differs for output in study.outputs):
        return f"differs from {reference} in bits, within the tolerance"
    return f"differs from {reference}"


def _outputs(outputs: tuple[OutputDifference, ...], verdict: str, console: Console, *, title: str = MOST) -> None:
    from reprocheck.compare.outputs import rank

    differing = [output for output in outputs if output.differs and output.detail is not None]
    differing.sort(key=lambda output: rank(output.detail), reverse=True)  # type: ignore[arg-type]
    _section(f"{title} ({len(differing)} of {len(outputs)} differ)" if title == MOST else title, console)
    pair = differing[0].groups if differing else ("", "")
    values = f"{pair[1]} | {pair[0]} there" if len(pair) == 2 else "values"
    print_differing([(output.name, output.detail) for output in differing[:MAX_OUTPUTS]], values, console)
    if len(differing) > MAX_OUTPUTS:
        names = ", ".join(output.name for output in differing[MAX_OUTPUTS : MAX_OUTPUTS + MAX_NAMES])
        more = len(differing) - MAX_OUTPUTS
        console.print(f"  and {more} more: {names}{', …' if more > MAX_NAMES else ''}", soft_wrap=True)
    if verdict != "within-tolerance":
        console.print(
            f"  smallest tolerance that would pass: {passing([o.passes_at for o in differing])}", soft_wrap=True
        )


def passing(needed: Sequence[PassesAt | None]) -> str:
    """The smallest single tolerances under which all would agree, in words."""
    from reprocheck.compare.tolerance import round_up

    known = [item for item in needed if item is not None]
    if len(known) < len(needed):
        return "none (NaN, infinity, shape, dtype or name changes)"
    choices = []
    for knob in ("rtol", "atol"):
        values = [getattr(item, knob) for item in known]
        if None not in values:
            choices.append(f"--{knob} {round_up(max(values), 3)}")
    ulps = [item.ulp for item in known if item.ulp is not None]
    if len(ulps) == len(known):
        choices.append(f"--ulp {max(ulps)}")
    return ", or ".join(choices) or "none that holds for all of them"


def _failures(study: Study, console: Console) -> None:
    failing = [group for group in study.groups if group.failure is not None]
    for group in failing[:3]:
        failure = group.failure
        if failure is None or not failure.traceback:
            continue
        _section(f"group {group.id}: {failure.message}", console)
        lines = failure.traceback.rstrip().splitlines()
        if len(lines) <= 12:
            shown = lines
        elif failure.kind in ("signal", "timeout"):  # faulthandler begins with the innermost frame
            shown = [*lines[:11], "…"]
        else:
            shown = [*lines[:2], "…", *lines[-9:]]
        console.print(Padding(Text("\n".join(shown), style="dim"), (0, 0, 0, 2)))


def _states(title: str, differences: tuple[StateDifference, ...], console: Console) -> None:
    if not differences:
        return
    _section(title, console)
    for item in differences[:MAX_STATES]:
        console.print(Text.assemble("  ", (item.key, "bold"), f"  [{item.severity}] {item.why}"), soft_wrap=True)
        for line in change_lines(item.changes):
            console.print(Text(f"    {line}"), soft_wrap=True)
    if len(differences) > MAX_STATES:
        more = ", ".join(item.key for item in differences[MAX_STATES : MAX_STATES + MAX_NAMES])
        extra = "" if len(differences) <= MAX_STATES + MAX_NAMES else ", …"
        console.print(f"  and {len(differences) - MAX_STATES} more: {more}{extra}", soft_wrap=True)


def some(names: Sequence[str]) -> str:
    """The first of many names, and how many more there are."""
    text = ", ".join(names[:MAX_NAMES])
    return text if len(names) <= MAX_NAMES else f"{text} and {len(names) - MAX_NAMES} more"


def change_lines(changes: Iterable[Change]) -> list[str]:
    """`A, B: 1, from the start`: one line a value, with the groups that have it."""
    groups: dict[str, list[str]] = {}
    for change in changes:
        groups.setdefault(change_text(change), []).append(change.group)
    return [f"{some(names)}: {text}" for text, names in groups.items()]


def change_text(change: Change) -> str:
    """A value and how it came about: `1, since import toolbox (toolbox/runtime.py:12)`."""
    text = value_text(change.value)
    if change.value == "absent":
        return text
    if change.phase.startswith("t1:"):
        text += f", since `import {change.phase[3:]}`"
    elif change.phase == "t0":
        text += ", from the start"
    event = change.event
    if event is not None and event.file:
        text += f" ({event.file}:{event.line})" if event.line else f" ({event.file})"
    return text


def value_text(value: Any, limit: int = 160) -> str:
    """A captured value on one line, cut to `limit` characters."""
    if isinstance(value, (list, tuple)):
        text = ", ".join(value_text(item, limit) for item in value) or "none"
    elif isinstance(value, dict):
        text = ", ".join(f"{key}={value_text(item, limit)}" for key, item in value.items()) or "none"
    else:
        # What lies in an environment is named from there on; the JSON has it whole.
        text = re.sub(r"(?<![^\s,=])/\S*/(?:site|dist)-packages/", "", str(value))
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _not_compared(study: Study, console: Console) -> None:
    if not study.not_compared:
        return
    _section("not compared", console)
    _rows(((item.name, item.reason) for item in study.not_compared[:MAX_OUTPUTS]), console)
    if len(study.not_compared) > MAX_OUTPUTS:
        console.print(f"  and {len(study.not_compared) - MAX_OUTPUTS} more")


def _end(study: Study, console: Console) -> None:
    import shlex

    console.print()
    rows = []
    if study.noise.observer == "differs":
        rows.append(("observer", "capturing state changes the outputs; the verdict stands on the runs without capture"))
    if study.run_dir:
        rows.append(("run folder", study.run_dir))
    if study.command:
        rows.append(("repeat", shlex.join(study.command)))
    _rows(rows, console)


def print_differences(differences: dict[str, Difference], names: tuple[str, str], console: Console) -> None:
    """The report of `reprocheck diff`: one line a differing output."""
    differing = {name: item for name, item in differences.items() if item.kind != "equal"}
    outside = {name: item for name, item in differing.items() if not item.within}
    if not differing:
        console.print(f"identical: {counted(len(differences), 'output')} equal bit for bit", soft_wrap=True)
        return
    word = "differ" if outside else "within-tolerance"
    console.print(
        f"{word}: {differ(len(differing), len(differences), 'output')} "
        f"between `{names[0]}` and `{names[1]}`" + ("" if outside else ", all within the tolerance"),
        soft_wrap=True,
    )
    console.print()
    most = 4 * MAX_OUTPUTS
    only = (f"only in `{names[0]}`", f"only in `{names[1]}`")
    rows = sorted(differing.items(), key=lambda pair: pair[1].max_rel or 0, reverse=True)[:most]
    with console.capture() as capture:
        print_differing(rows, "A | B there", console, only=only)
    console.file.write(_stripped(capture.get()))
    if len(differing) > most:
        console.print(f"  and {len(differing) - most} more (see --format json)")
    if outside:
        console.print(
            f"  smallest tolerance that would pass: {passing([i.passes_at for i in differing.values()])}",
            soft_wrap=True,
        )

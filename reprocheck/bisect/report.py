"""The report of a bisection: the sentence first, then the evidence, as text to be pasted into an issue, and as JSON."""

from __future__ import annotations

import io
import shlex
from collections.abc import Sequence
from typing import Any

import msgspec
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from reprocheck.bisect.hunt import duration
from reprocheck.bisect.records import Blame, Cell, Factorial, Report, VersionRow
from reprocheck.errors import StoreError
from reprocheck.report.text import change_text, console_for
from reprocheck.words import counted

__all__ = ["FORMATS", "print_report", "read_report", "render", "report_json", "schema"]

FORMATS = ("text", "json", "markdown")
MOST_ROWS = 30
MOST_STATE = 5
MOST_FILES = 6
MOST_NAMES = 8
_WIDTH = 110


def report_json(report: Report) -> str:
    """The published document, indented."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2).decode() + "\n"


def read_report(text: bytes) -> Report:
    """The report of a document. Raises `StoreError` for anything else."""
    try:
        return msgspec.json.decode(text, type=Report)
    except msgspec.DecodeError as error:
        raise StoreError(f"this is no report of a bisection: {error}") from error


def schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of the document."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **msgspec.json.schema(Report)}


def render(report: Report, format_: str) -> str:
    """The report in one of the formats, without colours."""
    if format_ == "json":
        return report_json(report)
    stream = io.StringIO()
    print_report(report, console_for(stream, color="never"))
    text = stream.getvalue()
    if format_ == "text":
        return text
    head, _, rest = text.partition("\n")
    body = rest.strip("\n")
    return f"**{head}**\n\n<details><summary>reprocheck bisect</summary>\n\n```text\n{body}\n```\n\n</details>\n"


def print_report(report: Report, console: Console) -> None:
    """Print it, without the blanks with which tables fill their cells."""
    console.width = min(console.width, _WIDTH) if console.width else _WIDTH
    with console.capture() as capture:
        _all(report, console)
    console.file.write("\n".join(line.rstrip() for line in capture.get().split("\n")))


def _all(report: Report, console: Console) -> None:
    style = "bold green" if report.outcome == "found" else "bold yellow"
    console.print(Text(report.headline, style=style), soft_wrap=True)
    if report.factorial is not None:
        console.print(Text(report.factorial.sentence), soft_wrap=True)
    console.print()
    _rows(_facts(report), console)
    _versions(report, console)
    if report.factorial is not None:
        _factorial(report.factorial, console)
    if report.explanation:
        _section(f"why {report.first_bad} does it (groups are those of its own study)", console)
        _rows(report.explanation, console)
    if report.blame is not None:
        _blame(report, report.blame, console)
    if report.culprits is not None:
        _culprits(report, console)
    _untestable(report, console)
    console.print()
    _rows(_end(report), console)


def _facts(report: Report) -> list[tuple[str, str]]:
    rows = [
        ("workload" if report.condition != "check" else "check", report.workload),
        ("looked for", report.condition + (" (where it ends)" if report.find_fix else "")),
    ]
    if report.outcome in ("found", "not-settled"):
        rows.append(("proof", report.reason))
    if report.posterior is not None and report.posterior.probability:
        one = report.posterior
        sure = f"{one.probability:.1%} that the change lies right there, by {one.runs} runs"
        if one.flaky:
            sure += f"; 90 % that {one.first} … {one.last} holds it" if one.first != one.last else ""
        rows.append(("confidence", sure))
    rows.append(("python", f"{report.environment.get('python', '')}  ({report.environment.get('base', '')})"))
    return rows


def _versions(report: Report, console: Console) -> None:
    rows = [row for row in report.versions if row.runs or row.same_as]
    if not rows:
        return
    _section(f"what was run ({report.plan})" if report.plan else "what was run", console)
    _columns([_version_cells(row) for row in rows[:MOST_ROWS]], console)
    if len(rows) > MOST_ROWS:
        console.print(f"  … and {len(rows) - MOST_ROWS} more (see --format json)")
    others = [one for one in report.transitions if one.after not in (report.first_bad, report.last_good)]
    for one in others:
        words = {True: "bad", False: "good"}
        console.print(
            f"  also changed from {one.before} ({words[one.before_bad]}) to {one.after} ({words[one.after_bad]})"
        )


def _version_cells(row: VersionRow) -> tuple[Text, ...]:
    if row.bad is None and row.bad_runs == 0:
        word, style = "–", "dim"
    elif row.bad is None:
        word, style = f"{row.bad_runs} of {row.runs} bad", "yellow"
    else:
        word, style = ("bad", "red") if row.bad else ("good", "green")
    runs = counted(row.runs, "run")
    if row.same_as:
        return Text(row.name), Text(word, style=style), Text(""), Text(f"same contents as {row.same_as}", style="dim")
    seen = f"{row.title}: {row.seen}" if row.title else row.seen
    return Text(row.name), Text(word, style=style), Text(runs, style="dim"), Text(seen)


def _factorial(table: Factorial, console: Console) -> None:
    _section("order against version (equal letters: equal results)", console)
    orders = list(dict.fromkeys(cell.order for cell in table.cells))
    versions = list(dict.fromkeys(cell.version for cell in table.cells))
    by_place = {(cell.version, cell.order): cell for cell in table.cells}
    rows = [(Text("imported first", style="dim"), *(Text(version, style="bold") for version in versions))]
    for order in orders:
        name = "nothing forced" if order is None else ",".join(order)
        rows.append((Text(name), *(_cell_text(by_place.get((version, order))) for version in versions)))
    _columns(rows, console)
    if table.old_order != table.new_order:
        own = [(versions[0], table.old_order), (versions[1], table.new_order)]
        console.print(
            Text("  by themselves, " + "; ".join(f"{v} imports {', '.join(o) or 'none of them'}" for v, o in own)),
            soft_wrap=True,
        )


def _cell_text(cell: Cell | None) -> Text:
    if cell is None:
        return Text("")
    text = "/".join(dict.fromkeys(cell.groups))
    return Text(text if cell.outcome == "ok" else f"{text} ({cell.outcome[:60]})")


def _blame(report: Report, blame: Blame, console: Console) -> None:
    if not (blame.files or blame.also_changed or blame.state):
        return
    sides = {"good": report.last_good, "bad": report.first_bad}
    old, new = reversed(sides.values()) if report.find_fix else sides.values()
    _section(f"what else changed from {old} to {new}", console)
    for item in blame.state[:MOST_STATE]:
        console.print(Text.assemble("  ", (item.key, "bold"), f"  [{item.severity}]"), soft_wrap=True)
        for change in item.changes:
            console.print(Text(f"    {sides[change.group]}: {change_text(change)}"), soft_wrap=True)
    if len(blame.state) > MOST_STATE:
        keys = ", ".join(item.key for item in blame.state[MOST_STATE : MOST_STATE + MOST_NAMES])
        console.print(f"  and {len(blame.state) - MOST_STATE} more keys: {keys}", soft_wrap=True)
    for file in [one for one in blame.files if one.blamed][:MOST_FILES]:
        lines = ", ".join(str(line) for line in file.blamed)
        touched = "changed there" if file.lines else "not changed at that line"
        console.print(Text(f"  {file.path}:{lines} sets what differs; {touched}"), soft_wrap=True)
        for line in file.lines:
            style = {"+": "green", "-": "red"}.get(line[:1], "dim")
            console.print(Text(f"    {line}", style=style), soft_wrap=True)
    rest = [one for one in blame.files if not one.blamed]
    if rest:
        names = ", ".join(f"{one.path} ({one.kind})" for one in rest[:MOST_NAMES])
        more = blame.file_count - len([one for one in blame.files if one.blamed])
        console.print(
            f"  {counted(more, 'other file')}: {names}{', …' if more > MOST_NAMES else ''}",
            soft_wrap=True,
        )
    for package in blame.also_changed[:MOST_NAMES]:
        pin = f"; hold it with --with {package.name}=={package.before}" if package.before != "none" else ""
        console.print(f"  besides: {package.name} {package.before} → {package.after}{pin}", soft_wrap=True)


def _culprits(report: Report, console: Console) -> None:
    culprits = report.culprits
    if culprits is None:
        return
    _section(f"which of the {culprits.changed} changed packages flip the outcome", console)
    for one in culprits.sets:
        console.print("  " + " and ".join(f"{item.name} {item.before} → {item.after}" for item in one), soft_wrap=True)
    if culprits.sets and not culprits.minimal:
        console.print("  not proven to be the smallest such set", soft_wrap=True)
    if culprits.unresolved:
        console.print(f"  {culprits.unresolved} mixtures could not be installed or judged", soft_wrap=True)


def _untestable(report: Report, console: Console) -> None:
    if not report.untestable:
        return
    _section("could not be judged", console)
    _rows(((_names(one.versions), one.reason) for one in report.untestable[:MOST_ROWS]), console)


def _names(names: Sequence[str]) -> str:
    return ", ".join(names if len(names) <= MOST_NAMES else [*names[:3], f"… {len(names) - 4} more …", names[-1]])


def _end(report: Report) -> list[tuple[str, str]]:
    noun = "mixtures" if report.kind == "locks" else "commits" if report.kind == "git" else "versions"
    cost = (
        f"{report.versions_run} of {report.versions_total} {noun} run, {report.runs} runs, {duration(report.seconds)}"
    )
    rows = [("note", note) for note in report.notes]
    rows.append(("cost", cost))
    rows.append(("folder", report.folder))
    if report.command:
        rows.append(("repeat", shlex.join(report.command)))
    if report.next_command:
        rows.append(("go on with", shlex.join(report.next_command)))
    return rows


def _columns(rows: Sequence[tuple[Text, ...]], console: Console) -> None:
    """Rows of cells, each on one line: a cell too many characters is cut, never wrapped."""
    widths = [max(row[at].cell_len for row in rows) for at in range(len(rows[0]) - 1)]
    for row in rows:
        line = Text("  ")
        for cell, width in zip(row, widths, strict=False):
            cell.pad_right(width - cell.cell_len + 2)
            line.append_text(cell)
        line.append_text(row[-1])
        line.truncate(console.width, overflow="ellipsis")
        console.print(line, soft_wrap=True)


def _section(title: str, console: Console) -> None:
    console.print()
    console.print(Text(title, style="bold"), soft_wrap=True)


def _rows(rows: Any, console: Console) -> None:
    table = Table.grid(padding=(0, 2), pad_edge=False)
    table.add_column(style="dim", overflow="fold", max_width=44)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(Text(name), Text(value))
    console.print(Padding(table, (0, 0, 0, 2)))

"""Markdown for issues, pull requests and job summaries (GitHub's flavour, https://github.github.com/gfm/)."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence

from reprocheck.compare.outputs import rank
from reprocheck.headline import order_text, outcomes_text
from reprocheck.model import Difference, Study
from reprocheck.report.levels import factor_rows, level_head, level_rows, told
from reprocheck.report.plain import clip, one_line, visible
from reprocheck.report.planned import planned_rows
from reprocheck.report.text import change_text, passing, value_text
from reprocheck.words import differ

__all__ = ["code", "prose", "studies_markdown", "study_markdown"]

MAX_ORDERS = 24
MAX_OUTPUTS = 12
MAX_STATES = 10
MAX_TESTS = 20
MAX_LINES = 30

# What begins markup anywhere in a line. Names stand in code spans, where nothing is markup.
_MARKUP = re.compile(r"[\\*_{}\[\]<>#|~&]")
_CODE = re.compile(r"`([^`]+)`")


def studies_markdown(studies: Sequence[Study]) -> str:
    """All studies, the worst first, under one table of contents when there are several."""
    if len(studies) == 1:
        return study_markdown(studies[0])
    ordered = sorted(studies, key=lambda study: (study.exit_code == 0, study.workload))
    agree = sum(1 for study in studies if study.exit_code == 0)
    lines = [f"## Import order: {agree} of {len(studies)} workloads agree", ""]
    lines += _table(
        ("workload", "verdict", ""),
        ((code(study.workload), study.verdict, prose(_sentence(study))) for study in ordered),
    )
    told = [study_markdown(study) for study in ordered if study.exit_code != 0]
    return "\n".join(lines) + "\n" + "\n".join(told)


def study_markdown(study: Study) -> str:
    """One study: verdict, remedy, groups, where it starts, why, how large, how to repeat."""
    lines = [f"### {study.verdict}: {prose(_sentence(study))}", ""]
    remedy = study.remedy
    if remedy is not None:
        tried = f" (tried: all {remedy.orders} orders agree)" if remedy.agrees and remedy.orders else ""
        lines += [f"**{'What to do' if remedy.agrees else 'No remedy found'}:** {prose(remedy.text)}{tried}", ""]
        for name, text in list(remedy.snippets.items())[:2]:
            lines += _fence(text, "console" if name == "shell" else "")
    lines += _levels(study)
    lines += _orders(study)
    lines += [line for name, text in planned_rows(study) for line in (f"**{name.capitalize()}:** {prose(text)}", "")]
    lines += [line for note in study.notes for line in (f"Note: {prose(note)}", "")]
    lines += _tests(study)
    lines += _start(study)
    lines += _why(study)
    lines += _size(study)
    lines += _failures(study)
    lines += _end(study)
    return "\n".join(lines) + "\n"


def code(text: str, limit: int = 160) -> str:
    """`text` as a code span that nothing in it can end, fit for a table's cell."""
    # A cell's separator is split off before spans are looked for.
    shown = one_line(text, limit).replace("|", "\\|") or " "
    longest = max((len(run) for run in re.findall(r"`+", shown)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def prose(text: str, limit: int = 800) -> str:
    """A sentence whose parts in backticks are code, and in which nothing else is markup or mentions anybody."""
    shown = one_line(text, limit)
    done = []
    at = 0
    for found in _CODE.finditer(shown):
        done += [_plain(shown[at : found.start()]), code(found[1])]
        at = found.end()
    return "".join([*done, _plain(shown[at:])])


def _plain(text: str) -> str:
    escaped = _MARKUP.sub(lambda found: "&lt;" if found[0] == "<" else f"\\{found[0]}", text)
    # A word joiner keeps `@name` from being a mention and bare addresses from being links.
    return escaped.replace("`", "\\`").replace("@", "@\u2060").replace("://", ":\u2060//")


def _sentence(study: Study) -> str:
    return study.headline.removeprefix(f"{study.verdict}: ")


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return [*lines, *(f"| {' | '.join(row)} |" for row in rows), ""]


def _fence(text: str, language: str = "") -> list[str]:
    shown = clip(visible(text), 4000).rstrip()
    longest = max((len(run) for run in re.findall(r"`+", shown)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}{language}", shown, fence, ""]


def _levels(study: Study) -> list[str]:
    factors = study.factors
    if factors is None:
        return []
    rows = [(code(name), prose(values, 160), prose(text, 300)) for name, values, text in factor_rows(factors)]
    lines = _table(("varied", "values", "what it does"), rows)
    head = [code(title, 60) if at > 2 else title for at, title in enumerate(level_head(factors))]
    lines += _table(head, ((code(row[0], 120), *row[1:]) for row in level_rows(factors)[:MAX_ORDERS]))
    return [*lines, f"Equal letters are equal bits, over all levels; {prose(told(factors))}.", ""]


def _orders(study: Study) -> list[str]:
    arms = [arm for arm in study.orders if not arm.presence]
    outcomes = {group.id: group.outcome for group in study.groups if group.failure is not None}

    def told(letter: str) -> str:
        return f"{letter}: {prose(outcomes[letter], 160)}" if letter in outcomes else letter

    rows = [
        (
            code(order_text(arm.order)),
            "=" if arm.same_as is not None else ", ".join(told(letter) for letter in sorted(set(arm.groups))[:6]),
            "" if arm.same_as is not None else f"{arm.trials}{', forked' if arm.forked else ''}",
            f"loads as {code(order_text(arm.same_as))} does" if arm.same_as is not None else "",
        )
        for arm in arms[:MAX_ORDERS]
    ]
    lines = _table(("order", "group", "runs", ""), rows)
    if len(arms) > MAX_ORDERS:
        lines += [f"and {len(arms) - MAX_ORDERS} more orders", ""]
    if study.rule is not None:
        lines += [f"**Rule:** {prose(study.rule.sentence)} ({study.rule.explained} of {study.rule.total} orders)", ""]
    return lines


def _tests(study: Study) -> list[str]:
    suite = study.suite
    if suite is None or not suite.differing:
        return []
    rows = ((code(item.test), item.verdict, prose(outcomes_text(item), 300)) for item in suite.differing[:MAX_TESTS])
    lines = _table(("test", "verdict", ""), rows)
    if len(suite.differing) > MAX_TESTS:
        lines += [f"and {len(suite.differing) - MAX_TESTS} more tests", ""]
    return lines


def _start(study: Study) -> list[str]:
    told = [item.text for item in (study.first_line, study.origin) if item is not None]
    if not told:
        return []
    lines = ["**Where it starts**", "", *(f"- {prose(text)}" for text in told)]
    if study.inherited:
        lines.append(f"- {study.inherited:,} later operators inherit it")
    return [*lines, ""]


def _why(study: Study) -> list[str]:
    lines: list[str] = []
    if study.causes:
        lines += ["**Why**", ""]
        for cause in study.causes[:MAX_STATES]:
            place = (
                f", set at {code(f'{cause.event.file}:{cause.event.line}')}" if cause.event and cause.event.file else ""
            )
            lines.append(f"- {cause.status}: {prose(cause.text)}{place}")
        lines.append("")
    states = study.state_differences or study.hazards
    if states:
        what = "State that differs" if study.state_differences else "Hazards: same outputs, but the state differs"
        names = list(dict.fromkeys(change.group for item in states for change in item.changes))[:4]
        rows = []
        for item in states[:MAX_STATES]:
            values = {change.group: change for change in item.changes}
            cells = (code(change_text(values[name]), 120) if name in values else "" for name in names)
            rows.append((code(item.key), item.severity, *cells))
        lines += [f"<details><summary>{what} ({len(states)} keys)</summary>", ""]
        lines += _table(("key", "severity", *(code(name, 60) for name in names)), rows)
        if len(states) > MAX_STATES:
            lines += [f"and {len(states) - MAX_STATES} more keys", ""]
        lines += ["</details>", ""]
    return lines


def _size(study: Study) -> list[str]:
    found = [(output, output.detail) for output in study.outputs if output.differs and output.detail is not None]
    if not found:
        return []
    found.sort(key=lambda pair: rank(pair[1]), reverse=True)
    head = ("output", "dtype, shape", "differing", "max ULP", "max abs", "max rel", "first at", "there")
    rows = [(code(output.name), *_cells(detail)) for output, detail in found[:MAX_OUTPUTS]]
    lines = [f"**How large** ({differ(len(found), len(study.outputs), 'output')})", "", *_table(head, rows)]
    if len(found) > MAX_OUTPUTS:
        lines += [f"and {len(found) - MAX_OUTPUTS:,} more outputs", ""]
    if study.verdict != "within-tolerance":
        lines += [f"Smallest tolerance that would pass: {code(passing([output.passes_at for output, _ in found]))}", ""]
    return lines


def _cells(detail: Difference) -> tuple[str, ...]:
    shape = code(f"{detail.dtype}{list(detail.shape)}", 80)
    if detail.kind != "values":
        other = f"{detail.other_dtype}{list(detail.other_shape)}"
        note = "missing on one side" if detail.kind == "missing" else f"{code(other, 80)} in the reference"
        return (shape, note, "", "", "", "", "")
    values = detail.first_values or ("", "")
    place = f"[{', '.join(map(str, detail.first_index or ()))}]"
    return (
        shape,
        f"{detail.differing:,} of {detail.size:,}",
        "–" if detail.max_ulp is None else f"{detail.max_ulp:,}",
        "–" if detail.max_abs is None else f"{detail.max_abs:.2g}",
        "–" if detail.max_rel is None else f"{detail.max_rel:.2g}",
        code(place, 60),
        f"{code(values[0], 60)} against {code(values[1], 60)}",
    )


def _failures(study: Study) -> list[str]:
    lines: list[str] = []
    for group in [group for group in study.groups if group.failure is not None][:2]:
        if group.failure is not None and group.failure.traceback:
            text = group.failure.traceback.rstrip().splitlines()
            shown = text if len(text) <= MAX_LINES else [*text[:6], "…", *text[6 - MAX_LINES :]]
            lines += [
                f"<details><summary>Group {group.id} fails</summary>",
                "",
                *_fence("\n".join(shown)),
                "</details>",
                "",
            ]
    return lines


def _end(study: Study) -> list[str]:
    lines: list[str] = []
    if study.command:
        lines += ["Repeat it:", "", *_fence(shlex.join(study.command), "console")]
    facts = [(name, value_text(value)) for name, value in study.environment.items() if value not in (None, "", [], {})]
    if facts:
        lines += ["<details><summary>Environment</summary>", ""]
        lines += _table(("", ""), ((name, code(value)) for name, value in facts))
        lines += ["</details>", ""]
    lines.append(f"reprocheck {study.reprocheck_version}, {study.noise.trials} runs in fresh interpreters")
    return lines

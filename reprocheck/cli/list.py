"""`reprocheck list`: the scenarios in a folder, past runs, and past bisections."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

__all__ = ["command"]


@click.command(name="list")
@click.argument("what", type=click.Choice(["all", "scenarios", "runs", "bisects"]), default="all")
@click.option(
    "--scenarios", "folder", type=click.Path(path_type=Path), default=Path("scenarios"), help="Folder with scenarios"
)
@click.option("--runs", "root", type=click.Path(path_type=Path), help="Folder with runs [default: .reprocheck/runs]")
@click.option(
    "--bisects",
    "bisects",
    type=click.Path(path_type=Path),
    help="Folder with bisections [default: .reprocheck/bisects]",
)
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text", help="What goes to stdout")
def command(what: str, folder: Path, root: Path | None, bisects: Path | None, format_: str) -> None:
    """List scenarios (scripts with a [tool.reprocheck] block), past runs and past bisections, newest first."""
    from reprocheck.api import RUNS
    from reprocheck.bisect.journal import BISECTS

    root = root or Path.cwd() / RUNS
    bisects = bisects or Path.cwd() / BISECTS
    found: dict[str, list[dict[str, Any]]] = {}
    if what in ("all", "scenarios"):
        found["scenarios"] = scenarios_in(folder)
    if what in ("all", "runs"):
        found["runs"] = past_runs(root)
    if what in ("all", "bisects"):
        found["bisects"] = past_bisects(bisects)
    if format_ == "json":
        import json

        sys.stdout.write(json.dumps(found, indent=2) + "\n")
        return
    _print(found, folder, root, bisects)


def scenarios_in(folder: Path) -> list[dict[str, Any]]:
    """Every scenario below `folder` with what its metadata says, by name."""
    from reprocheck.config import script_block, script_layer

    rows = []
    for path in sorted([*folder.glob("*.py"), *folder.glob("*/workload.py")]):
        block = script_block(path)
        layer = script_layer(path)
        if block is None or layer is None:
            continue
        target = path.parent if path.name == "workload.py" else path
        rows.append(
            {
                "target": str(target),
                "imports": list(layer.values.get("imports", ())),
                "expect": layer.values.get("expect", ""),
                "story": layer.values.get("story", ""),
                "dependencies": list(block.dependencies),
            }
        )
    return rows


def past_runs(root: Path) -> list[dict[str, Any]]:
    """Every run below `root`, newest first."""
    from reprocheck.errors import StoreError
    from reprocheck.store.run import Run, runs_in

    rows = []
    for folder in runs_in(root):
        try:
            run = Run(folder)
            ended = (folder / "study.json").is_file()
            study = run.study() if ended else None
        except StoreError as error:
            rows.append({"run_dir": str(folder), "workload": "", "verdict": "unreadable", "headline": str(error)})
            continue
        rows.append(
            {
                "run_dir": str(folder),
                "workload": run.spec.target.text,
                "verdict": study.verdict if study else "unfinished",
                "headline": study.headline if study else "continue it with `reprocheck run … --resume`",
            }
        )
    return rows


def past_bisects(root: Path) -> list[dict[str, Any]]:
    """Every bisection below `root`, newest first."""
    from reprocheck.bisect.journal import answer_of, bisects_in
    from reprocheck.errors import StoreError

    rows = []
    for folder in bisects_in(root):
        try:
            what, report = answer_of(folder)
        except StoreError as error:
            what, report, outcome, headline = "", None, "unreadable", str(error)
        else:
            outcome, headline = "unfinished", "continue it with `reprocheck bisect … --resume`"
        if report is not None:
            outcome, headline = report.outcome, report.headline
        rows.append({"folder": str(folder), "workload": what, "outcome": outcome, "headline": headline})
    return rows


def _print(found: dict[str, list[dict[str, Any]]], folder: Path, root: Path, bisects: Path) -> None:
    from reprocheck.report.text import console_for

    console = console_for(sys.stdout)
    if "scenarios" in found:
        console.print(
            f"scenarios in {folder}/" if found["scenarios"] else f"no scenarios in {folder}/ (see --scenarios)"
        )
        for row in found["scenarios"]:
            console.print(f"  {row['target']}  ({', '.join(row['imports'])}; expect {row['expect']})", soft_wrap=True)
            console.print(f"    {row['story']}", soft_wrap=True)
    if "runs" in found:
        console.print(
            f"runs in {root}/" if found["runs"] else f"no runs in {root}/ yet: start one with `reprocheck run`"
        )
        for row in found["runs"]:
            console.print(f"  {Path(row['run_dir']).name}  {row['workload']}", soft_wrap=True)
            console.print(f"    {row['headline'] or row['verdict']}", soft_wrap=True)
    if "bisects" in found:
        console.print(
            f"bisections in {bisects}/"
            if found["bisects"]
            else f"no bisections in {bisects}/ yet: start one with `reprocheck bisect`"
        )
        for row in found["bisects"]:
            console.print(f"  {Path(row['folder']).name}  {row['workload']}", soft_wrap=True)
            console.print(f"    {row['headline']}", soft_wrap=True)

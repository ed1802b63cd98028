"""`reprocheck clean`: delete run folders and bisections."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

__all__ = ["command"]


@click.command(name="clean")
@click.argument("folders", nargs=-1, type=click.Path(path_type=Path), metavar="[FOLDER]…")
@click.option("--keep", type=click.IntRange(min=0), default=0, metavar="N", help="Keep the newest N of either kind")
@click.option("--dry-run", is_flag=True, help="Only say what would go")
@click.option("--only", type=click.Choice(["runs", "bisects"]), help="Only this kind")
@click.option("--runs", "root", type=click.Path(path_type=Path), help="Folder with runs [default: .reprocheck/runs]")
@click.option(
    "--bisects",
    "bisects",
    type=click.Path(path_type=Path),
    help="Folder with bisections [default: .reprocheck/bisects]",
)
def command(
    folders: tuple[Path, ...], keep: int, dry_run: bool, only: str | None, root: Path | None, bisects: Path | None
) -> None:
    """Delete the run folders and bisections FOLDER…, or all below .reprocheck/runs and .reprocheck/bisects.

    Nothing but these is ever touched, and nothing that another reprocheck is working on. Cached environments stay.
    """
    from reprocheck.api import RUNS
    from reprocheck.bisect.journal import BISECTS, bisects_in, is_bisection
    from reprocheck.errors import StoreError, UsageError
    from reprocheck.store.run import Run, in_use, runs_in

    for folder in folders:
        if is_bisection(folder):
            continue
        try:
            Run(folder)
        except StoreError as error:
            raise UsageError(f"{error}; nothing was deleted") from error
    chosen = list(folders)
    if not folders and only != "bisects":
        chosen += runs_in(root or Path.cwd() / RUNS)[keep:]
    if not folders and only != "runs":
        chosen += bisects_in(bisects or Path.cwd() / BISECTS)[keep:]
    total, counts = 0, {"run": 0, "bisection": 0}
    for folder in chosen:
        if in_use(folder):
            print(f"left {folder}: in use by another reprocheck")
            continue
        counts["bisection" if is_bisection(folder) else "run"] += 1
        total += sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        print(f"{'would delete' if dry_run else 'deleted'} {folder}")
        if not dry_run:
            try:
                shutil.rmtree(folder)
            except OSError as error:
                raise StoreError(f"cannot delete `{folder}`: {error.strerror}; check its permissions") from error
    told = [f"{count} {kind}{'' if count == 1 else 's'}" for kind, count in counts.items() if count or kind == "run"]
    print(f"{', '.join(told)}, {total / 2**20:.1f} MiB")

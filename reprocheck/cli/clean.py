"""`reprocheck clean`: delete run folders."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

__all__ = ["command"]


@click.command(name="clean")
@click.argument("runs", nargs=-1, type=click.Path(path_type=Path))
@click.option("--keep", type=click.IntRange(min=0), default=0, metavar="N", help="Keep the newest N")
@click.option("--dry-run", is_flag=True, help="Only say what would go")
@click.option("--runs", "root", type=click.Path(path_type=Path), help="Folder with runs [default: .reprocheck/runs]")
def command(runs: tuple[Path, ...], keep: int, dry_run: bool, root: Path | None) -> None:
    """Delete the run folders RUNS, or all below .reprocheck/runs. Nothing but run folders is ever touched."""
    from reprocheck.api import RUNS
    from reprocheck.errors import StoreError, UsageError
    from reprocheck.store.run import Run, runs_in

    chosen = list(runs) or runs_in(root or Path.cwd() / RUNS)[keep:]
    for folder in runs:
        try:
            Run(folder)
        except StoreError as error:
            raise UsageError(f"{error}; nothing was deleted") from error
    total = 0
    for folder in chosen:
        total += sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        print(f"{'would delete' if dry_run else 'deleted'} {folder}")
        if not dry_run:
            try:
                shutil.rmtree(folder)
            except OSError as error:
                raise StoreError(f"cannot delete `{folder}`: {error.strerror}; check its permissions") from error
    print(f"{len(chosen)} run{'' if len(chosen) == 1 else 's'}, {total / 2**20:.1f} MiB")

"""A plain script without reprocheck that shows the difference, run before it is handed out."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from pprint import pformat
from string import Template
from typing import Any

from reprocheck.engine.environment import trial_environment
from reprocheck.engine.trial import Job
from reprocheck.explain.remedy import Proposal
from reprocheck.explain.swap import Order, Swap
from reprocheck.model import Reproducer, Study

__all__ = ["NAME", "make_reproducer", "script"]

NAME = "reproducer.py"
TEMPLATE = Path(__file__).with_name("reproducer.py.txt")
SHOWS, AGREES = 1, 0
"""Exit statuses of the script."""


def make_reproducer(
    study: Study, swap: Swap, context: Sequence[str], job: Job, folder: Path, remedy: Proposal | None
) -> Reproducer | None:
    """Write `reproducer.py` into `folder`: with the smallest orders that show the difference when it is run.

    The pair of the swap and what it needs is tried first, then the whole orders. None for workloads that a plain script
    cannot run (a test of pytest).
    """
    if study.target.kind not in ("function", "module", "script"):
        return None
    needed = {*swap.pair, *context} if len(swap.before) == len(swap.after) else set(swap.after)
    small = tuple(tuple(name for name in order if name in needed) for order in (swap.before, swap.after))
    path = folder / NAME
    for orders in dict.fromkeys((small, (swap.before, swap.after))):
        path.write_text(script(study, orders, job, remedy), encoding="utf-8")
        status, last = _run(path, job)
        if status == SHOWS:
            names = " and ".join(f"`{','.join(order) or '(no subject)'}`" for order in orders)
            text = f"{NAME} in the run folder shows it in two plain interpreters, {names}: {last}"
            return Reproducer(path=NAME, reproduces=True, text=text)
    return Reproducer(
        path=NAME,
        reproduces=False,
        text=f"{NAME} in the run folder does not show the difference outside reprocheck ({last or 'no output'})",
    )


def script(study: Study, orders: Sequence[Order], job: Job, remedy: Proposal | None) -> str:
    """The script's text."""
    target = study.target
    changes = trial_environment(job.environment, job.env)
    environment: dict[str, str | None] = {**changes.pinned, **changes.changed}
    first = [action["name"] for action in remedy.actions if action["do"] == "import"] if remedy else []
    usable = remedy is not None and (remedy.env or first) and len(first) == len(remedy.actions)
    what = {"kind": target.kind, "path": target.path, "module": target.module, "name": target.name}
    causes = "\n".join(f"{cause.status}: {cause.text}" for cause in study.causes)
    return Template(TEMPLATE.read_text(encoding="utf-8")).substitute(
        headline=_quotable(study.headline),
        causes=_quotable(causes or "The cause is not known."),
        orders=pformat([list(order) for order in orders], width=100),
        workload=pformat({key: value for key, value in what.items() if value is not None}, width=100),
        environment=pformat(environment, width=100),
        path=pformat([*job.sys_path, *([str(Path(target.path).parent)] if target.path else [job.cwd])], width=100),
        arguments=pformat(list(job.argv), width=100),
        seed=repr(job.seed),
        remedy=pformat({"env": dict(remedy.env), "first": first} if remedy is not None and usable else None, width=100),
    )


def _quotable(text: str) -> str:
    """Text that can stand in a docstring."""
    return text.replace("\\", "\\\\").replace('"""', "'''")


def _run(path: Path, job: Job) -> tuple[int, str]:
    """(exit status, last line printed) of the script, run as a person would."""
    environment = trial_environment(job.environment, job.env).variables
    try:
        done: subprocess.CompletedProcess[Any] = subprocess.run(
            [job.python, str(path)],
            cwd=job.cwd,
            env={**environment, "PYTHONDONTWRITEBYTECODE": "1"}
            if "PYTHONDONTWRITEBYTECODE" in os.environ
            else environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=4 * job.timeout,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return -1, str(error)
    lines = done.stdout.strip().splitlines() or done.stderr.strip().splitlines()
    shown = next((line for line in lines if line.startswith("different:")), lines[-1] if lines else "")
    return done.returncode, shown.removeprefix("different: ")
